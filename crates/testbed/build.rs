//! Compiles the check that structures of the runtime are laid out as `live/rings.rs`
//! says.

const RUNTIME: &str = "../../runtime";

fn main() {
    println!("cargo::rerun-if-changed={RUNTIME}/include");
    println!("cargo::rerun-if-changed=src/live/layout.c");
    cc::Build::new()
        .include(format!("{RUNTIME}/include"))
        .file("src/live/layout.c")
        .compile("twin-layout");
}
