//! The explanation of each refusal's code: a flat table, printed by `twin explain
//! CODE` and collected in `docs/troubleshooting.md`. A test assembles the examples in
//! assembly and checks that they are refused.

use twin_abi::explanation::{Example, Explanation};

use crate::refusal::RefusalCode;

/// What `code` means at length.
pub(crate) fn explanation(code: RefusalCode) -> Explanation {
    use Example::{Assembly, Text};
    let (meaning, why, remedy, example) = match code {
        RefusalCode::Machine => (
            "The object is for another machine or word size than can be rewritten.",
            "Registers, calling convention, relocations and the sequences that translate belong to one machine; those of x86-64 say nothing about another.",
            "Give an x86-64 relocatable object (`gcc -c -m64`).",
            Text("$ gcc -m32 -c driver.c && twin rewrite driver.o -o driver.twin.o"),
        ),
        RefusalCode::Options => (
            "The target, the scheme, the accesses, the processor or the kind of input that were asked for do not go together.",
            "A window is laid out by a hypervisor; a load that stays as it is would read the hypervisor's memory there. An object of a program does not show where its indirect jumps lead; its text does.",
            "Choose as the message says. Programs are rewritten by `twin cc`, or as text.",
            Text("$ twin rewrite --target process program.o -o program.twin.o"),
        ),
        RefusalCode::TooMany => (
            "The object has more than 4,194,304 instructions, some 16 MiB of code; more than 65,536 string instructions; or more than 100,000 places that are refused (fewer where names have thousands of bytes), of which the others are listed. Or the rewritten code has more than the verifier takes.",
            "Rewriting takes several hundred bytes of memory for each instruction, and up to 8 KiB for a string instruction. Without a limit, a file of a few kilobytes that expands to branches and nothing else would fill the machine's memory.",
            "Give the objects one by one, before they are linked together. Of refusals, look at the first ones: so many have one cause.",
            Assembly(".fill 4194304,1,0x90\nret"),
        ),
        RefusalCode::AlreadyRewritten => (
            "The object has a .note.twin section: it is the output of an earlier run.",
            "A second translation would take the addresses of the first, which are the hypervisor's, for dom0's.",
            "Give the original object. To change scheme or target, rewrite the original again.",
            Text("$ twin rewrite e1000.ko -o once.o && twin rewrite once.o -o twice.o"),
        ),
        RefusalCode::LinkTime => (
            "The object holds the compiler's own form of the code: it was compiled for link-time optimisation.",
            "The linker makes code of it later, and nothing would rewrite that. Instructions that the object has beside it are not the ones that run.",
            "Compile with -fno-lto. To optimise over several files, compile them as one.",
            Text("$ gcc -O2 -flto -c driver.c && twin rewrite driver.o -o driver.twin.o"),
        ),
        RefusalCode::Undecodable => (
            "A code section holds bytes that are no instruction.",
            "Where one instruction is unknown, the starts of all that follow are guesses, and guessed code is not proved.",
            "Keep data out of code sections: put tables into .rodata. If the bytes are an instruction of a newer processor, compile without it or update twin.",
            Assembly(".byte 0x06\nret"),
        ),
        RefusalCode::CodeSection => (
            "A code section is writable, has the flag of compressed sections, or has the name of another code section.",
            "Code that can be written is not the code that was verified, nor is what a linker expands; the map from original to rewritten places goes by section name.",
            "Drop the flag of the section. Give sections names of their own: clang's `-fbasic-block-sections=all` does with `-funique-basic-block-section-names`. Merge those of an object by `ld -r`.",
            Assembly("ret\n.section .text.patched,\"awx\"\nret\n.text"),
        ),
        RefusalCode::Relocation => (
            "A relocation in code lies on no operand, or has a type that kernel objects do not use: the global offset table, thread-local storage. Or it names a common symbol (`-fcommon`), which has no place before objects are linked into a program.",
            "What the relocated field will hold decides what is accessed. If it is not known, neither is the access.",
            "Compile as the kernel does: `-mcmodel=kernel -fno-pic -fno-pie -fno-common`, no `__thread`. Of the global offset table, loads (`mov f@GOTPCREL(%rip),%rax`), calls, jumps and comparisons become direct, as a linker makes them.",
            Assembly("push counter@GOTPCREL(%rip)\nret"),
        ),
        RefusalCode::BranchTarget => (
            "A direct branch leaves the code of the object, or lands inside an instruction.",
            "Every branch is moved to where its destination went; a place that is no instruction went nowhere.",
            "Make the destination a labelled instruction of a code section of this object. Overlapping instructions (`jmp 1f+1`) have to be written out.",
            Assembly("jmp 1f+1\n1: mov $1,%eax\nret"),
        ),
        RefusalCode::Metadata => (
            "The module is of a kernel outside Linux 5.10 to 7.3, by its vermagic or by a table that these do not have; or one of the kernel's tables (.altinstructions, __jump_table, __bug_table, .orc_unwind ...) has none of the layouts that these had, or names something that is not where it should be.",
            "The kernel writes over instructions that these tables name. If an entry is misread, it writes over something else.",
            "Build the module against one of these kernels. For another, add the layout to crates/elf-loader/src/special/layout.rs and the series to crates/svm-rewrite/src/targets/linux/series.rs; the sizes stand in the kernel's headers that the files cite.",
            Assembly("ret\n.section __jump_table,\"aw\"\n.long 0\n.text"),
        ),
        RefusalCode::NamedMemory => (
            "In a module for a stock kernel an operand names memory by a symbol, and the instruction may not reach it: it writes a constant; or the place is in code, in one of the kernel's tables, in a section that is not loaded, in per-CPU data without %gs, or far from its symbol.",
            "Such an operand stays as it is, and so its place has to be right. A write to a constant is an error of the module: the kernel maps it read-only, and the original faults there.",
            "Leave `const` out where the variable is written. Reach per-CPU data by %gs, and the kernel's tables not at all.",
            Text("$ twin rewrite --target linux intel_oc_wdt.ko -o intel_oc_wdt.twin.ko"),
        ),
        RefusalCode::Patched => (
            "A module for a stock kernel reaches memory through a register in a range that .altinstructions or .parainstructions lets the kernel replace, or in what it puts there.",
            "The kernel writes the replacement over the range byte for byte, so a translation in it would be cut off, and it must not become longer.",
            "Leave the function in a module that is not rewritten, or build it without the alternative: without CONFIG_PARAVIRT_SPINLOCKS for spin locks that store, without `alternative_io` in a driver's own assembly.",
            Text(
                "1: nop; nop; nop\n.pushsection .altinstr_replacement,\"ax\"\n2: movb $0,(%rdi)        # --target linux\n.popsection",
            ),
        ),
        RefusalCode::CodeReference => (
            "The address of a label is where a jump may take it from, and no read-only table for that jump is found: a jump table in data that may be written, a word for another function in it, a table that something else reads, a computed goto.",
            "A jump through a table becomes comparisons with what the table holds, if it holds labels of its own function and nothing else. Any other jump to a label would leave the verified code.",
            "Compile with `-fno-jump-tables`, as the kernel does; let nothing but its jumps read a table; make tables of labels `static const`. In hand-written assembly, put 8-byte words into `.rodata` and load one right before the jump, make each destination a function (`.type NAME,@function`), or branch by comparisons.",
            Assembly(
                "jmp *table(,%rdi,8)\n1: mov $1,%eax\nret\n2: mov $2,%eax\nret\n.data\ntable: .quad 1b,2b\n.text",
            ),
        ),
        RefusalCode::Overlap => (
            "A function begins or ends inside an instruction: by its symbol's value or size, the bytes of one instruction belong to two functions.",
            "Code is moved function by function; shared bytes would have to be in two places.",
            "Give each function its own bytes: check the `.size` directives and symbols set by `=`. A second entry is a label before an instruction.",
            Assembly("mov $1,%eax\nret\n.globl g\n.type g,@function\n.set g,f+1"),
        ),
        RefusalCode::Privileged => (
            "The instruction is one that only the kernel or the hypervisor may execute (`cli`, `wrmsr`, `mov %cr0`, `popf`, `int`, `vmcall` ...).",
            "A hypervisor instance runs in whatever guest is current: interrupts, control registers and other levels of privilege are not its own.",
            "Leave the function to the VM instance, which runs unmodified in dom0: move it to an object of its own, or let the hot path call it as an import (an upcall). For a stock kernel, `--target linux` keeps what belongs to the kernel and refuses only what belongs to guests.",
            Assembly("cli\nret"),
        ),
        RefusalCode::Unsupported => (
            "The instruction reaches memory in a way that has no translation: several places at once, implicitly, a whole register file, behind a mask, with 32-bit addresses.",
            "Each byte that an instruction reaches has to be covered by a translation made right before it. Here the bytes are not known before it runs, or there is no operand to replace.",
            "Compile the function without it: `-mno-sse -mno-avx -mno-avx2` as for kernel code, `-mno-avx2` in a program, where `--accesses stores` leaves such loads as they are. Where a few bytes are moved, write a loop. Else leave the function to the VM instance.",
            Assembly("vpgatherdd %ymm2,(%rdi,%ymm1,4),%ymm0\nret"),
        ),
        RefusalCode::Name => (
            "A name in code cannot be in the result: it begins with `twin_`, it is of an indirect function, or its type or binding is none of a function. For a stock kernel: it is weak, and nothing defines it.",
            "Names that begin with `twin_` are the runtime's, and a loader would take one for the other. Of an indirect function a resolver chooses the code when it is loaded, which nothing verified. The kernel makes zero of a weak symbol that it does not know.",
            "Rename it; call the function that the resolver would choose; write `.type name,@function`; declare it without `weak`, or link what defines it.",
            Assembly("call twin_bug\nret"),
        ),
        RefusalCode::Extension => (
            "The instruction belongs to an extension that rewritten code does not use: x87, MMX, 3DNow!, AVX-512 but for plain moves, shadow stacks, cache control, `cpuid` and its kind, encodings that no manual has.",
            "These have state or effects that the hypervisor does not keep for a driver, that processors or decoders disagree about, or that the verifier would have to believe rather than prove.",
            "Compile as the kernel does: `-mno-80387 -mno-mmx -mno-avx512f`, without intrinsics. What asks about the machine belongs to probing, and so to the VM instance.",
            Assembly("flds (%rdi)\nret"),
        ),
        RefusalCode::Prefix => (
            "The instruction has a prefix without effect: a repeat on what does not repeat, an address size without an address, REX before another prefix, lock elision.",
            "What is ignored today may mean something on the next processor, and the proof would be of another program.",
            "Write the instruction without it. Compilers emit none of these; look for `.byte` sequences and padding in inline assembly.",
            Assembly(".byte 0xf3,0x01,0x07\nret"),
        ),
        RefusalCode::RedZone => (
            "The function keeps data below the stack pointer.",
            "Sequences push registers there, and so would an interrupt in a kernel.",
            "Compile with `-mno-red-zone`, as the kernel does. (`twin cc` for programs steps over the red zone by itself.)",
            Assembly("mov %rdi,-8(%rsp)\nmov -8(%rsp),%rax\nret"),
        ),
        RefusalCode::StackPointer => (
            "The stack pointer is moved by something that is not a constant: an array of variable length, `alloca`, a switch of stacks, a frame set up by `enter`, an alignment above 64. Or the stack is not in order: deeper on one path to a place than on another, not empty where the function ends, deeper than 3968 bytes, what the rewritten code pushes included.",
            "Accesses to the own frame stay untranslated because their distance from the return address is known. After such a move it is not.",
            "In assembly, leave the same depth on every path, and pop the whole frame before `ret` and tail calls. Use arrays of constant size, allocate large ones, and compile without `-mstackrealign`. A function that switches stacks belongs to the VM instance.",
            Assembly("mov (%rdi),%rsp\nret"),
        ),
        RefusalCode::Retpoline => (
            "The compiler has put a thunk into the object itself: the thunk writes an address over its return address, or drops it, and returns.",
            "Such a `ret` is a jump. Where a jump may lead is a table's decision, and a return address that was written is an abort: nothing that goes through the thunk would arrive.",
            "Compile with `-mindirect-branch=thunk-extern` and `-mfunction-return=thunk-extern`, as the kernel does: twin knows its thunks by their names. Or compile without these options; clang's is `-mretpoline`.",
            Assembly("call 1f\n2: pause\nlfence\njmp 2b\n1: mov %rax,(%rsp)\nret"),
        ),
        RefusalCode::NoScratch => (
            "The sequence needs more registers than are dead or can be spilled at this place.",
            "A bit's offset is in %rsp itself, or %r10 and %r11 are live over a call out of the object, so no register can be saved there without changing what the original computes.",
            "Compile with optimisation (-O1 or more), which leaves registers dead; in assembly, split the instruction into a load, the operation and a store.",
            Assembly(
                "bts %rsp,(%rdi)\npush %rax; push %rcx; push %rdx; push %rsi; push %rdi\npush %r8; push %r9; push %r10; push %r11\nadd $72,%rsp\nret",
            ),
        ),
        RefusalCode::Direction => (
            "At a string instruction, a call or a return it is not known whether the direction flag is set.",
            "Forward and backward take different sequences: what a translation covers lies above the address in one case and below it in the other. And every function relies on its caller to leave the flag clear (psABI 3.2.1).",
            "Execute `cld` or `std` on every path to the string instruction, and `cld` before calls and returns. Compiled code never leaves the flag set; look at assembly with `std` or `popf`.",
            Assembly("test %edi,%edi\nje 1f\nstd\n1: rep stosb\ncld\nret"),
        ),
        RefusalCode::Statement => (
            "A line of assembly text cannot be changed, or would mean something else in rewritten text: a repetition by a count that only the assembler knows, Intel syntax, data among instructions; an address by a distance (`.+16`, `f+1`), `.include`, `.reloc`.",
            "What the assembler makes of a line decides. If a line makes several instructions, the one to change has no line of its own. Rewritten code is longer, and its slow paths are elsewhere, so distances change.",
            "Write it as plain AT&T instructions and directives, one a statement (`;` separates), and name places by labels. Expand macros at the place, or put the routine into an object of its own and rewrite the object.",
            Text(
                "static inline void *here(void)\n{\n        void *p;\n        asm volatile(\"lea .+16(%%rip), %0\" : \"=r\"(p));\n        return p;\n}",
            ),
        ),
    };
    Explanation {
        meaning,
        why,
        remedy,
        example,
    }
}
