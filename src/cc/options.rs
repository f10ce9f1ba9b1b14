//! Options of compilers: which have a value, and which step each is for.
//!
//! gcc and clang share these (gcc manual, 3.1 to 3.3 and 3.13). All options that are
//! not listed have no separate value.

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// Options whose value is the next argument.
pub(super) const WITH_VALUE: [&str; 77] = [
    "-I",
    "-D",
    "-U",
    "-L",
    "-l",
    "-B",
    "-T",
    "-u",
    "-z",
    "-A",
    "-F",
    "-include",
    "-imacros",
    "-isystem",
    "-iquote",
    "-idirafter",
    "-iprefix",
    "-iwithprefix",
    "-iwithprefixbefore",
    "-isysroot",
    "-iwithsysroot",
    "-iframework",
    "-isystem-after",
    "-include-pch",
    "-imultilib",
    "-MF",
    "-MT",
    "-MQ",
    "-MJ",
    "-e",
    "-R",
    "-G",
    "-Xanalyzer",
    "-cxx-isystem",
    "-ivfsoverlay",
    "-working-directory",
    "--serialize-diagnostics",
    "-dependency-file",
    "-dependency-dot",
    "--config",
    "-specs",
    "-Xlinker",
    "-Xassembler",
    "-Xpreprocessor",
    "-Xclang",
    "-mllvm",
    "-target",
    "-arch",
    "--param",
    "-aux-info",
    "-dumpbase",
    "-dumpdir",
    "-dumpbase-ext",
    "--sysroot",
    "-wrapper",
    "-J",
    "-fintrinsic-modules-path",
    "-Tbss",
    "-Tdata",
    "-Ttext",
    "-b",
    "-init",
    "-rpath",
    "-framework",
    "-weak_framework",
    "-install_name",
    "-filelist",
    "-resource-dir",
    "-mthread-model",
    "-fdebug-compilation-dir",
    "-fmodules-user-build-path",
    "-serialize-diagnostics",
    "-stdlib++-isystem",
    "--system-header-prefix",
    "--no-system-header-prefix",
    "--dyld-prefix",
    "-Xopenmp-target",
];

/// Options that make the compiler print or write something that is no code.
const NO_CODE: [&str; 14] = [
    "-E", "-M", "-MM", "-fsyntax-only", "-###", "--help", "--version", "-dumpversion",
    "-dumpmachine", "-dumpspecs", "--analyze", "--precompile", "-emit-ast", "-extract-api",
];

/// What follows `-Xclang` where clang prints, or writes something that is no code, whatever
/// else it is told to make.
const NO_CODE_OF_CLANG: [&str; 18] = [
    "-ast-dump",
    "-ast-dump-all",
    "-ast-dump-lookups",
    "-ast-dump=json",
    "-ast-list",
    "-ast-print",
    "-ast-view",
    "-analyze",
    "-dump-raw-tokens",
    "-dump-tokens",
    "-Eonly",
    "-emit-codegen-only",
    "-emit-html",
    "-emit-llvm-only",
    "-emit-pch",
    "-fsyntax-only",
    "-init-only",
    "-print-preamble",
];

/// Whether clang makes no code if this follows `-Xclang`.
pub(super) fn makes_no_code_of_clang(value: &str) -> bool {
    NO_CODE_OF_CLANG.contains(&value)
}

/// What follows `-print-` or `--print-` where a compiler only prints. Others compile all the
/// same, as `-print-objc-runtime-info` does.
const PRINTS: [&str; 22] = [
    "search-dirs",
    "libgcc-file-name",
    "file-name",
    "prog-name",
    "multiarch",
    "multi-directory",
    "multi-lib",
    "multi-os-directory",
    "multi-flags-experimental",
    "sysroot",
    "sysroot-headers-suffix",
    "resource-dir",
    "runtime-dir",
    "targets",
    "target-triple",
    "effective-triple",
    "supported-cpus",
    "supported-extensions",
    "enabled-extensions",
    "diagnostic-categories",
    "diagnostic-options",
    "library-module-manifest-path",
];

/// Whether under an option the compiler makes no code.
pub(super) fn makes_no_code(text: &str) -> bool {
    let printed = text.trim_start_matches('-').strip_prefix("print-");
    let name = printed.map(|what| what.split('=').next().unwrap_or_default());
    NO_CODE.contains(&text)
        || text.starts_with("--help=")
        || name.is_some_and(|name| PRINTS.contains(&name))
}

/// Whether an option, with its value, may bring a file with code into any source: by its
/// name, or by other options, which are in a file.
pub(super) fn may_include(words: &[OsString]) -> bool {
    const PARTS: [&str; 3] = ["-include", "-specs", "--config"];
    let has = |word: &OsString| {
        PARTS
            .iter()
            .any(|part| word.to_string_lossy().contains(part))
    };
    words.iter().any(has)
}

/// Whether an option, with its value, makes the assembler print something and make no object.
pub(super) fn is_assemblers_help(words: &[OsString]) -> bool {
    const HELP: [&str; 3] = ["--version", "--help", "--target-help"];
    let value = words.last().map(|word| word.to_string_lossy());
    value.is_some_and(|value| match value.strip_prefix("-Wa,") {
        Some(several) => several.split(',').any(|one| HELP.contains(&one)),
        None => words[0] == "-Xassembler" && HELP.contains(&&*value),
    })
}

/// Options under which the linker makes the code, where nothing rewrites it, under which
/// an access may go somewhere else, or after which what the compiler makes is no code of
/// this processor's 64-bit mode.
pub(super) fn is_refused(text: &str) -> Option<&'static str> {
    match text {
        "-flto" => Some("makes code in the linker, where nothing rewrites it; add -fno-lto"),
        _ if text.starts_with("-flto=") => is_refused("-flto"),
        _ if text.starts_with("-triple=") => is_refused("-triple"),
        "-fnon-call-exceptions" => Some(
            "lets an access that faults throw, and a rewritten one is several instructions; \
             leave it out, or add -fno-non-call-exceptions",
        ),
        "-emit-llvm" | "-emit-llvm-bc" => {
            Some("makes no code that could be rewritten; leave it out")
        }
        // Behind `-Xclang`.
        "-triple" => Some("chooses what the driver does not know of; give --target=TRIPLE"),
        "-fno-syntax-only" => Some("takes back -fsyntax-only; leave both out"),
        "-m32" | "-mx32" | "-m16" | "-miamcu" => {
            Some("makes code that is not of the 64-bit ABI; leave it out, or add -m64")
        }
        _ => None,
    }
}

/// The option that takes back a refused one.
pub(super) fn takes_back(text: &str, refused: &str) -> bool {
    match text {
        "-fno-lto" => refused.starts_with("-flto"),
        "-fno-non-call-exceptions" => refused == "-fnon-call-exceptions",
        "-m64" => refused.starts_with("-m"),
        _ => false,
    }
}

/// Whether an option is one that something is made of here.
pub(super) fn has_meaning(text: &str) -> bool {
    const TAKING_BACK: [&str; 2] = ["-fno-lto", "-fno-non-call-exceptions"];
    makes_no_code(text)
        || is_refused(text).is_some()
        || has_auxiliary(text)
        || TAKING_BACK.contains(&text)
}

/// Whether an option makes the compiler leave files beside its output, or read such.
pub(super) fn has_auxiliary(text: &str) -> bool {
    const PREFIXES: [&str; 16] = [
        "--coverage",
        "-coverage",
        "-ftest-coverage",
        "-fprofile-",
        "-fauto-profile",
        "-fbranch-probabilities",
        "-gsplit-dwarf",
        "-save-temps",
        "--save-temps",
        "-fstack-usage",
        "-fcallgraph-info",
        "-fdump-",
        "-ftime-trace",
        "-fsave-optimization-record",
        "-fopt-info",
        "-d",
    ];
    const OTHERS: [&str; 4] = ["-dumpbase", "-dumpdir", "-dumpbase-ext", "-dM"];
    PREFIXES.iter().any(|prefix| text.starts_with(prefix)) && !OTHERS.contains(&text)
}

/// Whether an option that begins with `-o` does not name the output.
pub(super) fn is_no_output(text: &str) -> bool {
    text.starts_with("-object") || text == "-offload"
}

/// Languages that are rewritten: what `-x` calls them, and what their files are called.
const C: (&[&str], &[&str]) = (&["c", "cpp-output"], &["c", "i"]);
const CPP: (&[&str], &[&str]) = (
    &[
        "c++",
        "c++-cpp-output",
        "c++-module",
        "c++-module-cpp-output",
    ],
    &[
        "cc", "cp", "cxx", "cpp", "CPP", "c++", "C", "ii", "cppm", "ccm", "cxxm", "c++m", "iim",
    ],
);
const FORTRAN: (&[&str], &[&str]) = (
    &["f77", "f77-cpp-input", "f95", "f95-cpp-input"],
    &[
        "f", "for", "ftn", "f90", "f95", "f03", "f08", "F", "FOR", "fpp", "FPP", "FTN", "F90",
        "F95", "F03", "F08",
    ],
);

/// How the text of an assembly source is got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assembly {
    /// It is the source.
    AsIs,
    /// By the preprocessor.
    Preprocessed,
}

/// Assembly sources, by their names or by `-x`.
pub(super) fn assembly(path: &OsStr, language: Option<&OsStr>) -> Option<Assembly> {
    const PLAIN: (&[&str], &[&str]) = (&["assembler"], &["s"]);
    const PREPROCESSED: (&[&str], &[&str]) = (&["assembler-with-cpp"], &["S", "sx"]);
    if is(path, language, &PLAIN) {
        Some(Assembly::AsIs)
    } else {
        is(path, language, &PREPROCESSED).then_some(Assembly::Preprocessed)
    }
}

/// What clang has compiled halfway, and makes objects of.
const HALFWAY: (&[&str], &[&str]) = (&["ir", "ast", "pcm"], &["bc", "ll", "ast", "pcm"]);

/// Whether an input is C, C++ or Fortran, by what the last `-x` before it said, or else by
/// its name.
pub(super) fn is_rewritten(path: &OsStr, language: Option<&OsStr>) -> bool {
    [C, CPP, FORTRAN].iter().any(|one| is(path, language, one))
}

/// Whether an input that is rewritten is C++ by its name or by `-x`.
pub(super) fn is_cpp(path: &OsStr, language: Option<&OsStr>) -> bool {
    is(path, language, &CPP)
}

/// Whether an input is code that no longer is source, and not yet assembly.
pub(super) fn is_halfway(path: &OsStr, language: Option<&OsStr>) -> bool {
    is(path, language, &HALFWAY)
}

fn is(path: &OsStr, language: Option<&OsStr>, (names, files): &(&[&str], &[&str])) -> bool {
    match language.and_then(OsStr::to_str) {
        Some(name) if name != "none" => names.contains(&name),
        _ => {
            let extension = Path::new(path).extension().and_then(OsStr::to_str);
            extension.is_some_and(|extension| files.contains(&extension))
        }
    }
}

fn starts(words: &[OsString], prefixes: &[&str]) -> bool {
    let first = words[0].to_string_lossy();
    prefixes.iter().any(|prefix| first.starts_with(prefix))
}

/// Whether an option, with its value, means nothing to the compiler proper.
pub(super) fn is_for_linker(words: &[OsString]) -> bool {
    starts(words, &["-Wl,", "-Xlinker", "-l", "-L", "-rpath"])
        || ["-shared", "-s", "-r"].iter().any(|one| words[0] == *one)
}

/// Whether an option, with its value, chooses the assembler or its options, or is passed to
/// it by the compiler (`asm_options` in gcc's `gcc.cc`): the directories of `.include` and
/// `.incbin`, compressed debug information, no warnings.
pub(super) fn is_for_assembler(words: &[OsString]) -> bool {
    starts(
        words,
        &[
            "-Wa,",
            "-Xassembler",
            "-I",
            "-gz",
            "-m64",
            "-m32",
            "-mx32",
            "-B",
            "--target",
            "-target",
            "--sysroot",
            "-fno-integrated-as",
            "-fintegrated-as",
            "-no-integrated-as",
            "-integrated-as",
            "-wrapper",
        ],
    ) || words[0] == "-w"
}

/// Whether an option, with its value, is about the dependency file.
pub(super) fn is_dependency(words: &[OsString]) -> bool {
    let passed = words[0].to_string_lossy();
    starts(words, &["-MD", "-MMD", "-MF", "-MT", "-MQ", "-MP", "-MG"])
        || passed.starts_with("-Wp,") && passed.contains(",-M")
}
