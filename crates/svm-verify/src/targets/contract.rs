//! The contract that is demanded of an object. The object's own note must not choose it:
//! a hostile object would choose the contract that allows the most.

use twin_abi::{Scheme, Target};

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
}

impl Contract {
    /// The rules of a target, with the scheme of the object's note.
    pub const fn of(target: Target) -> Contract {
        Contract {
            target,
            scheme: None,
        }
    }

    /// The same in one scheme alone.
    pub const fn with(self, scheme: Scheme) -> Contract {
        Contract {
            scheme: Some(scheme),
            ..self
        }
    }

    /// Whether an object that was made for `scheme` and `target` can keep it.
    ///
    /// # Errors
    /// What it was made for instead.
    pub(crate) fn admits(self, scheme: Scheme, target: Target) -> Result<(), String> {
        if self.target == Target::Process {
            return Err("nothing is proved of programs (`process`)".to_owned());
        }
        let (made, demanded) = (target.as_str(), self.target.as_str());
        if made != demanded {
            return Err(format!(
                "it was made for the contract `{made}`, `{demanded}` is demanded"
            ));
        }
        match self.scheme {
            Some(wanted) if wanted != scheme => Err(format!(
                "it translates by the scheme `{}`, `{}` is demanded",
                scheme.as_str(),
                wanted.as_str()
            )),
            _ if Rules::of(target, scheme).is_none() => Err(format!(
                "the scheme `{}` is not one of the target `{made}`",
                scheme.as_str()
            )),
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_keeps_what_is_demanded_or_is_told_what_it_was_made_for() {
        let demanded = Contract::of(Target::Hypervisor);
        for scheme in Scheme::ALL {
            assert_eq!(demanded.admits(scheme, Target::Hypervisor), Ok(()));
            let said = demanded.admits(scheme, Target::Linux).unwrap_err();
            assert!(
                said.contains("`linux`") && said.contains("`hypervisor`"),
                "{said}"
            );
        }
        let demanded = demanded.with(Scheme::Stlb);
        assert_eq!(demanded.admits(Scheme::Stlb, Target::Hypervisor), Ok(()));
        let said = demanded
            .admits(Scheme::Paper, Target::Hypervisor)
            .unwrap_err();
        assert!(
            said.contains("`paper`") && said.contains("`stlb`"),
            "{said}"
        );
    }

    #[test]
    fn a_scheme_is_refused_for_a_target_that_it_does_not_serve() {
        let demanded = Contract::of(Target::Linux);
        assert_eq!(demanded.admits(Scheme::Stlb, Target::Linux), Ok(()));
        let said = demanded
            .admits(Scheme::Window32, Target::Linux)
            .unwrap_err();
        assert!(
            said.contains("`window32`") && said.contains("`linux`"),
            "{said}"
        );
    }
}
