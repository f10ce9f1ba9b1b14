//! Assembles the runtime that is linked into modules rewritten for a stock
//! kernel, once for each scheme.

use std::path::PathBuf;

const SOURCE: &str = "../../runtime/platform/linux/slow.S";
const INCLUDE: &str = "../../runtime/include";

/// Name of the object, and the scheme's name in `twin/abi.h`.
const OBJECTS: [(&str, &str); 2] = [
    ("paper.o", "TWIN_SCHEME_PAPER"),
    ("stlb.o", "TWIN_SCHEME_STLB"),
];

fn main() {
    println!("cargo::rerun-if-changed={SOURCE}");
    println!("cargo::rerun-if-changed={INCLUDE}");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    for (name, scheme) in OBJECTS {
        // `twin` links it into modules, not into itself: no position independence.
        // No debug information: it would name directories of this machine.
        let objects = cc::Build::new()
            .include(INCLUDE)
            .define("TWIN_SCHEME", scheme)
            .debug(false)
            .pic(false)
            .file(SOURCE)
            .compile_intermediates();
        std::fs::rename(&objects[0], out.join(name)).expect("the object is in OUT_DIR");
    }
}
