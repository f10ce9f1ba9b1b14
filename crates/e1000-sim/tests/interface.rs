//! kernel.h and its mirror in dom0/interface.rs have one layout: a C program
//! made from the header prints sizes and offsets.

use std::fmt::Write as _;
use std::process::Command;

use e1000_sim::dom0::interface::*;

/// Name in C, size, names and offsets of fields.
type Mirrored = (&'static str, usize, &'static [(&'static str, usize)]);

macro_rules! mirrored {
    ($($rust:ident is $c:literal),* $(,)?) => {
        [$(($c, size_of::<$rust>(), $rust::FIELDS)),*]
    };
}

#[test]
fn structures_have_the_headers_layout() {
    let all: [Mirrored; 11] = mirrored![
        Bar is "kernel_bar",
        BootInfo is "kernel_boot_info",
        ModuleInfo is "kernel_module_info",
        DriverInfo is "kernel_drvinfo",
        Link is "kernel_link",
        RingParameters is "kernel_ringparam",
        NamedValue is "kernel_named_value",
        Statistics is "kernel_statistics",
        Info is "kernel_info",
        IrqState is "kernel_irq_state",
        Counters is "kernel_counters",
    ];
    let (mut program, mut expected) = (String::new(), String::new());
    program += "#include <stddef.h>\n#include <stdio.h>\n#include \"kernel.h\"\nint main(void) {\n";
    let mut line = |expression: String, value: usize| {
        let _ = writeln!(
            program,
            "printf(\"{expression} %zu\\n\", (size_t){expression});"
        );
        let _ = writeln!(expected, "{expression} {value}");
    };
    line("KERNEL_CPUS".to_owned(), KERNEL_CPUS);
    line("KERNEL_BARS".to_owned(), KERNEL_BARS);
    line("KERNEL_NAME".to_owned(), KERNEL_NAME);
    for (name, size, fields) in all {
        line(format!("sizeof(struct {name})"), size);
        for (field, offset) in fields {
            line(format!("offsetof(struct {name}, {field})"), *offset);
        }
    }
    program += "return 0;\n}\n";
    assert_eq!(run(&program), expected);
}

/// Compiles and runs a C program that includes kernel.h.
fn run(program: &str) -> String {
    let base = std::env::temp_dir().join(format!("twin-layout-{}", std::process::id()));
    let (source, binary) = (base.with_extension("c"), base.with_extension("bin"));
    std::fs::write(&source, program).expect("written");
    let status = Command::new("cc")
        .args(["-I", concat!(env!("CARGO_MANIFEST_DIR"), "/kernel"), "-o"])
        .args([&binary, &source])
        .status()
        .expect("a C compiler");
    assert!(status.success());
    let output = Command::new(&binary).output().expect("runs");
    let _ = (std::fs::remove_file(&source), std::fs::remove_file(&binary));
    String::from_utf8(output.stdout).expect("text")
}
