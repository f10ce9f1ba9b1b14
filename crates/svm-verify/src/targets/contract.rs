//! The contract that is demanded of an object. The object's own note must not choose it:
//! a hostile object would choose the contract that allows the most.

use twin_abi::{Accesses, MadeFor, Scheme, Target};

use super::Rules;

/// The rules that an object has to keep.
///
/// Only the loader knows what it needs, so there is no default: a hypervisor demands
/// [`Target::Hypervisor`] and the scheme of its instance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Contract {
    /// The target whose rules it has to keep.
    pub target: Target,
    /// The scheme that it has to use; `None` for any scheme of the target. A runtime that
    /// fills the table has to demand the scheme that it fills it for.
    pub scheme: Option<Scheme>,
    /// Which accesses are confined. With [`Accesses::Stores`] less is proved, so nobody has
    /// it who did not ask for it.
    pub accesses: Accesses,
}

impl Contract {
    /// The rules of a target, with the scheme of the object's note; all accesses are
    /// confined.
    pub const fn of(target: Target) -> Contract {
        Contract {
            target,
            scheme: None,
            accesses: Accesses::All,
        }
    }

    /// The same in one scheme alone.
    pub const fn with(self, scheme: Scheme) -> Contract {
        Contract {
            scheme: Some(scheme),
            ..self
        }
    }

    /// The same where these accesses are confined.
    pub const fn confining(self, accesses: Accesses) -> Contract {
        Contract { accesses, ..self }
    }

    /// Whether an object that was made for `made` can keep it.
    ///
    /// # Errors
    /// What it was made for instead.
    pub(crate) fn admits(self, made: MadeFor) -> Result<(), String> {
        if self.target == Target::Process {
            return Err("nothing is proved of programs (`process`)".to_owned());
        }
        let (target, demanded) = (made.target.as_str(), self.target.as_str());
        if target != demanded {
            return Err(format!(
                "it was made for the contract `{target}`, `{demanded}` is demanded"
            ));
        }
        if made.accesses != self.accesses {
            return Err(other_accesses(made.accesses).to_owned());
        }
        let scheme = made.scheme.as_str();
        match self.scheme {
            Some(wanted) if wanted != made.scheme => Err(format!(
                "it translates by the scheme `{scheme}`, `{}` is demanded",
                wanted.as_str()
            )),
            _ if !made.accesses.serves(made.target) => Err(format!(
                "its loads are not translated, and in the target `{target}` they have to be"
            )),
            _ if !made.processor.serves(made.scheme) => Err(format!(
                "its note says that it is for processors with `{}`, of which the scheme `{scheme}` \
                 has no use",
                made.processor.as_str()
            )),
            _ if Rules::of(made).is_none() => Err(format!(
                "the scheme `{scheme}` is not one of the target `{target}`"
            )),
            _ => Ok(()),
        }
    }
}

/// Why an object with this mode does not keep a contract with the other one.
fn other_accesses(made: Accesses) -> &'static str {
    match made {
        Accesses::All => {
            "all its accesses are translated (`all`), and the contract for `stores` alone is \
             demanded"
        }
        Accesses::Stores => {
            "its stores alone are translated (`stores`), and the contract for `all` accesses is \
             demanded"
        }
    }
}

#[cfg(test)]
mod tests {
    use twin_abi::Processor;

    use super::*;

    fn made(scheme: Scheme, target: Target) -> MadeFor {
        MadeFor {
            target,
            scheme,
            accesses: Accesses::All,
            processor: scheme.processor(),
        }
    }

    #[test]
    fn only_the_scheme_with_pext_is_for_processors_that_have_it() {
        let demanded = Contract::of(Target::Hypervisor);
        for (scheme, processor) in Scheme::ALL
            .into_iter()
            .flat_map(|s| Processor::ALL.map(|p| (s, p)))
        {
            let made = MadeFor {
                processor,
                ..made(scheme, Target::Hypervisor)
            };
            let admitted = scheme == Scheme::Window || processor == Processor::Any;
            assert_eq!(demanded.admits(made).is_ok(), admitted, "{made:?}");
        }
    }

    #[test]
    fn an_object_keeps_what_is_demanded_or_is_told_what_it_was_made_for() {
        let demanded = Contract::of(Target::Hypervisor);
        for scheme in Scheme::ALL {
            assert_eq!(demanded.admits(made(scheme, Target::Hypervisor)), Ok(()));
            let said = demanded.admits(made(scheme, Target::Linux)).unwrap_err();
            assert!(
                said.contains("`linux`") && said.contains("`hypervisor`"),
                "{said}"
            );
        }
        let demanded = demanded.with(Scheme::Stlb);
        assert_eq!(
            demanded.admits(made(Scheme::Stlb, Target::Hypervisor)),
            Ok(())
        );
        let said = demanded
            .admits(made(Scheme::Paper, Target::Hypervisor))
            .unwrap_err();
        assert!(
            said.contains("`paper`") && said.contains("`stlb`"),
            "{said}"
        );
    }

    #[test]
    fn a_scheme_is_refused_for_a_target_that_it_does_not_serve() {
        let demanded = Contract::of(Target::Linux);
        assert_eq!(demanded.admits(made(Scheme::Stlb, Target::Linux)), Ok(()));
        let said = demanded
            .admits(made(Scheme::Window32, Target::Linux))
            .unwrap_err();
        assert!(
            said.contains("`window32`") && said.contains("`linux`"),
            "{said}"
        );
    }

    #[test]
    fn which_accesses_are_confined_is_demanded_and_never_taken_from_the_object() {
        let full = made(Scheme::Stlb, Target::Linux);
        let stores = MadeFor {
            accesses: Accesses::Stores,
            ..full
        };
        let demanded = Contract::of(Target::Linux);
        let said = demanded.admits(stores).unwrap_err();
        assert!(said.contains("`all` accesses"), "{said}");
        let demanded = demanded.confining(Accesses::Stores);
        assert_eq!(demanded.admits(stores), Ok(()));
        let said = demanded.admits(full).unwrap_err();
        assert!(said.contains("`stores` alone is"), "{said}");
    }

    #[test]
    fn a_hypervisor_has_no_contract_for_stores_alone() {
        let demanded = Contract::of(Target::Hypervisor).confining(Accesses::Stores);
        for scheme in Scheme::ALL {
            let stores = MadeFor {
                accesses: Accesses::Stores,
                ..made(scheme, Target::Hypervisor)
            };
            let said = demanded.admits(stores).unwrap_err();
            assert!(said.contains("`hypervisor`"), "{said}");
        }
    }
}
