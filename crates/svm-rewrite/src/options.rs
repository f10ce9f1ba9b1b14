//! What a caller asks for, and what contradicts itself.

use std::num::NonZero;

use twin_abi::{Accesses, MadeFor, Processor, Scheme, Target};

use crate::schemes::{self, Row};
use crate::targets::{self, Descriptor};

/// What to do.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// What the result runs on.
    pub target: Target,
    /// How addresses are translated.
    pub scheme: Scheme,
    /// Which accesses are.
    pub accesses: Accesses,
    /// Which processors the result is for.
    pub processor: Processor,
    /// Whether pointers are compared with dom0's first and last address before they are cut
    /// to a window.
    pub strict: bool,
    /// Whether to fill [`crate::Rewritten::sites`], which takes as long as the rest.
    pub report: bool,
    /// For tests: before each sequence, also overwrite every register and the
    /// flags that liveness calls dead there. Behaviour must not change.
    pub poison: bool,
    /// Most threads that work on one object. The result does not depend on it.
    pub threads: NonZero<usize>,
}

impl Options {
    /// The ordinary rewriting for the default target under a scheme.
    pub fn new(scheme: Scheme) -> Options {
        Options::of(Target::default(), scheme)
    }

    /// The ordinary rewriting for a target under a scheme.
    pub fn of(target: Target, scheme: Scheme) -> Options {
        Options {
            target,
            scheme,
            accesses: Accesses::All,
            processor: scheme.processor(),
            strict: false,
            report: false,
            poison: false,
            threads: NonZero::<usize>::MIN,
        }
    }

    /// What the result's note says.
    pub fn made_for(self) -> MadeFor {
        MadeFor {
            target: self.target,
            scheme: self.scheme,
            accesses: self.accesses,
            processor: self.processor,
        }
    }

    pub(crate) fn row(self) -> &'static Row {
        schemes::row(self.scheme, self.processor)
    }
}

/// Whether code for a target can have a scheme.
pub fn suits(scheme: Scheme, target: Target) -> bool {
    let row = Options::of(target, scheme).row();
    scheme.serves(target) && (!row.has_checks() || row.reaches(targets::of(target).plans.table))
}

/// Why checks cannot be in code that may be anywhere.
const ABSOLUTE: &str = "its checks have absolute addresses, which the target cannot have";

/// Why a window cannot be in code for another target.
const WINDOW: &str = "the scheme's window is a hypervisor's; use --target hypervisor, or --scheme \
                      stlb";

/// Why loads may not stay in code whose translations lead elsewhere.
const LOADS: &str = "its addresses are dom0's: a load that stays as it is would read the \
                     hypervisor's own memory; use --accesses all, or --target linux";

/// Why code for processors with BMI2 has to be in the scheme that makes use of it.
const NO_PEXT: &str = "the scheme adds no instruction of BMI2; use --processor any, or --scheme \
                       window";

/// Why code with a table is not strict.
const STRICT: &str = "the scheme's checks refuse every pointer that is not dom0's already; leave \
                      --strict out, or use --scheme window";

/// Why no code can be rewritten with these options together, if none can.
pub(crate) fn contradiction(options: Options, target: &Descriptor) -> Option<&'static str> {
    let has_checks = options.row().has_checks();
    if !suits(options.scheme, options.target) {
        return Some(if has_checks { ABSOLUTE } else { WINDOW });
    }
    if !options.processor.serves(options.scheme) {
        return Some(NO_PEXT);
    }
    if options.strict && has_checks {
        return Some(STRICT);
    }
    let leaves_loads = options.accesses == Accesses::Stores;
    (leaves_loads && !target.code.translates_to_itself).then_some(LOADS)
}
