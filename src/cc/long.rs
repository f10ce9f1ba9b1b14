//! Long forms of options: `--output=x.o` is `-o x.o`. gcc calls them aliases (in its
//! sources `common.opt`, `c.opt`, `common.opt` of the driver); clang has most of them.
//!
//! Only those are here that mean something to the wrapper: they have a value that is an
//! argument of its own, or say how far the compiler goes. What the compiler gets is the
//! short form.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

/// Options with a value, which is the next argument or follows `=`.
const VALUED: [(&str, &str); 24] = [
    ("--output", "-o"),
    ("--language", "-x"),
    ("--define-macro", "-D"),
    ("--undefine-macro", "-U"),
    ("--assert", "-A"),
    ("--include", "-include"),
    ("--imacros", "-imacros"),
    ("--include-directory", "-I"),
    ("--include-directory-after", "-idirafter"),
    ("--include-prefix", "-iprefix"),
    ("--include-with-prefix", "-iwithprefix"),
    ("--include-with-prefix-after", "-iwithprefix"),
    ("--include-with-prefix-before", "-iwithprefixbefore"),
    ("--library", "-l"),
    ("--library-directory", "-L"),
    ("--for-assembler", "-Xassembler"),
    ("--for-linker", "-Xlinker"),
    ("--force-link", "-u"),
    ("--entry", "-e"),
    ("--prefix", "-B"),
    ("--specs", "-specs"),
    ("--dumpbase", "-dumpbase"),
    ("--dumpbase-ext", "-dumpbase-ext"),
    ("--dumpdir", "-dumpdir"),
];

/// Options without one.
const PLAIN: [(&str, &str); 10] = [
    ("--compile", "-c"),
    ("--assemble", "-S"),
    ("--preprocess", "-E"),
    ("--dependencies", "-M"),
    ("--user-dependencies", "-MM"),
    ("--write-dependencies", "-MD"),
    ("--write-user-dependencies", "-MMD"),
    ("--print-missing-file-dependencies", "-MG"),
    ("--shared", "-shared"),
    ("--save-temps", "-save-temps"),
];

/// The short form of an argument, and its value if it has one after `=`; `None` if the
/// argument is no long form that is known here.
pub(super) fn short(argument: &OsStr) -> Option<(&'static str, Option<OsString>)> {
    let find = |table: &[(&str, &'static str)], name: &[u8]| {
        let row = table.iter().find(|(long, _)| long.as_bytes() == name);
        row.map(|(_, short)| *short)
    };
    let bytes = argument.as_bytes();
    if let Some(short) = find(&PLAIN, bytes).or_else(|| find(&VALUED, bytes)) {
        return Some((short, None));
    }
    let equals = bytes.iter().position(|b| *b == b'=')?;
    let value = OsStr::from_bytes(&bytes[equals + 1..]);
    find(&VALUED, &bytes[..equals]).map(|short| (short, Some(value.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_forms_with_and_without_values() {
        let of = |argument: &str| {
            let short = short(OsStr::new(argument))?;
            Some((short.0, short.1.map(|v| v.into_string().expect("UTF-8"))))
        };
        let value = |text: &str| Some(text.to_owned());
        assert_eq!(of("--output=a=b.o"), Some(("-o", value("a=b.o"))));
        assert_eq!(of("--output"), Some(("-o", None)));
        assert_eq!(of("--assemble"), Some(("-S", None)));
        assert_eq!(of("--sysroot=/x"), None);
        assert_eq!(of("-o"), None);
    }
}
