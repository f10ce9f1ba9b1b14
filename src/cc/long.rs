//! Long forms of options: `--output=x.o` is `-o x.o`. gcc calls them aliases (in its
//! sources `common.opt`, `c.opt`, `common.opt` of the driver); clang has most of them.
//! gcc also takes any other `--NAME` for `-fNAME`, and the beginnings of some options for
//! others: `--machine=32` is `-m32` (`option_map` in its `opts-common.cc`).
//!
//! Only those are here that mean something to the wrapper: they have a value that is an
//! argument of its own, or say how far the compiler goes or what it leaves. What the
//! compiler gets is the short form.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;

use super::options::has_meaning;

/// What a long form stands for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Short {
    /// An option, and its value if that follows `=`.
    Option(&'static str, Option<OsString>),
    /// An option with its value in it.
    Joined(OsString),
    /// The beginning of an option, whose end is the next argument.
    Joining(&'static str),
}

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

/// Beginnings of options for others.
const BEGINNINGS: [(&str, &str); 4] = [
    ("--machine=", "-m"),
    ("--machine-", "-m"),
    ("--debug=", "-g"),
    ("--dump=", "-d"),
];

/// The same, where the end is the next argument.
const SEPARATE: [(&str, &str); 3] = [("--machine", "-m"), ("--dump", "-d"), ("--std", "-std=")];

/// The short form of an argument; `None` if it is no long form that is known here. `is_gcc`
/// says whether the compiler is gcc, and is asked only if that matters.
pub(super) fn short(argument: &OsStr, is_gcc: impl Fn() -> bool) -> Option<Short> {
    let find = |table: &[(&str, &'static str)], name: &[u8]| {
        let row = table.iter().find(|(long, _)| long.as_bytes() == name);
        row.map(|(_, short)| *short)
    };
    let bytes = argument.as_bytes();
    if let Some(short) = find(&PLAIN, bytes).or_else(|| find(&VALUED, bytes)) {
        return Some(Short::Option(short, None));
    }
    if let Some(short) = find(&SEPARATE, bytes) {
        // clang has this one, too.
        return (bytes == b"--std" || is_gcc()).then_some(Short::Joining(short));
    }
    let equals = bytes.iter().position(|b| *b == b'=');
    let (name, value) = bytes.split_at(equals.unwrap_or(bytes.len()));
    if let (Some(short), [b'=', value @ ..]) = (find(&VALUED, name), value) {
        return Some(Short::Option(short, Some(OsStr::from_bytes(value).into())));
    }
    let joined = of_gcc(argument.to_str()?)?;
    is_gcc().then(|| Short::Joined(joined.into()))
}

/// What gcc alone takes an argument for.
fn of_gcc(argument: &str) -> Option<String> {
    for (long, short) in BEGINNINGS {
        match argument.strip_prefix(long) {
            Some(rest) if !rest.is_empty() => return Some(format!("{short}{rest}")),
            _ => {}
        }
    }
    let option = format!("-f{}", argument.strip_prefix("--")?);
    has_meaning(&option).then_some(option)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_forms_with_and_without_values() {
        let of = |argument: &str| match short(OsStr::new(argument), || true)? {
            Short::Option(short, None) => Some(short.to_owned()),
            Short::Option(short, Some(value)) => Some(format!("{short} {}", value.display())),
            Short::Joined(option) => option.into_string().ok(),
            Short::Joining(short) => Some(format!("{short}...")),
        };
        assert_eq!(of("--output=a=b.o").as_deref(), Some("-o a=b.o"));
        assert_eq!(of("--output").as_deref(), Some("-o"));
        assert_eq!(of("--assemble").as_deref(), Some("-S"));
        assert_eq!(of("--machine=x32").as_deref(), Some("-mx32"));
        assert_eq!(of("--machine").as_deref(), Some("-m..."));
        assert_eq!(of("--debug=split-dwarf").as_deref(), Some("-gsplit-dwarf"));
        assert_eq!(of("--no-lto").as_deref(), Some("-fno-lto"));
        assert_eq!(of("--profile-arcs").as_deref(), Some("-fprofile-arcs"));
        for other in ["--sysroot=/x", "-o", "--profile", "--machine=", "--help"] {
            assert_eq!(of(other), None, "{other}");
        }
        assert_eq!(short(OsStr::new("--lto"), || false), None);
    }
}
