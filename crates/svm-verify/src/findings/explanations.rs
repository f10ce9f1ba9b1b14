//! The explanation of each violation's code: a flat table, printed by `twin explain
//! CODE` and collected in `docs/troubleshooting.md`. A test assembles the examples in
//! assembly and checks that they are refused.
//!
//! Users of `twin rewrite` should never see one of these. They are for people who write
//! objects by hand, change the rewriter, or examine an object of unknown origin.

use twin_abi::explanation::{Example, Explanation};

use crate::findings::ViolationCode;

/// What `code` means at length.
pub(crate) fn explanation(code: ViolationCode) -> Explanation {
    use Example::{Assembly, Text};
    let (meaning, why, remedy, example) = match code {
        ViolationCode::Foreign => (
            "The object has no .note.twin of this version, or one with an unknown scheme, word size or target.",
            "The note says which contract the code was made for. Without it there is nothing to verify against.",
            "Give the verifier the output of `twin rewrite` of the same version. A plain driver is rewritten first.",
            Text("$ gcc -O2 -c driver.c && twin verify driver.o"),
        ),
        ViolationCode::Contract => (
            "The object was made for another contract than the one that is demanded: another target, another scheme, or other accesses that are confined.",
            "What an object says of itself is compared with what was asked, and decides nothing. A module for a stock kernel may do what a kernel does; proving that of it says nothing about what it does in a hypervisor.",
            "Rewrite the original for the contract that is demanded. If the object is to be loaded where the other one holds, demand that: `twin verify --target linux`, `--scheme`, or `--accesses stores`.",
            Text(
                "$ twin rewrite --target linux e1000.ko -o e1000.twin.ko && twin verify e1000.twin.ko",
            ),
        ),
        ViolationCode::Section => (
            "The object has a section that a rewritten object does not have: data, a table, writable code.",
            "Data of a hypervisor instance stays in dom0; code that can be written is not the code that was verified.",
            "For `--target hypervisor`, keep only code, .note.twin, .twin.codemap, .twin.map and .twin.origin. For `--target linux`, keep the original's sections as they were.",
            Assembly("ret\n.data\n.quad 1\n.text"),
        ),
        ViolationCode::Size => (
            "The object has more code than the verifier takes: 2 GiB, 16,777,216 instructions or 4,194,304 direct branches. Or it is a module of which more than a gigabyte would be loaded.",
            "The verifier takes some hundred bytes of memory for each instruction and branch. Without a limit, a file of a few kilobytes that expands to branches and nothing else would fill the machine's memory. The kernel adds up the sizes of sections with 32 bits.",
            "Give the objects one by one, before they are linked together.",
            Text("f: .fill 16777217,1,0x90\nret"),
        ),
        ViolationCode::Symbol => (
            "A symbol is defined that is no place in code, a name is used that the ABI does not list, or a name is defined twice.",
            "The loader resolves names: a wrong one would be given an address that no rule covers.",
            "Define only names of code, refer to dom0 by `twin_vm:` names, and call the runtime entries of crates/abi only.",
            Assembly("call twin_map_anything\nret"),
        ),
        ViolationCode::Map => (
            ".twin.map is not a sorted table of places in code.",
            "Aborts are reported through it: a wrong table would name the wrong instruction.",
            "Write whole entries of three words, sorted by section and offset, each inside code.",
            Text(
                ".section .twin.map,\"\",@progbits\n.long 1000, 0, 0        # no section has index 1000",
            ),
        ),
        ViolationCode::Codemap => (
            ".twin.codemap is not a table of pairs of VM address and entry point.",
            "Indirect calls go where this table says. An entry in the middle of a function would enter it with a state that was not proved.",
            "Give each entry one relocation to a VM code address (`twin_vm:.text` + offset) and one to a function entry of this object.",
            Text(
                ".section .twin.codemap,\"a\"\n.quad \"twin_vm:.text\", twin_bug        # a runtime entry is no entry point",
            ),
        ),
        ViolationCode::Untranslated => (
            "A memory operand goes through a register whose value nothing confines.",
            "This is the access the whole system exists to prevent: it reaches whatever is mapped at that address in the hypervisor.",
            "Translate the address by a check and use the translated register with displacement 0. If there is a check, look for what comes between it and the access: a call, a write to the register, another way in.",
            Assembly("mov (%rdi),%rax\nret"),
        ),
        ViolationCode::Window => (
            "An access through a translated register starts more than 4096 bytes below it, ends more than 4097 bytes above it, or has an index.",
            "A translation covers the page of the address, the one before and the one after. The address may be the first byte of its page or the last: a page below it and, itself included, a page and a byte above are certain.",
            "Access displacement 0, or with reuse a constant distance of at least -4096 so that distance + size is at most 4097. Translate anew for anything else.",
            Assembly(
                "lea (%rdi),%rax\nmov %eax,%ecx\nshr $8,%ecx\nand $0xfff0,%ecx\nsub twin_stlb(%rcx),%rax\ncmp $0xfff,%rax\nja 2f\nadd twin_stlb+8(%rcx),%rax\n1: mov 4090(%rax),%rdx\nret\n2: lea (%rdi),%rax\ncall twin_slow_rax\njmp 1b",
            ),
        ),
        ViolationCode::StackBounds => (
            "An access through %rsp, or a register at a known distance from it, lies outside what the function may reach: its frame, 128 bytes below it, 64 bytes of arguments above.",
            "Beyond that are other frames, the guard page and, past it, the hypervisor.",
            "Stay inside the frame (reserve it by `sub` first), or translate the address like any other: the slow path knows the driver's own stack.",
            Assembly("mov 72(%rsp),%rax\nret"),
        ),
        ViolationCode::ReturnSlot => (
            "A write through a stack address reaches the return address or above it, or a function writes its stack arguments over the return address of a caller that passes none.",
            "Whoever writes the return address chooses where the function returns to.",
            "Write below the return address only. Arguments on the stack are written through a translation; in a module for a stock kernel in place, if each caller in the object has passed them.",
            Assembly("movq $0,(%rsp)\nret"),
        ),
        ViolationCode::AddressForm => (
            "A memory operand uses %fs: or %gs:, 32-bit addressing, an absolute address, %rip, or a scaled translation. In a module for a stock kernel: it names a place outside its section, or a section that is not loaded, read-only, per-CPU or the kernel's.",
            "Segment bases in the hypervisor are the hypervisor's; fixed addresses are not dom0's; a wrapped or scaled address is not the one that was translated.",
            "Compute the whole address into a 64-bit register and translate that. Per-CPU data is reached through the CPU's context first (see docs/spec/sequences.md, `%gs:`).",
            Assembly("mov %gs:0x28,%rax\nret"),
        ),
        ViolationCode::Operand => (
            "In an object of a scheme with a window, a memory operand lacks prefix 65 or 67 or has one twice, or has another segment, a register of 64 bits, %rip or an address in an immediate.",
            "With both prefixes the processor adds the low 32 bits of the address to the window's start. Without one of them the operand reaches whatever is mapped there in the hypervisor.",
            "Give the operand both prefixes, once each, and registers of 32 bits or none: `%gs:8(%edi,%ecx,4)`. The only operands without them are the segment bases in the CPU's context, and a load of the own return address.",
            Text("mov %gs:8(%rdi),%rax        # scheme window32: no prefix 67"),
        ),
        ViolationCode::Implicit => (
            "The instruction reaches memory that no operand shows.",
            "There is no operand that could be compared with a translation.",
            "Use an instruction whose memory operand is explicit, or a string instruction with translated pointers.",
            Text(
                "xlat with an untranslated %rbx, where the allow-list knows the instruction but not its address",
            ),
        ),
        ViolationCode::StringPointer => (
            "A string instruction's %rsi or %rdi is not a translated address; in a scheme with a window, not a window pointer.",
            "String instructions access what these registers hold, and move them: after one element they are no translations any more.",
            "Translate each pointer right before the instruction, for every chunk anew. With a window: `movabs $twin_window,%t; mov %edi,%edi; lea (%rdi,%t),%rdi`.",
            Assembly("rep movsb\nret"),
        ),
        ViolationCode::StringCount => (
            "A `rep` instruction's %rcx is not bounded by what is covered from each of its pointers.",
            "The instruction goes on until %rcx is zero, far past the window that was translated.",
            "Bound %rcx by the elements covered: `and $0xfff; xor $0x1fff; shr $log2(size)` of each pointer, and the minimum of both with the count.",
            Assembly(
                "mov %rdi,%rax\nmov %eax,%ecx\nshr $8,%ecx\nand $0xfff0,%ecx\nsub twin_stlb(%rcx),%rax\ncmp $0xfff,%rax\nja 2f\nadd twin_stlb+8(%rcx),%rax\n1: mov %rax,%rdi\nrep stosb\nret\n2: mov %rdi,%rax\ncall twin_slow_rax\njmp 1b",
            ),
        ),
        ViolationCode::StringDirection => (
            "The direction flag is not known at a string instruction.",
            "Backward, the instruction leaves the window at its lower end, which nothing checked.",
            "Execute `cld` or `std` on every path to it.",
            Assembly(
                "test %esi,%esi\nje 1f\nstd\n1: mov %rdi,%rax\nmov %eax,%ecx\nshr $8,%ecx\nand $0xfff0,%ecx\nsub twin_stlb(%rcx),%rax\ncmp $0xfff,%rax\nja 3f\nadd twin_stlb+8(%rcx),%rax\n2: mov %rax,%rdi\nstosb\ncld\nret\n3: mov %rdi,%rax\ncall twin_slow_rax\njmp 2b",
            ),
        ),
        ViolationCode::BitOffset => (
            "`bt`, `bts`, `btr` or `btc` on memory with a register that may select a bit outside the operand.",
            "With a register operand these reach up to 256 MiB from the address: the bit offset is part of it.",
            "Add the offset's bytes to the address before translating it or reaching the window by it, and mask the bit offset to the operand's width right before the instruction.",
            Assembly(
                "mov %rdi,%rax\nmov %eax,%ecx\nshr $8,%ecx\nand $0xfff0,%ecx\nsub twin_stlb(%rcx),%rax\ncmp $0xfff,%rax\nja 2f\nadd twin_stlb+8(%rcx),%rax\n1: bts %rsi,(%rax)\nret\n2: mov %rdi,%rax\ncall twin_slow_rax\njmp 1b",
            ),
        ),
        ViolationCode::Context => (
            "The CPU's context (`rsp | 0xffff`) is read at another place than its two segment bases, in part, with an index, or written.",
            "The context is the runtime's: what else stands there is not for the driver.",
            "Read only the two segment bases, 8 bytes each, at GS_BASE_FROM_TOP and FS_BASE_FROM_TOP.",
            Assembly("mov %rsp,%rax\nor $0xffff,%rax\nmov -0x1ff7(%rax,%rsi),%rdi\nret"),
        ),
        ViolationCode::Unreached => (
            "No path reaches this code: neither a branch nor a call leads there, and it is no entry. It is not padding either, which is `nop`, `int3` and `ud2`.",
            "What no path reaches is not interpreted, so nothing is known of it. If a loader or a handler of faults came there after all, it would run unproved code.",
            "Leave the code out; `twin rewrite` does, where a static branch is compiled off. If it is a function, give it a symbol of type STT_FUNC: then it is interpreted as an entry.",
            Assembly("ret\nmov (%rdi),%rax\nret"),
        ),
        ViolationCode::Target => (
            "A direct branch lands on something that is not the start of an instruction of this object, or the address of code that is no function's start is taken as data or called.",
            "Bytes read from another offset are other instructions, which were not verified.",
            "Branch to instruction starts of code sections. A call goes to a function's entry.",
            Assembly("jmp g+1\ng: mov $0x0b0f9090,%eax\nret"),
        ),
        ViolationCode::Indirect => (
            "A call or jump through a register or memory.",
            "Where it goes is decided by data that the driver can write.",
            "Put the target, a VM address, into %r11 and call or jump to twin_stlb_call, which consults the codemap.",
            Assembly("call *%rax\nret"),
        ),
        ViolationCode::Callee => (
            "A call or jump to a name that may not be reached like this: a runtime entry by a jump, a slow path outside a check, a conditional jump out.",
            "Runtime entries return to the instruction after the call and rely on it.",
            "Call imported routines and the runtime entries that the ABI lists; jump only to routines that may be tail-called.",
            Assembly("jmp twin_in8"),
        ),
        ViolationCode::Relocation => (
            "A relocation is none of those that the contract lists: on part of a field, of another type, against another symbol, with another addend.",
            "The loader writes into the code what relocations say, after the proof.",
            "Relocate only whole operand fields, with the types and symbols of docs/spec/object.md.",
            Assembly("mov $twin_stlb,%rax\nret"),
        ),
        ViolationCode::Metadata => (
            "A table of the kernel (.smp_locks, __jump_table, .altinstructions, __ex_table ...) has an entry that does not fit the code it names, is not loaded as the kernel reads it, or is referred to by the module.",
            "The kernel writes over instructions that these tables name; over a check it would open a hole.",
            "Let each entry name the first byte of an instruction of the kind that the kernel expects there, never one of a check. crates/svm-verify/src/kernel/ has a rule for each table, with the kernel's source that it follows.",
            Text(
                "1: nop; ret\n.pushsection .smp_locks,\"a\"\n.long 1b - .        # names no lock prefix\n.popsection",
            ),
        ),
        ViolationCode::OutOfLine => (
            "A check has no out-of-line part of its own of the required form, or something else reaches one.",
            "The slow path must be asked for exactly the address that the check computed, and come back to exactly the place after it.",
            "Give each check its own part: the same address again (scheme stlb), `call twin_slow_<v>`, `jmp` back; no other way in, no symbol on it.",
            Assembly("mov %rdi,%rax\ncall twin_slow_rax\nmov (%rax),%rdx\nret"),
        ),
        ViolationCode::ReturnWord => (
            "A return, or a jump out of the object, where the return address may have been overwritten since the function began; or an instruction that touches the shadow of a return address in another way than to keep or to take that address.",
            "The return address lies on the driver's own stack, which pointers lead to: a buffer that overflows would choose where the hypervisor goes on. So whatever may have been written by pointer, or by a function that was called, is compared with a copy that no translation reaches, 32768 bytes below.",
            "Where the function begins: `mov (%rsp),%r11; mov %r11,-0x8000(%rsp)`. Before each `ret` and jump out behind a translated write or a call: `mov -0x8000(%rsp),%r11; cmp %r11,(%rsp); jne` to a `call twin_smashed`; or `mov %r11,(%rsp)` in place of the comparison.",
            Assembly("sub $8,%rsp\ncall imported\nadd $8,%rsp\nret"),
        ),
        ViolationCode::FallOff => (
            "Code runs past the end of its section.",
            "What follows in memory is not known before the object is loaded.",
            "End every path with `ret`, a jump or, after calls that do not return, `ud2`.",
            Assembly("mov $1,%eax\ncall imported"),
        ),
        ViolationCode::Direction => (
            "A call, a jump out of the object or a return while the direction flag may be set.",
            "Everyone relies on it being clear (psABI 3.2.1), the runtime's own string instructions first.",
            "Execute `cld` before the transfer.",
            Assembly("std\nret"),
        ),
        ViolationCode::Undecodable => (
            "Bytes in a code section that are no instruction.",
            "What is not decoded is not proved.",
            "Leave data out of code sections; pad with `int3` or `nop`.",
            Assembly("ret\n.byte 0x06"),
        ),
        ViolationCode::Decoders => (
            "The two decoders do not agree on an instruction, or only one of them reads it.",
            "A mistake in one decoder must not become a hole, and processors may disagree where decoders do.",
            "Use another encoding of the instruction. If both encodings are documented, the table in crates/svm-verify/src/decode/second/differences.rs is where a known mistake of a decoder is named.",
            Assembly(".byte 0xc4,0xe3,0xf9,0x14,0xc0,0x00\nret"),
        ),
        ViolationCode::Instruction => (
            "An instruction that is not on the allow-list.",
            "It is privileged, has effects that are not modelled, or no argument yet shows that it is harmless.",
            "Replace it by what the runtime offers (ports: twin_in8 ...). A harmless instruction is added in crates/svm-verify/src/decode/allow.rs, with the argument.",
            Assembly("wrmsr\nret"),
        ),
        ViolationCode::Prefix => (
            "A prefix that this instruction may not have: without effect, repeated, or read differently by different processors.",
            "AMD and Intel decode some of these to different lengths, so there would be two programs in the same bytes.",
            "Drop the prefix.",
            Assembly(".byte 0x66,0xc3"),
        ),
        ViolationCode::StackPointer => (
            "%rsp is changed by something other than a constant.",
            "Its distance from the return address is what makes stack accesses safe without translation.",
            "Move %rsp by `push`, `pop`, `add`/`sub`/`lea` with constants only. Aligned frames are written once for each alignment at entry (crates/svm-rewrite/src/frame/variants.rs).",
            Assembly("mov %rdi,%rsp\nret"),
        ),
        ViolationCode::Alignment => (
            "%rsp moves by something that is not a multiple of 8.",
            "Callees rely on whole words (psABI 3.2.2), and so does the proof: the return address, saved registers and the words of a frame lie at multiples of 8. More is not asked for: kernel code is built so that calls are made at any multiple of 8.",
            "Make frames of whole words.",
            Assembly("sub $12,%rsp\nadd $12,%rsp\nret"),
        ),
        ViolationCode::Depth => (
            "Two paths meet with different depths of the stack.",
            "After the meeting neither depth is known, and a loop could grow the stack without bound.",
            "Leave the same depth on every path to a place.",
            Assembly("test %edi,%edi\nje 1f\npush %rax\n1: ret"),
        ),
        ViolationCode::Frame => (
            "A frame deeper than the guard page protects, or a pop above the frame's own start.",
            "The guard catches a stack that overflows only if no function steps over it.",
            "Keep the frame within 3968 bytes, and never pop more than was pushed. Large arrays are allocated.",
            Assembly("sub $3976,%rsp\nadd $3976,%rsp\nret"),
        ),
        ViolationCode::Return => (
            "A return or a tail call while the frame is not empty.",
            "The word that `ret` takes would be data.",
            "Pop the whole frame before leaving the function.",
            Assembly("push %rax\nret"),
        ),
        ViolationCode::Runtime => (
            "The linked runtime is not the one of this version, or something reaches into it.",
            "The proof takes the slow paths' behaviour as given; it holds for the bytes that were reviewed.",
            "Rewrite the original with this version, and name nothing of the runtime but the slow paths and, in checks, the table.",
            Text(
                ".data\n.quad twin_slow_rax        # a slow path's address in data, --target linux",
            ),
        ),
        ViolationCode::Table => (
            "The translation table is used outside a check, or by something that is not quite a check.",
            "A tag or translation that was not compared is an address of somebody's choice.",
            "Read the table only in checks, instruction for instruction as docs/spec/sequences.md shows them.",
            Assembly("lea twin_stlb(%rcx),%rax\nret"),
        ),
    };
    Explanation {
        meaning,
        why,
        remedy,
        example,
    }
}
