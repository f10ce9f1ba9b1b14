//! `--driver-args`: the driver's own parameters, which it reads as it does from insmod.
//!
//! ```text
//! words ─> NAME=VALUE, and the module has such a parameter ─> dom0's kernel ─> the driver
//! ```
//!
//! The kernel reads the values, and the driver decides what they mean: e1000 replaces some
//! that are out of its range by its default and says so in the kernel's log.

use command_line::failure::Failure;
use command_line::input::Input;
use elf_loader::modinfo;

use crate::run::unreadable;

/// The parameters as one line.
///
/// # Errors
/// A word that is no parameter, or none of this module's.
pub fn checked(words: &[String], module: &Input) -> Result<String, Failure> {
    let object = module.object().map_err(unreadable)?;
    let known: Vec<&str> = modinfo::values_of_key(&object, "parmtype")
        .into_iter()
        .filter_map(|parameter| parameter.split(':').next())
        .collect();
    let words: Vec<&str> = words.iter().flat_map(|w| w.split_whitespace()).collect();
    for word in &words {
        check(word, &known)
            .map_err(|why| Failure::Usage(format!("--driver-args {word}: {why}")))?;
    }
    Ok(words.join(" "))
}

fn check(word: &str, known: &[&str]) -> Result<(), String> {
    let Some((name, value)) = word.split_once('=') else {
        return Err("a parameter is NAME=VALUE".to_owned());
    };
    if !known.contains(&name) {
        let known = known.join(", ");
        return Err(format!("the module has no such parameter; it has {known}"));
    }
    if value.is_empty() {
        return Err("a parameter is NAME=VALUE, and the value is missing".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_is_a_name_that_the_module_has_and_a_value() {
        let known = ["debug", "TxDescriptors"];
        assert_eq!(check("debug=1", &known), Ok(()));
        assert_eq!(check("TxDescriptors=512,64", &known), Ok(()));
        for wrong in ["debug", "debug=", "Debug=1", "=1", ""] {
            assert!(check(wrong, &known).is_err(), "{wrong:?}");
        }
    }
}
