//! What an object is rewritten for, and the contract that is demanded of it.

use elf_loader::Object;
use svm_rewrite::{Options, Refusal, Rewritten};
use svm_verify::{Accesses, Contract, Scheme, Target};

/// A target, a scheme with a table, and the accesses that are translated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// What the object runs on.
    pub target: Target,
    /// How addresses are translated.
    pub scheme: Scheme,
    /// Which accesses are.
    pub accesses: Accesses,
}

impl Setting {
    /// All accesses of an object for this target.
    pub const fn of(target: Target, scheme: Scheme) -> Setting {
        Setting {
            target,
            scheme,
            accesses: Accesses::All,
        }
    }

    /// Those of modules: every scheme, and stores alone.
    pub const MODULES: [Setting; 4] = [
        Setting::of(Target::Linux, Scheme::Stlb),
        Setting::of(Target::Linux, Scheme::Paper),
        Setting::of(Target::Linux, Scheme::Stlb).of_stores(),
        Setting::of(Target::Linux, Scheme::Paper).of_stores(),
    ];

    const fn of_stores(self) -> Setting {
        Setting {
            accesses: Accesses::Stores,
            ..self
        }
    }

    /// What the verifier is asked for.
    pub fn contract(self) -> Contract {
        Contract::of(self.target)
            .with(self.scheme)
            .confining(self.accesses)
    }

    /// The object rewritten, and its sites.
    ///
    /// # Errors
    /// The rewriter refuses the object.
    pub fn rewritten(self, object: &Object<'_>) -> Result<Rewritten, Vec<Refusal>> {
        let options = Options {
            accesses: self.accesses,
            report: true,
            ..Options::of(self.target, self.scheme)
        };
        svm_rewrite::rewrite(object, options)
    }
}

impl std::fmt::Display for Setting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (target, scheme) = (self.target.as_str(), self.scheme.as_str());
        write!(
            f,
            "{target}, scheme {scheme}, accesses {}",
            self.accesses.as_str()
        )
    }
}
