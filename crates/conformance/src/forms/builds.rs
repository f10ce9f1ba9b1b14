//! The compilers and options that random functions are compiled with: those of kernels, and
//! others that change the shape of code.

use std::fmt;
use std::path::Path;
use std::process::Command;

use process_lab::error::Error;
use process_lab::random::{Random, seed};

use super::functions;

/// What kernels are compiled with. Numbers wrap around, and there is no library.
const KERNEL: [&str; 15] = [
    "-w",
    "-ffreestanding",
    "-fno-strict-aliasing",
    "-fwrapv",
    "-fno-pic",
    "-fno-pie",
    "-mno-red-zone",
    "-mcmodel=kernel",
    "-mno-sse",
    "-mno-mmx",
    "-mno-80387",
    "-fno-asynchronous-unwind-tables",
    "-fno-stack-protector",
    "-fcf-protection=none",
    "-c",
];

const LEVELS: [&str; 8] = ["-O2", "-Os", "-O2", "-O1", "-O3", "-O2", "-Os", "-O0"];

const GCC: [&str; 43] = [
    "",
    "-mpreferred-stack-boundary=3 -fno-jump-tables -mfunction-return=thunk-extern \
     -mindirect-branch=thunk-extern -mindirect-branch-register",
    "-mpreferred-stack-boundary=3 -fno-jump-tables",
    "-fno-omit-frame-pointer -fno-jump-tables",
    "-mpush-args -mno-accumulate-outgoing-args",
    "-maccumulate-outgoing-args",
    "-mno-push-args",
    "-mtune=k8 -fno-jump-tables",
    "-mtune=atom -fno-jump-tables",
    "-mtune=bdver4 -mpush-args",
    "-mtune=core2 -fno-toplevel-reorder",
    "-mpreferred-stack-boundary=5 -fno-jump-tables",
    "-fno-ipa-ra -fno-jump-tables",
    "-fno-optimize-sibling-calls",
    "-minline-all-stringops -fno-jump-tables",
    "-mstringop-strategy=rep_8byte",
    "-mstringop-strategy=unrolled_loop",
    "-mstringop-strategy=rep_byte -fno-jump-tables",
    "-fira-region=all -fcaller-saves",
    "-flive-range-shrinkage -fschedule-insns -fno-jump-tables",
    "-fno-shrink-wrap -fno-jump-tables",
    "-fno-shrink-wrap-separate -frename-registers",
    "-march=haswell -mno-avx -fno-jump-tables",
    "-fno-inline -fno-ipa-cp -fno-ipa-sra -fno-jump-tables",
    "-funroll-all-loops -fno-jump-tables",
    "-fstack-clash-protection -fno-jump-tables",
    "-fno-stack-protector -mstackrealign -fno-jump-tables",
    "-fno-tree-ter -fno-tree-coalesce-vars -fno-split-wide-types",
    "-fno-if-conversion -fno-if-conversion2 -fno-jump-tables",
    "-fzero-call-used-regs=used-gpr -fno-jump-tables",
    "-fno-dce -fno-dse -fno-defer-pop",
    "-mharden-sls=all -fno-jump-tables",
    "-fno-peephole2 -fno-cprop-registers",
    "-fselective-scheduling2 -fno-jump-tables",
    "-ffunction-sections -fno-reorder-blocks-and-partition",
    "-mcmodel=large -fno-jump-tables",
    // As distributions compile by default.
    "-mcmodel=small -fpie",
    "-mcmodel=small -fpie -fcf-protection=full",
    "-mcmodel=small -fpie -ffunction-sections -fno-reorder-blocks",
    "-mcmodel=small -fpie -fno-omit-frame-pointer -fno-ipa-ra",
    "-mcmodel=small -fpie -fno-tree-pre -fschedule-insns",
    "-mcmodel=small -fpic",
    "-mcmodel=small -fpic -fno-plt -fcf-protection=full",
];

const CLANG: [&str; 22] = [
    "",
    "-fno-jump-tables",
    "-fno-omit-frame-pointer -mno-omit-leaf-frame-pointer -fno-jump-tables",
    "-mtune=atom -fno-jump-tables",
    "-mtune=znver3",
    "-mretpoline-external-thunk -fno-jump-tables",
    "-fno-optimize-sibling-calls -fno-jump-tables",
    "-fno-inline -fno-jump-tables",
    "-funroll-loops -fno-jump-tables",
    "-mllvm -inline-threshold=2000",
    "-mstack-alignment=8 -fno-jump-tables",
    "-mstack-alignment=32 -mstackrealign -fno-jump-tables",
    "-march=haswell -mno-avx -fno-jump-tables",
    "-mllvm -enable-ipra -fno-jump-tables",
    "-ffunction-sections",
    "-mllvm -enable-shrink-wrap=0 -fno-jump-tables",
    "-mllvm -x86-use-base-pointer=1 -fno-jump-tables",
    "-fcf-protection=branch -fno-jump-tables",
    // Variables of other objects are read through a table of addresses.
    "-mcmodel=small -fpie",
    "-mcmodel=small -fpie -fdirect-access-external-data -fcf-protection=full",
    "-mcmodel=small -fpie -ffunction-sections -mtune=atom",
    "-mcmodel=small -fpic -fno-plt",
];

/// Those of these compilers that are installed.
pub fn installed(compilers: &[String]) -> Vec<String> {
    let starts = |name: &&String| {
        let mut compiler = Command::new(name);
        compiler.arg("--version").output().is_ok()
    };
    compilers.iter().filter(starts).cloned().collect()
}

/// One way to compile a program.
#[derive(Clone, Debug)]
pub struct Build {
    /// The command.
    pub compiler: String,
    /// What it gets besides the options of kernels.
    pub options: Vec<&'static str>,
}

impl fmt::Display for Build {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.compiler, self.options.join(" "))
    }
}

impl Build {
    /// Build `number` of a program, with one of these compilers.
    pub fn of(compilers: &[String], program: u64, number: u64) -> Build {
        let mut random = Random::new(seed("build", program) ^ number << 32);
        let compiler = &compilers[random.below(compilers.len() as u64) as usize];
        let shapes: &[&str] = match compiler.contains("clang") {
            true => &CLANG,
            false => &GCC,
        };
        let level = LEVELS[random.below(LEVELS.len() as u64) as usize];
        let shape = shapes[random.below(shapes.len() as u64) as usize];
        Build {
            compiler: compiler.clone(),
            options: [level]
                .into_iter()
                .chain(shape.split_whitespace())
                .collect(),
        }
    }

    /// Compiles a program in `directory`. `None` if the compiler does not take it: it does
    /// not know an option.
    ///
    /// # Errors
    /// The file cannot be written, or there is no such compiler.
    pub fn compile(&self, program: u64, directory: &Path) -> Result<Option<Vec<u8>>, Error> {
        let (source, object) = (directory.join("f.c"), directory.join("f.o"));
        std::fs::write(&source, functions::program(program))
            .map_err(Error::system("writing a program"))?;
        let mut compiler = Command::new(&self.compiler);
        let compiler = compiler.args(KERNEL).args(&self.options);
        let output = compiler.arg(&source).arg("-o").arg(&object).output();
        let output = output.map_err(Error::system("starting a compiler"))?;
        if !output.status.success() {
            return Ok(None);
        }
        let bytes = std::fs::read(&object).map_err(Error::system("reading an object"))?;
        Ok(Some(bytes))
    }
}
