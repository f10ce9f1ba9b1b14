//! Compiles the check that structures of the runtime have the layouts of
//! `packets/rings.rs`.

const RUNTIME: &str = "../../runtime";

fn main() {
    println!("cargo::rerun-if-changed={RUNTIME}/include");
    println!("cargo::rerun-if-changed=src/packets/layout.c");
    cc::Build::new()
        .include(format!("{RUNTIME}/include"))
        .file("src/packets/layout.c")
        .compile("twin-layout");
}
