//! Inputs of which a payload can be made. Tests change one of them.
#![allow(dead_code, reason = "each test uses its part")]

use std::collections::BTreeMap;

use payload::{
    Dom0, Inputs, Kallsyms, Payload, PayloadCode, PayloadError, Rewritten, Table, sealed,
};

/// All inputs, as texts.
#[derive(Clone)]
pub struct Set {
    pub driver: String,
    pub hot: Option<String>,
    pub runtime: String,
    pub table: String,
    pub kallsyms: String,
    pub sections: BTreeMap<(String, String), u64>,
}

/// Where the sections of the two modules are.
const SECTIONS: [(&str, &str, u64); 5] = [
    ("e1000", ".text", 0xffff_ffff_c040_0000),
    ("e1000", ".rodata", 0xffff_ffff_c041_0000),
    ("e1000", ".data", 0xffff_ffff_c042_0000),
    ("twin_hot", ".text", 0xffff_ffff_c050_0000),
    ("twin_hot", ".data", 0xffff_ffff_c051_0000),
];

impl Set {
    pub fn new() -> Set {
        let sections = SECTIONS.iter();
        let abi = twin_abi::ABI_VERSION.to_string();
        Set {
            driver: include_str!("../inputs/driver.s").replace("ABI", &abi),
            hot: Some(include_str!("../inputs/hot.s").replace("ABI", &abi)),
            runtime: include_str!("../inputs/runtime.s").to_owned(),
            table: include_str!("../inputs/xen.table").to_owned(),
            kallsyms: include_str!("../inputs/kallsyms").to_owned(),
            sections: sections
                .map(|(module, section, at)| (((*module).into(), (*section).into()), *at))
                .collect(),
        }
    }

    pub fn build(&self) -> Result<Payload, PayloadError> {
        let driver = assemble(&self.driver);
        let hot = self.hot.as_deref().map(assemble);
        let runtime = assemble(&self.runtime);
        let object = |bytes| elf_loader::read(bytes).expect("what the assembler made");
        let hot = hot.as_deref().map(object);
        build(&object(&driver), hot.as_ref(), &object(&runtime), self)
    }
}

/// A payload of these objects and the other texts of the set.
pub fn build(
    driver: &elf_loader::Object<'_>,
    hot: Option<&elf_loader::Object<'_>>,
    runtime: &elf_loader::Object<'_>,
    set: &Set,
) -> Result<Payload, PayloadError> {
    // What is cut off stays so.
    let whole = set.table.ends_with('\n');
    let table = if whole {
        sealed(&set.table)
    } else {
        set.table.clone()
    };
    make(driver, hot, runtime, &table, set)
}

/// The same with a table as it is.
pub fn make(
    driver: &elf_loader::Object<'_>,
    hot: Option<&elf_loader::Object<'_>>,
    runtime: &elf_loader::Object<'_>,
    table: &str,
    set: &Set,
) -> Result<Payload, PayloadError> {
    let dom0 = Dom0 {
        symbols: Kallsyms::parse(&set.kallsyms)?,
        sections: set.sections.clone(),
    };
    payload::build(&Inputs {
        driver: Rewritten {
            object: driver,
            module: "e1000",
        },
        hot: hot.map(|object| Rewritten {
            object,
            module: "twin_hot",
        }),
        runtime,
        table: &Table::parse(table)?,
        dom0: &dom0,
    })
}

pub fn assemble(text: &str) -> Vec<u8> {
    let options = ["--64", "-mx86-used-note=no", "-mrelax-relocations=no"];
    filetests::assemble(text, &options)
}

/// The code and the text of a refusal, or the codes of violations.
pub fn refused(result: Result<Payload, PayloadError>) -> (Option<PayloadCode>, String) {
    match result {
        Ok(_) => panic!("a payload was made"),
        Err(PayloadError::Refused(refusal)) => (Some(refusal.code), refusal.why),
        Err(PayloadError::Violated { violations, .. }) => {
            let codes: Vec<&str> = violations.list.iter().map(|v| v.code.as_str()).collect();
            (None, codes.join(" "))
        }
    }
}
