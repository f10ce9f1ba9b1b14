//! Assembles the runtime that is linked into modules rewritten for a stock
//! kernel, once for each scheme and way to return.

use std::fmt::Write;
use std::path::PathBuf;

use twin_abi::{Scheme, Target};

const SOURCE: &str = "../../runtime/platform/linux/slow.S";
const INCLUDE: &str = "../../runtime/include";

fn main() {
    println!("cargo::rerun-if-changed={SOURCE}");
    println!("cargo::rerun-if-changed={INCLUDE}");
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let mut arms = String::new();
    let schemes = Scheme::ALL.into_iter();
    let schemes = schemes.filter(|scheme| scheme.serves(Target::Linux));
    for (scheme, thunk) in schemes.flat_map(|s| [(s, false), (s, true)]) {
        // `twin` links it into modules, not into itself: no position independence.
        // No debug information: it would name directories of this machine.
        let objects = cc::Build::new()
            .include(INCLUDE)
            .define("TWIN_SCHEME", (scheme as u32).to_string().as_str())
            .define("TWIN_RETURN_THUNK", u32::from(thunk).to_string().as_str())
            .debug(false)
            .pic(false)
            .file(SOURCE)
            .compile_intermediates();
        let returns = if thunk { "thunk" } else { "plain" };
        let name = format!("{}-{returns}.o", scheme.as_str());
        std::fs::rename(&objects[0], out.join(&name)).expect("the object is in OUT_DIR");
        let arm = format!("(Scheme::{scheme:?}, {thunk}) => include_bytes!({name:?}),");
        writeln!(arms, "{arm}").expect("a string");
    }
    let text = format!("match (scheme, returns == Returns::Thunk) {{\n{arms}_ => &[],\n}}\n");
    std::fs::write(out.join("objects.rs"), text).expect("OUT_DIR can be written");
}
