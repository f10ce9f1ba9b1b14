//! Objects that try something. Each is named for its trick and must be refused
//! by the rule that the trick breaks.

mod common;
use common::*;

/// Trick, expected rule, code of `.text` in scheme `stlb`; `{T}` stands for a
/// good check of `(%rdi)` that leaves the translation in `%rax`, its index in
/// `%rcx`; `{E:a=>b|...}` for one with `a` replaced by `b` and a load after it;
/// `{R:count|instruction}` for one of `%rdi` and a string instruction after it that
/// repeats as often as `count` makes `%r8d`; `{B}` for checks of `%rdi` and `%rsi`
/// into `%rbx` and `%rbp`; `{S}` and `{P}` for one of scheme `stlb`, `paper`,
/// whichever is asked for. See `expand`.
#[rustfmt::skip] // A table: one trick a line.
const STLB_TRICKS: &[(&str, &str, &str)] = &[
    // ---- P1: memory
    ("a plain load", "P1-untranslated", "mov (%rdi), %rax; ret"),
    ("a plain store", "P1-untranslated", "mov %rax, 8(%rdi); ret"),
    ("an atomic on a plain address", "P1-untranslated", "lock; incl (%rdi); ret"),
    ("a vector store", "P1-untranslated", "vmovdqu %ymm0, (%rdi); ret"),
    ("a push from memory", "P1-untranslated", "push (%rdi); pop %rax; ret"),
    ("a pop to memory", "P1-untranslated", "push %rax; pop (%rdi); ret"),
    ("a pop through rsp", "P1-stack-bounds", "sub $16, %rsp; pop 8(%rsp); add $8, %rsp; ret"),
    ("a pop to the top of the stack", "P1-stack-bounds", "push %rax; pop (%rsp); ret"),
    ("a pop onto the return address", "P1-return-slot", "mov %rsp, %rbx; push %rax; pop (%rbx); ret"),
    ("a prefetch of any address", "P1-untranslated", "prefetcht0 (%rdi); ret"),
    ("a comparison only", "P1-untranslated", "cmpb $0, (%rdi); ret"),
    ("a byte too far", "P1-window", "{T} mov 4090(%rax), %rdx; ret"),
    ("the second page's end", "P1-window", "{T} mov 8191(%rax), %dl; ret"),
    ("a byte farther before than a window shows", "P1-window", "{T} mov -4097(%rax), %dl; ret"),
    ("a word that begins before the window", "P1-window", "{T} mov %rdx, -4100(%rax); ret"),
    ("far before the window", "P1-window", "{T} mov -0x80000000(%rax), %dl; ret"),
    ("below, and lower once more", "P1-untranslated", "{T} sub $4096, %rax; mov -4096(%rax), %dl; ret"),
    ("below a translation that was moved", "P1-untranslated", "{T} lea -1(%rax), %rax; mov -4096(%rax), %dl; ret"),
    ("an index on a translation", "P1-window", "{T} mov (%rax,%rsi), %dl; ret"),
    ("a translation as index", "P1-untranslated", "{T} mov (%rsi,%rax), %dl; ret"),
    ("a scaled translation", "P1-address-form", "{T} mov (,%rax,2), %dl; ret"),
    ("adding to a translation", "P1-untranslated", "{T} add $4096, %rax; mov (%rax), %dl; ret"),
    ("lea from a translation", "P1-untranslated", "{T} lea 9(%rax), %rdx; mov (%rdx), %dl; ret"),
    ("half of a translation", "P1-untranslated", "{T} mov %eax, %edx; mov (%rdx), %dl; ret"),
    ("changing a translation's low byte", "P1-untranslated", "{T} mov $0, %al; mov (%rax), %dl; ret"),
    ("exchanging a translation", "P1-untranslated", "{T} xchg %rax, %rsi; mov (%rax), %dl; ret"),
    ("writing it by a conditional move", "P1-untranslated", "{T} cmove %rsi, %rax; mov (%rax), %dl; ret"),
    ("keeping a translation over a call", "P1-untranslated", "push %rbx; {T} mov %rax, %rbx; call g; mov (%rbx), %rcx; pop %rbx; ret; g: ret"),
    ("keeping a translation over an import", "P1-untranslated", "push %rbx; {T} mov %rax, %rbx; call imported; mov (%rbx), %rcx; pop %rbx; ret"),
    ("keeping a translation on the stack", "P1-untranslated", "{T} push %rax; pop %rdx; mov (%rdx), %rcx; ret"),
    ("rax after a port is not what it was", "P1-untranslated", "{T} call twin_in8; mov (%rax), %rcx; ret"),
    ("a translation on one path only", "P1-untranslated", "mov %rsi, %rax; test %rsi, %rsi; je 1f; {T} 1: mov (%rax), %dl; ret"),
    ("a translation lost in a loop", "P1-untranslated", "{T} 1: mov (%rax), %dl; add %rsi, %rax; dec %rbx; jne 1b; ret"),
    ("gs", "P1-address-form", "mov %gs:0x28, %rax; ret"),
    ("fs through a register", "P1-address-form", "mov %fs:(%rdi), %rax; ret"),
    ("gs on a translation", "P1-address-form", "{T} mov %gs:(%rax), %rdx; ret"),
    ("gs on the stack", "P1-address-form", "mov %gs:-8(%rsp), %rdx; ret"),
    ("gs before a string instruction", "P1-address-form", "{T} mov %rax, %rsi; gs lodsb; ret"),
    ("32-bit addresses", "P1-address-form", "{T} mov (%eax), %edx; ret"),
    ("32-bit stack addresses", "P1-address-form", "mov -8(%esp), %edx; ret"),
    ("an absolute address", "P1-address-form", "mov 0x1000, %eax; ret"),
    ("a 64-bit absolute address", "P1-address-form", "movabs 0x123456789abc, %rax; ret"),
    ("its own code", "P1-address-form", "mov 1f(%rip), %rax; 1: ret"),
    ("the address of its own code", "P1-address-form", "lea f(%rip), %rax; ret"),
    ("a symbol without translation", "P1-address-form", "mov \"twin_vm:.data\", %eax; ret"),
    ("a symbol on a translation", "P1-untranslated", "{T} mov \"twin_vm:.data\"(%rax), %edx; ret"),
    ("a symbol on the stack", "P1-untranslated", "mov \"twin_vm:.data\"(%rsp), %edx; ret"),
    ("a table lookup in code", "P3-instruction", "{T} mov %rax, %rbx; xlat; ret"),
    ("an index on the stack", "P1-stack-bounds", "mov -8(%rsp,%rdi), %rax; ret"),
    ("the return address", "P1-return-slot", "movq $0, (%rsp); ret"),
    ("the return address in part", "P1-return-slot", "push %rax; movl $0, 5(%rsp); pop %rax; ret"),
    ("the return address through rbp", "P1-return-slot", "lea 64(%rsp), %rbp; mov %rax, -64(%rbp); ret"),
    ("the caller's frame", "P1-return-slot", "mov %rax, 16(%rsp); ret"),
    ("far above the arguments", "P1-stack-bounds", "mov 72(%rsp), %rax; ret"),
    ("far below the stack pointer", "P1-stack-bounds", "mov %al, -129(%rsp); ret"),
    ("the popped frame", "P1-stack-bounds", "sub $512, %rsp; mov %rsp, %rax; add $512, %rsp; mov (%rax), %al; ret"),
    ("the frame pointer after a call", "P1-untranslated", "mov %rsp, %rbp; call g; mov -8(%rbp), %rax; ret; g: ret"),
    ("a stack address far away", "P1-stack-bounds", "lea 0x7fffffff(%rsp), %rax; mov (%rax), %al; ret"),
    ("a stack address that wraps", "P1-untranslated", "lea 0x7fffffff(%rsp), %rax; lea 0x7fffffff(%rax), %rax; mov (%rax), %al; ret"),
    ("a stack address of 32 bits", "P1-untranslated", "lea -8(%rsp), %eax; mov (%rax), %al; ret"),
    ("a bit far away", "P1-bit-offset", "{T} bts %rsi, (%rax); ret"),
    ("a bit past the operand", "P1-bit-offset", "{T} and $63, %esi; btr %esi, (%rax); ret"),
    ("a negative bit", "P1-bit-offset", "{T} and $-1, %esi; bt %rsi, (%rax); ret"),
    ("a bit masked in the low half only", "P1-bit-offset", "{T} and $63, %sil; btc %rsi, (%rax); ret"),
    ("a bit masked by a symbol", "P1-bit-offset", "{T} and $\"twin_vm:x\", %rsi; btc %rsi, (%rax); ret"),
    ("a bit of the stack", "P1-bit-offset", "bts %rsi, -8(%rsp); ret"),
    ("the context itself", "P1-context", "mov %rsp, %rax; or $0xffff, %rax; mov %rsi, -0xff7(%rax); ret"),
    ("another field of the context", "P1-context", "mov %rsp, %rax; or $0xffff, %rax; mov -0xfef(%rax), %rsi; ret"),
    ("half of a segment base", "P1-context", "mov %rsp, %rax; or $0xffff, %rax; mov -0xff7(%rax), %esi; ret"),
    ("the context at an index", "P1-context", "mov %rsp, %rax; or $0xffff, %rax; mov -0xff7(%rax,%rsi), %rdi; ret"),
    ("another CPU's context", "P1-untranslated", "lea 0x10000(%rsp), %rax; or $0xffff, %rax; mov -0xff7(%rax), %rdi; ret"),
    ("a context of the driver's choice", "P1-untranslated", "mov %rdi, %rax; or $0xffff, %rax; mov -0xff7(%rax), %rdi; ret"),
    ("a context mask by a symbol", "P1-untranslated", "mov %rsp, %rax; or $\"twin_vm:x\", %rax; mov -0xff7(%rax), %rdi; ret"),
    // ---- the check
    ("no check at all", "P5-table", "{E:cmp $0xfff, %rax=>|ja .Lslow1=>}"),
    ("an unchecked offset as address", "P1-untranslated", "{E:cmp $0xfff, %rax=>|ja .Lslow1=>|add twin_stlb+8(%rcx), %rax=>}"),
    ("a checked offset as address", "P1-untranslated", "{E:add twin_stlb+8(%rcx), %rax=>mov (%rax), %bl; add twin_stlb+8(%rcx), %rax}"),
    ("too wide a window", "P5-table", "{E:$0xfff, %rax=>$0x1fff, %rax}"),
    ("a window by a symbol", "P5-table", "{E:$0xfff, %rax=>$\"twin_vm:x\", %rax}"),
    ("a signed comparison", "P5-table", "{E:ja=>jg}"),
    ("the opposite comparison", "P5-table", "{E:ja=>jbe}"),
    ("a window compared in 32 bits", "P5-table", "{E:$0xfff, %rax=>$0xfff, %eax}"),
    ("an offset changed after its comparison", "P5-table", "{E:ja=>mov %rsi, %rax; ja}"),
    ("flags changed after the comparison", "P5-table", "{E:ja=>test %esi, %esi; ja}"),
    ("another address's index", "P5-table", "{E:mov %eax, %ecx=>lea (%rsi), %rdx; mov %edx, %ecx}"),
    ("another entry's translation", "P5-table", "{E:cmp=>add $16, %ecx; cmp}"),
    ("an index that is not masked", "P5-table", "{E:and $0xfff0, %ecx=>}"),
    ("an index with a wider mask", "P5-table", "{E:$0xfff0=>$0x1fff0}"),
    ("an index between entries", "P5-table", "{E:$0xfff0=>$0xffff}"),
    ("an index masked by a symbol", "P5-table", "{E:and $0xfff0, %ecx=>and $\"twin_vm:x\", %rcx}"),
    ("an index shifted otherwise", "P5-table", "{E:shr $8=>shr $7}"),
    ("an index of 16 bits", "P5-table", "{E:and $0xfff0, %ecx=>and $0xfff0, %cx}"),
    ("the halves exchanged", "P5-table", "{E:twin_stlb(%rcx)=>twin_stlb+8(%rcx)}"),
    ("a table entry as address", "P5-table", "mov %edi, %ecx; shr $8, %ecx; and $0xfff0, %ecx; mov twin_stlb+8(%rcx), %rax; mov (%rax), %al; ret"),
    ("a table entry overwritten", "P5-table", "mov %edi, %ecx; shr $8, %ecx; and $0xfff0, %ecx; sub %rax, twin_stlb+8(%rcx); ret"),
    ("half a tag subtracted", "P5-table", "{E:sub twin_stlb(%rcx), %rax=>sub twin_stlb(%rcx), %eax}"),
    ("the table's address in a register", "P5-table", "lea twin_stlb(%rcx), %rax; ret"),
    ("the table's address as a constant", "P2-relocation", "mov $twin_stlb, %rax; ret"),
    ("the table at an odd place", "P2-relocation", "mov %edi, %ecx; shr $8, %ecx; and $0xfff0, %ecx; sub twin_stlb+4(%rcx), %rdi; ret"),
    ("the table through rip", "P2-relocation", "sub twin_stlb(%rip), %rax; ret"),
    ("a scaled index", "P1-address-form", "{E:twin_stlb(%rcx)=>twin_stlb(,%rcx,2)}"),
    ("a second index", "P5-table", "{E:twin_stlb(%rcx)=>twin_stlb(%rcx,%rsi)}"),
    ("the other scheme's translation", "P5-table", "{P}"),
    ("an address of the last iteration", "P5-table", "lea (%rdi), %rax; mov %eax, %ecx; shr $8, %ecx; and $0xfff0, %ecx; 1: lea (%rdi), %rax; mov %eax, %edx; sub twin_stlb(%rcx), %rax; mov %edx, %ecx; shr $8, %ecx; and $0xfff0, %ecx; inc %rdi; jmp 1b"),
    // ---- out-of-line parts
    ("into the check behind its branch", "P5-table", "test %esi, %esi; jne 3f; {E:add=>3: add}"),
    ("behind the check", "P1-untranslated", "mov %rsi, %rax; test %esi, %esi; jne .Lback1; {T} mov (%rax), %al; ret"),
    ("before the comparison", "P5-table", "mov %rsi, %rax; xor %ecx, %ecx; test %esi, %esi; jne 3f; {E:cmp=>3: cmp}"),
    ("another way into the out-of-line part", "P2-out-of-line", "test %esi, %esi; jne .Lslow1; {T} mov (%rax), %al; ret"),
    ("into the middle of the out-of-line part", "P2-out-of-line", "test %esi, %esi; jne .Lslow1+3; {T} mov (%rax), %al; ret"),
    ("falling into the out-of-line part", "P2-out-of-line", "{E:mov (%rax), %al; ret=>mov (%rax), %al}"),
    ("two checks with one out-of-line part", "P2-out-of-line", "{T} mov (%rax), %bl; lea (%rdi), %rax; mov %eax, %ecx; shr $8, %ecx; and $0xfff0, %ecx\n sub twin_stlb(%rcx), %rax; cmp $0xfff, %rax; ja .Lslow1; add twin_stlb+8(%rcx), %rax; ret"),
    ("another address in the out-of-line part", "P2-out-of-line", "{E:.Lslow1: lea (%rdi)=>.Lslow1: lea 8(%rdi)}"),
    ("the slow path for another register", "P2-out-of-line", "{E:twin_slow_rax=>twin_slow_rcx}"),
    ("a base changed inside the check", "P2-out-of-line", "{E:sub=>mov %rsi, %rdi; sub}"),
    ("an address that reads what it writes", "P2-out-of-line", "{E:lea (%rdi)=>lea 8(%rax)|.Lslow1: lea (%rdi)=>.Lslow1: lea 8(%rax)}"),
    ("another symbol in the out-of-line part", "P2-out-of-line", "{E:lea (%rdi)=>lea \"twin_vm:a\"(%rdi)|.Lslow1: lea (%rdi)=>.Lslow1: lea \"twin_vm:b\"(%rdi)}"),
    ("a copy of another register out of line", "P2-out-of-line", "{E:lea (%rdi)=>mov %rdi|.Lslow1: lea (%rdi)=>.Lslow1: mov %rdi|sub=>mov %rsi, %rdi; sub}"),
    ("a copy into another register out of line", "P2-out-of-line", "{E:lea (%rdi), %rax=>mov %rdi, %rax; mov %rdi, %rdx|.Lslow1: lea (%rdi), %rax=>.Lslow1: mov %rdi, %rdx}"),
    ("coming back behind the access", "P2-out-of-line", "{E:.Lback1:=>|mov (%rax), %al; ret=>mov (%rax), %al; .Lback1: ret}"),
    ("not coming back", "P2-out-of-line", "{E:jmp .Lback1=>ret}"),
    ("no slow path", "P2-out-of-line", "{E:call twin_slow_rax=>}"),
    ("skipping a load instead of a prefetch", "P2-out-of-line", "{E:ja .Lslow1=>ja 2f|; ret=>; 2: ret}"),
    ("an access behind a skipped prefetch", "P1-untranslated", "{E:ja .Lslow1=>ja 2f|mov (%rax), %al=>prefetcht0 (%rax); 2: mov (%rax), %al}"),
    ("the check's branch out of the object", "P2-out-of-line", "{E:ja .Lslow1=>ja imported}"),
    ("the slow path outside a check", "P2-out-of-line", "mov %rdi, %rax; call twin_slow_rax; mov (%rax), %al; ret"),
    ("a name for the out-of-line part", "P2-out-of-line", "{T} mov (%rax), %al; ret; .subsection 1; .globl evil; evil = .Lslow1"),
    // ---- P2: control
    ("a call through a register", "P2-indirect", "call *%rax; ret"),
    ("a call through memory", "P2-indirect", "call *(%rdi); ret"),
    ("a jump through a register", "P2-indirect", "jmp *%r11"),
    ("a jump through the stack", "P2-indirect", "jmp *-8(%rsp)"),
    ("a far jump", "P2-indirect", "ljmp *(%rdi)"),
    ("a far return", "P3-instruction", "lret"),
    ("a return that pops more", "P3-instruction", "ret $8"),
    ("a return thunk", "P2-relocation", "jmp __x86_return_thunk"),
    ("a thunk for indirect calls", "P2-relocation", "call __x86_indirect_thunk_rax; ret"),
    ("a jump into an instruction", "P2-target", "jmp g+1; g: mov $0x0b0f9090, %eax; ret"),
    ("a call into an instruction", "P2-target", "call g+1; ret; g: mov $0x0b0f9090, %eax; ret"),
    ("a jump out of the section", "P2-target", "jmp f+1000"),
    ("a jump before the section", "P2-target", "jmp f-16"),
    ("a branch to unknown bytes elsewhere", "P2-target", "je .text.b+1; ret; .section .text.b,\"ax\"; mov $1, %eax; ret; .text"),
    ("into an imported routine", "P2-relocation", "call imported+4; ret"),
    ("an unknown entry of the runtime", "object-symbol", "call twin_map_anything; ret"),
    ("a slow path for rsp", "object-symbol", "call twin_slow_rsp; ret"),
    ("a call to the table", "P2-relocation", "call twin_stlb; ret"),
    ("a call to dom0", "P2-relocation", "call \"twin_vm:printk\"; ret"),
    ("a tail call of a slow path", "P2-callee", "mov %rdi, %rax; jmp twin_slow_rax"),
    ("a tail call of a port", "P2-callee", "jmp twin_in8"),
    ("a conditional indirect jump", "P2-callee", "je twin_stlb_call; ret"),
    ("a weak routine", "P2-relocation", ".weak w; call w; ret"),
    ("code after the last instruction", "P2-fall-off", "mov $1, %eax; call imported"),
    ("a call with DF set", "P2-direction", "std; call imported; cld; ret"),
    ("a call inside with DF set", "P2-direction", "std; call g; cld; ret; g: ret"),
    ("a return with DF set", "P2-direction", "std; ret"),
    ("a tail call with DF set on one path", "P2-direction", "test %eax, %eax; je 1f; std; 1: jmp imported"),
    ("a port with DF set", "P2-direction", "std; call twin_out8; cld; ret"),
    // ---- P3: instructions
    ("a port", "P3-instruction", "in %dx, %al; ret"),
    ("a string of ports", "P3-instruction", "rep; outsb; ret"),
    ("interrupts off", "P3-instruction", "cli; ret"),
    ("halt", "P3-instruction", "hlt"),
    ("a model-specific register", "P3-instruction", "wrmsr; ret"),
    ("a control register", "P3-instruction", "mov %cr3, %rax; ret"),
    ("a debug register", "P3-instruction", "mov %rax, %dr7; ret"),
    ("a segment register", "P3-instruction", "mov %eax, %ds; ret"),
    ("a segment popped", "P3-instruction", "push $0; pop %fs; ret"),
    ("the gs base", "P3-instruction", "wrgsbase %rax; ret"),
    ("swapgs", "P3-instruction", "swapgs; ret"),
    ("a system call", "P3-instruction", "syscall; ret"),
    ("an interrupt", "P3-instruction", "int $0x80; ret"),
    ("an interrupt's return", "P3-instruction", "iretq"),
    ("flags popped", "P3-instruction", "push $0x202; popf; ret"),
    ("a hypercall", "P3-instruction", "vmcall; ret"),
    ("the TLB", "P3-instruction", "invlpg (%rdi); ret"),
    ("a descriptor table", "P3-instruction", "lgdt -16(%rsp); ret"),
    ("the machine's name", "P3-instruction", "cpuid; ret"),
    ("saved state", "P3-instruction", "fxrstor (%rsp); ret"),
    ("x87", "P3-instruction", "fldl -8(%rsp); ret"),
    ("MMX", "P3-instruction", "movq %mm0, %rax; ret"),
    ("a masked store", "P3-instruction", "{T} mov %rax, %rdi; maskmovdqu %xmm0, %xmm1; ret"),
    ("a gather", "P3-instruction", "{T} vpgatherdd %ymm0, (%rax,%ymm1,4), %ymm2; ret"),
    ("AVX-512 arithmetic", "P3-instruction", "{T} vpaddd (%rax), %zmm0, %zmm1; ret"),
    ("64 bytes with a mask", "P3-instruction", "{T} vmovdqu64 (%rax), %zmm0{%k1}; ret"),
    ("64 bytes untranslated", "P1-untranslated", "vmovdqu64 (%rdi), %zmm0; ret"),
    ("64 bytes past the window", "P1-window", "{T} vmovdqu64 %zmm0, 0xfc2(%rax); ret"),
    ("a transaction", "P3-instruction", "xbegin 1f; 1: ret"),
    ("enter", "P3-instruction", "enter $16, $1; leave; ret"),
    ("supervisor access", "P3-instruction", "stac; ret"),
    ("user wait", "P3-instruction", "umwait %eax; ret"),
    ("bytes that are nothing", "P3-undecodable", "ret; .byte 0x06"),
    ("half an instruction at the end", "P3-undecodable", "ret; .byte 0x48, 0x8b"),
    ("a call that AMD reads shorter", "P3-prefix", ".byte 0x66, 0xe8, 0, 0, 0, 0; ret"),
    ("a branch that AMD reads shorter", "P3-prefix", ".byte 0x66, 0x0f, 0x84, 0, 0, 0, 0; ret"),
    ("a return of 16 bits", "P3-prefix", ".byte 0x66, 0xc3"),
    ("a push of 16 bits", "P3-instruction", "push %ax; ret"),
    ("a push of 16 bits with REX.W", "P3-prefix", ".byte 0x66, 0x48, 0x50; pop %rax; ret"),
    ("a REX without effect", "P3-prefix", ".byte 0x48, 0x66, 0x89, 0xd8; ret"),
    ("two REX", "P3-prefix", ".byte 0x40, 0x48, 0x89, 0xd8; ret"),
    ("lock elision", "P3-prefix", "{T} xacquire; lock; incl (%rax); ret"),
    ("a bound branch", "P3-prefix", "bnd; jmp 1f; 1: ret"),
    ("a repeated store", "P3-prefix", "{T} mov %rax, %rdi; .byte 0xf2; stosb; ret"),
    // ---- P4: the stack
    ("rsp from memory", "P4-rsp", "push %rax; pop %rsp; ret"),
    ("rsp from a register", "P4-rsp", "mov %rdi, %rsp; ret"),
    ("rsp exchanged", "P4-rsp", "xchg %rdi, %rsp; ret"),
    ("rsp aligned", "P4-rsp", "and $-16, %rsp; ret"),
    ("rsp with an index", "P4-rsp", "lea -8(%rsp,%rdi), %rsp; ret"),
    ("rsp of 32 bits", "P4-rsp", "sub $8, %esp; ret"),
    ("rsp copied in 32 bits", "P4-rsp", "mov %esp, %esp; ret"),
    ("rsp of 16 bits", "P4-rsp", "mov %ax, %sp; ret"),
    ("rsp's low byte", "P4-rsp", "mov $0, %spl; ret"),
    ("rsp by a symbol", "P4-rsp", "sub $\"twin_vm:x\", %rsp; ret"),
    ("rsp to a symbol", "P4-rsp", "mov $\"twin_vm:x\", %rsp; ret"),
    ("rsp translated", "P4-rsp", "{T} mov %rax, %rsp; ret"),
    ("rsp conditionally", "P4-rsp", "mov %rsp, %rax; cmove %rax, %rsp; ret"),
    ("leave with a frame pointer of the caller", "P4-rsp", "leave; ret"),
    ("leave after a call", "P4-rsp", "push %rbp; mov %rsp, %rbp; call imported; leave; ret"),
    ("a frame over the guard page", "P4-frame", "sub $3976, %rsp; add $3976, %rsp; ret"),
    ("a huge frame", "P4-frame", "sub $0x7fffffff, %rsp; ret"),
    ("a frame grown in a loop", "P4-depth", "1: push %rax; dec %rdi; jne 1b; ret"),
    ("pushing beyond the guard", "P4-frame", "sub $3968, %rsp; push %rax; ret"),
    ("popping the return address", "P4-frame", "pop %rax; push %rax; ret"),
    ("above the return address", "P4-frame", "add $8, %rsp; ret"),
    ("a return with a frame", "P4-return", "push %rax; ret"),
    ("a tail call with a frame", "P4-return", "push %rax; jmp imported"),
    ("a conditional tail call with a frame", "P4-return", "push %rax; je imported; pop %rax; ret"),
    ("a jump into a function with a frame", "P4-depth", "push %rax; jmp g; .globl g; g: ret"),
    ("different depths meet", "P4-depth", "test %edi, %edi; je 1f; push %rax; 1: ret"),
    ("reading the instruction pointer", "P4-frame", "call 1f; 1: pop %rax; ret"),
    // ---- strings
    ("a plain string copy", "P1-string-pointer", "rep; movsb; ret"),
    ("one plain element", "P1-string-pointer", "stosq; ret"),
    ("a stack address as string", "P1-string-pointer", "lea -8(%rsp), %rdi; stosb; ret"),
    ("a string behind a string", "P1-string-pointer", "{T} mov %rax, %rdi; stosb; stosb; ret"),
    ("a string without count", "P1-string-count", "{T} mov %rax, %rdi; rep; stosb; ret"),
    ("a string of a constant count", "P1-string-count", "{T} mov %rax, %rdi; mov $1, %ecx; rep; stosb; ret"),
    ("a string in an unknown direction", "P1-string-direction", "test %esi, %esi; je 1f; std; 1: {T} mov %rax, %rdi; stosb; cld; ret"),
    ("a string of 32-bit addresses", "P1-address-form", "{T} mov %rax, %rdi; addr32 stosb; ret"),
    ("bytes counted as words", "P1-string-count", "{R:and $0xfff, %r8d; xor $0x1fff, %r8d|stosq}"),
    ("words counted twice", "P1-string-count", "{R:and $0xfff, %r8d; xor $0x1fff, %r8d; shr $2, %r8d|stosq}"),
    ("one page too many", "P1-string-count", "{R:and $0xfff, %r8d; xor $0x3fff, %r8d|stosb}"),
    ("an offset of two pages", "P1-string-count", "{R:and $0x1fff, %r8d; xor $0x1fff, %r8d|stosb}"),
    ("the count of the other direction", "P1-string-count", "{R:and $0xfff, %r8d; inc %r8d|stosb}"),
    ("one more than is covered", "P1-string-count", "{R:and $0xfff, %r8d; xor $0x1fff, %r8d; inc %r8d|stosb}"),
    ("the maximum for the minimum", "P1-string-count", "{R:and $0xfff, %r8d; xor $0x1fff, %r8d; mov $-1, %rsi; cmp %rsi, %r8; cmovb %rsi, %r8|stosb}"),
    ("the minimum the wrong way round", "P1-string-count", "{R:and $0xfff, %r8d; xor $0x1fff, %r8d; cmp %r8, %rsi; cmova %rsi, %r8|stosb}"),
    ("the minimum of another comparison", "P1-string-count", "{R:and $0xfff, %r8d; xor $0x1fff, %r8d; cmp %rsi, %r8; test %rdx, %rdx; cmova %rsi, %r8|stosb}"),
    ("a pointer moved after it was counted", "P1-string-pointer", "{R:and $0xfff, %r8d; xor $0x1fff, %r8d; add $8, %rax|stosb}"),
    ("the count of another pointer", "P1-string-count", "{T} mov %rax, %rdi; mov %esi, %ecx; and $0xfff, %ecx; xor $0x1fff, %ecx; rep; stosb; ret"),
    ("one bound for two pointers", "P1-string-count", "{B} mov %edi, %ecx; and $0xfff, %ecx; xor $0x1fff, %ecx; mov %rbx, %rdi; mov %rbp, %rsi; rep; movsb; ret"),
];

/// The same in scheme `paper`; `{P:page|copy|bits|compare|condition}` is a check
/// with these instructions in place of its own.
#[rustfmt::skip] // A table: one trick a line.
const PAPER_TRICKS: &[(&str, &str, &str)] = &[
    ("a plain load", "P1-untranslated", "mov (%rdi), %rax; ret"),
    ("a byte too far", "P1-window", "{T} mov 4090(%rax), %rdx; ret"),
    ("a byte too far before", "P1-window", "{T} mov -4097(%rax), %rdx; ret"),
    ("no comparison", "P5-table", "{P:and $-4096, %rcx|mov %rcx, %rdx|and $0xfff000, %rcx|test %rcx, %rcx|jne}"),
    ("the opposite condition", "P5-table", "{P:and $-4096, %rcx|mov %rcx, %rdx|and $0xfff000, %rcx|cmp twin_stlb(%rcx), %rdx|je}"),
    ("another condition", "P5-table", "{P:and $-4096, %rcx|mov %rcx, %rdx|and $0xfff000, %rcx|cmp twin_stlb(%rcx), %rdx|jb}"),
    ("the address compared, not its page", "P5-table", "{P:and $-4096, %rcx|mov %rax, %rdx|and $0xfff000, %rcx|cmp twin_stlb(%rcx), %rdx|jne}"),
    ("a bigger page", "P5-table", "{P:and $-8192, %rcx|mov %rcx, %rdx|and $0xfff000, %rcx|cmp twin_stlb(%rcx), %rdx|jne}"),
    ("a page of 32 bits", "P5-table", "{P:and $-4096, %ecx|mov %rcx, %rdx|and $0xfff000, %rcx|cmp twin_stlb(%rcx), %rdx|jne}"),
    ("half of a page compared", "P5-table", "{P:and $-4096, %rcx|mov %rcx, %rdx|and $0xfff000, %rcx|cmp twin_stlb(%rcx), %edx|jne}"),
    ("another mask", "P5-table", "{P:and $-4096, %rcx|mov %rcx, %rdx|and $0x1fff000, %rcx|cmp twin_stlb(%rcx), %rdx|jne}"),
    ("the translation compared", "P5-table", "{P:and $-4096, %rcx|mov %rcx, %rdx|and $0xfff000, %rcx|cmp twin_stlb+8(%rcx), %rdx|jne}"),
    ("an address changed after the check", "P5-table", "{P:and $-4096, %rcx|mov %rcx, %rdx; lea 4096(%rax), %rax|and $0xfff000, %rcx|cmp twin_stlb(%rcx), %rdx|jne}"),
    ("another page's index", "P5-table", "{P:and $-4096, %rcx|mov %rcx, %rdx; mov %rsi, %rcx; and $-4096, %rcx|and $0xfff000, %rcx|cmp twin_stlb(%rcx), %rdx|jne}"),
    ("the other scheme's check", "P5-table", "{S}"),
    ("two translations of one comparison", "P5-table", "{T} mov %rdi, %rax; xor twin_stlb+8(%rcx), %rax; mov (%rax), %al; ret"),
    ("a translation on one path only", "P1-untranslated", "mov %rsi, %rax; test %rsi, %rsi; je 1f; {T} 1: mov (%rax), %dl; ret"),
    ("behind the check", "P1-untranslated", "mov %rsi, %rax; test %esi, %esi; jne .Lback1; {T} mov (%rax), %al; ret"),
    ("another way into the out-of-line part", "P2-out-of-line", "mov %rdi, %rax; test %esi, %esi; jne .Lslow1; {T} mov (%rax), %al; ret"),
    ("the slow path for another address", "P2-out-of-line", "lea (%rdi), %rcx; mov %rcx, %rax; and $-4096, %rcx; mov %rcx, %rdx; and $0xfff000, %rcx; shr $8, %rcx; cmp twin_stlb(%rcx), %rdx; jne 2f; xor twin_stlb+8(%rcx), %rax; 1: mov (%rax), %al; ret; 2: lea 1(%rdi), %rax; call twin_slow_rax; jmp 1b"),
];

/// Fills in the placeholders of the tables above.
fn expand(scheme: u32, code: &str) -> String {
    let both = check_register(scheme, "rdi", "rbx", "r10", "r11", 1)
        + &check_register(scheme, "rsi", "rbp", "r10", "r11", 2);
    let mut text = code
        .replace("{T}", &check(scheme, "(%rdi)", 1))
        .replace("{S}", &stlb("(%rdi)", 1))
        .replace("{P}", &paper("(%rdi)", 1))
        .replace("{B}", &both);
    if let Some((start, edits)) = placeholder(&text, "{E:") {
        // The good check with its access, each edit made once, in order.
        let mut site = check(scheme, "(%rdi)", 1) + "mov (%rax), %al; ret\n";
        for edit in edits {
            let (from, to) = edit.split_once("=>").expect("an edit");
            assert!(site.contains(from), "{code}");
            site = site.replacen(from, to, 1);
        }
        text.replace_range(start.., &site);
    }
    if let Some((start, fields)) = placeholder(&text, "{R:") {
        // What makes %r8d the count from %edi, and the instruction.
        let [count, instruction] = &fields[..] else {
            panic!("{code}")
        };
        let site = format!(
            "{} mov %edi, %r8d; {count}; mov %rax, %rdi; mov %r8, %rcx; rep; {instruction}; ret",
            check_register(scheme, "rdi", "rax", "rcx", "rdx", 1)
        );
        text.replace_range(start.., &site);
    }
    if let Some((start, fields)) = placeholder(&text, "{P:") {
        let [page, copy, bits, compare, condition] = &fields[..] else {
            panic!("{code}")
        };
        let site = format!(
            "lea (%rdi), %rcx; mov %rcx, %rax; {page}; {copy}; {bits}; shr $8, %rcx
             {compare}; {condition} 2f; xor twin_stlb+8(%rcx), %rax; 1: mov (%rax), %al; ret
             2: call twin_slow_rax; jmp 1b"
        );
        text.replace_range(start.., &site);
    }
    text
}

/// Where a placeholder begins, and its fields. It ends with the text.
fn placeholder(text: &str, open: &str) -> Option<(usize, Vec<String>)> {
    let start = text.find(open)?;
    let body = &text[start + open.len()..text.len() - 1];
    Some((start, body.split('|').map(String::from).collect()))
}

fn run(scheme: u32, tricks: &[(&str, &str, &str)]) {
    let mut wrong = String::new();
    for (name, rule, code) in tricks {
        let code = format!(".globl f\nf: {}", expand(scheme, code));
        let found = codes(&object(scheme, &code));
        if !found.contains(rule) {
            wrong += &format!("{name}: expected {rule}, found {found:?} in\n{code}\n\n");
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn tricks_in_scheme_stlb() {
    assert!(STLB_TRICKS.len() > 60);
    run(STLB, STLB_TRICKS);
}

#[test]
fn tricks_in_scheme_paper() {
    run(PAPER, PAPER_TRICKS);
}

#[test]
fn tricks_that_no_scheme_is_needed_for() {
    // Everything without a check is refused by the same rule in both schemes.
    let plain: Vec<_> = STLB_TRICKS
        .iter()
        .filter(|(_, _, code)| !code.contains(['{']) && !code.contains("twin_stlb"))
        .copied()
        .collect();
    run(PAPER, &plain);
}
