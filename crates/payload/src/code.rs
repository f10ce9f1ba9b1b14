//! The stable codes of refusals, and their explanations, printed by `twin explain CODE` and
//! collected in `docs/troubleshooting.md`.

use twin_abi::explanation::{Example, Explanation};

twin_abi::listed! {
    /// The stable code of a reason why no payload is made.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum PayloadCode {
        /// The table of the hypervisor's build cannot be read.
        Table => "payload-table",
        /// The table is of another build.
        BuildId => "payload-build-id",
        /// The table lacks a number or a function.
        NoValue => "payload-value",
        /// dom0's symbols or sections cannot be read.
        Dom0 => "payload-dom0",
        /// A name that has no address in dom0, or several.
        NoAddress => "payload-address",
        /// An address of dom0 does not fit where the code has it.
        Overflow => "payload-overflow",
        /// Code with a translation table.
        Scheme => "payload-scheme",
        /// Code with vector registers.
        Vectors => "payload-vectors",
        /// A name that nobody defines.
        Undefined => "payload-undefined",
        /// A name in what Xen frees after it has started.
        Init => "payload-init",
        /// A name that several functions or parts have.
        Ambiguous => "payload-ambiguous",
        /// A relocation that Xen's loader refuses.
        Relocation => "payload-relocation",
        /// A section or symbol that Xen's loader refuses, or that would mean something else.
        Section => "payload-section",
        /// More than Xen's loader takes.
        Limit => "payload-limit",
        /// A function that cannot be replaced.
        Replace => "payload-replace",
        /// The finished payload is not what it has to be.
        Check => "payload-check",
    }
}

impl PayloadCode {
    /// What it means, why it is refused, what to do, an example.
    pub fn explanation(self) -> Explanation {
        let (meaning, why, remedy, example) = text(self);
        Explanation {
            meaning,
            why,
            remedy,
            example: Example::Text(example),
        }
    }
}

type Text = (&'static str, &'static str, &'static str, &'static str);

fn text(code: PayloadCode) -> Text {
    match code {
        PayloadCode::Table => (
            "The table of a hypervisor's build cannot be read: the message has the line.",
            "Offsets and symbols come from it. A number that was misread would be an address.",
            "Make it again: `sh scripts/xen-table.sh PACKAGE.deb` writes one from the package itself.",
            "twin-xen-table 1\n# this twin reads version 2",
        ),
        PayloadCode::BuildId => (
            "The running hypervisor has another build-id than the table.",
            "Each build has its structures and functions elsewhere. Xen's loader would refuse the payload too, by the same number.",
            "Make a table of the package that is running, with scripts/xen-table.sh; after an update reboot first.",
            "$ twin payload ... --build-id $(xl info | sed -n 's/^build_id *: //p')",
        ),
        PayloadCode::NoValue => (
            "The runtime needs a number of the hypervisor's build that the table does not have.",
            "Another build's number, or a guess, would be a wrong address inside the hypervisor.",
            "Make the table again with the scripts/xen-table.sh of this release.",
            "extern const uint64_t twin_value_domain_dirty_cpumask;",
        ),
        PayloadCode::Dom0 => (
            "The text of /proc/kallsyms or the addresses of sections cannot be read, or all addresses are zero.",
            "The code has dom0's addresses as constants.",
            "Copy both as root in dom0: others see zeroes (kptr_restrict).",
            "$ cat /proc/kallsyms\n0000000000000000 T startup_64",
        ),
        PayloadCode::NoAddress => (
            "The code refers to a section or symbol of dom0 that has no address there, or several.",
            "It was rewritten from another module than the one that is loaded, or a part was freed after the module's start.",
            "Rewrite the very module that dom0 has loaded, and copy kallsyms and sections while it is loaded.",
            "twin_vm:.rodata, and no D/e1000/.rodata",
        ),
        PayloadCode::Overflow => (
            "An address of dom0 does not fit into 32 bits that are extended by their sign.",
            "The processor would reach another address.",
            "Load the module at its usual place: dom0's modules are in the last 2 GiB of the address space.",
            "mov %gs:sym,%eax, and sym is at 0x123456789000",
        ),
        PayloadCode::Scheme => (
            "The code looks addresses up in a table.",
            "Its address is 32 bits in each check, and Xen has no memory there.",
            "Rewrite with --scheme window, or window32 if dom0 suits it.",
            "$ twin rewrite --scheme stlb e1000.ko -o e1000.twin.o",
        ),
        PayloadCode::Vectors => (
            "The code may use vector registers.",
            "In Xen they hold what a guest had there, and nothing saves them around the driver.",
            "Compile the driver without them (-mno-sse -mno-avx), as kernels are.",
            "movups (%rdi),%xmm0",
        ),
        PayloadCode::Undefined => (
            "The runtime refers to a name that neither it nor this build of Xen defines.",
            "Xen's loader would refuse the payload.",
            "Build the runtime for this version of Xen; a static function is found by its plain name if no other has it.",
            "extern void no_such_function(void);",
        ),
        PayloadCode::Init => (
            "The runtime refers to a name in Xen's start-up code or data.",
            "Xen frees that memory after it has started, and its loader resolves the name all the same: the call would run whatever is there then.",
            "Do without it, or find the function that Xen uses after its start.",
            "extern int request_irq(...);    # Xen has one, in .init.text",
        ),
        PayloadCode::Ambiguous => (
            "A name means several things: static functions of several files, or routines of driver and hot routines.",
            "The first of them would be taken, silently.",
            "Say which is meant: a static function of Xen is `file.c#name`.",
            "init_one, which two files of Xen have",
        ),
        PayloadCode::Relocation => (
            "An input has a relocation that Xen's loader does not take, or one that cannot be resolved.",
            "The loader knows R_X86_64_64, PC32 and PLT32. It has no table of addresses (GOT), and the payload's addresses do not fit into 32 bits.",
            "Compile the runtime with -fpic -fvisibility=hidden -fno-jump-tables, and declare Xen's symbols hidden.",
            "mov foo@GOTPCREL(%rip),%rax",
        ),
        PayloadCode::Section => (
            "An input has a section or symbol that a payload cannot have.",
            "Sections that are writable and executable are refused by Xen's loader. Some names have a meaning of their own there.",
            "Leave it out; the message names it.",
            ".section .wx,\"awx\"",
        ),
        PayloadCode::Limit => (
            "The payload is larger than Xen's loader takes: 2 MiB in all, 1023 sections, names of 127 characters.",
            "The loader refuses it without saying why.",
            "Leave out what is not needed: debug information, sections of one function each.",
            "static char buffer[3 << 20];",
        ),
        PayloadCode::Replace => (
            "A function of Xen's cannot be replaced as the runtime asks for.",
            "Xen writes a jump of 5 bytes over its beginning. What it does, and that it is this function, has to be known: the table has the bytes.",
            "Make the table again with the scripts/xen-table.sh of this release, which knows what the runtime replaces.",
            "a row of .twin.replace without a line `head` in the table",
        ),
        PayloadCode::Check => (
            "The finished payload was read again and is not what it has to be.",
            "What the builder did is not trusted: no output is written unless it is proved.",
            "Please report it with the inputs, the command line and `twin --version`.",
            "driver code refers to a symbol of Xen's",
        ),
    }
}
