//! Code as the rewriter emits it is accepted, in both schemes.

mod common;
use common::*;

const BOTH: [u32; 2] = [STLB, PAPER];

#[test]
fn a_load_and_a_store_through_a_check() {
    let code = ".globl f\n.type f,@function\nf: {KEEP} {T:8(%rdi,%rsi,4)} mov (%rax), %rbx
        {T:(%rdi)} mov %rbx, (%rax)\n {RET}";
    for proof in accept_both(code) {
        assert_eq!(
            (proof.checks, proof.functions, proof.accesses.table),
            (2, 1, 4)
        );
        assert_eq!(proof.accesses.translated, 2);
    }
}

#[test]
fn one_translation_serves_all_bytes_that_it_covers() {
    accept_both(
        ".globl f\nf: {KEEP}{T:(%rdi)}
         mov (%rax), %rbx; movb $1, 4096(%rax); mov 4089(%rax), %rdx; incl 64(%rax)
         mov -4096(%rax), %rsi; movb $1, -1(%rax); mov %rbx, -4(%rax)
         lock; xaddl %ebx, 8(%rax); movdqu 16(%rax), %xmm0; vmovdqu %ymm0, (%rax)
         testb $1, 9(%rax); push (%rax); pop 8(%rax); cmpxchg16b 32(%rax); {RET}",
    );
}

#[test]
fn symbols_of_dom0_are_addresses_and_numbers() {
    accept_both(
        ".globl f\nf: {KEEP} {T:\"twin_vm:.rodata\"+16} mov (%rax), %rbx
             {T:\"twin_vm:.data\"-8(,%rdi,8)} movq $\"twin_vm:.text\"+64, (%rax)
             mov $\"twin_vm:jiffies\", %rdi
             movabs $\"twin_vm:jiffies\"+8, %rsi
             cmp $\"twin_vm:.bss\", %rsi
             {RET}",
    );
}

#[test]
fn the_stack_is_left_alone() {
    let code = ".globl f
        f: {KEEP} push %rbx; push %rbp; mov %rsp, %rbp; sub $0x78, %rsp
        mov %rdi, 8(%rsp); movups %xmm0, 0x20(%rsp); lock; addl $0, -4(%rsp)
        mov 0x90(%rsp), %rax           # an argument above the return address
        lea 0x40(%rsp), %rdx; mov (%rdx), %rcx
        mov -8(%rbp), %rsi
        pushq 8(%rsp); popq %rdi; push $5; lea 8(%rsp), %rsp
        test %rax, %rax; je 1f
        sub $0x100, %rsp; call g; add $0x100, %rsp
        1: add $0x78, %rsp; pop %rbp; pop %rbx; {CHECK} rep; ret
        g: mov %rsp, %rbp; sub $16, %rsp; mov %rbp, %rsp; push %rax
        mov %rsp, %rbp; sub $16, %rsp; leave; ret";
    let proofs = accept_both(code);
    assert_eq!(proofs.map(|proof| proof.functions), [2, 2]);
}

#[test]
fn own_stack_addresses_are_translated_like_others() {
    accept_both(
        ".globl f\nf: {KEEP} sub $24, %rsp; lea 8(%rsp), %rdi
             {T:(%rdi)} movl $0, (%rax)
             {V:%rdi, %rax, %rcx, %rdx} movl $0, (%rax)
             add $24, %rsp; {RET}",
    );
}

#[test]
fn spills_surround_the_site() {
    accept_both(
        ".globl f\nf: {KEEP} push %rax; push %rcx; push %rdx\n {T:16(%rsp,%rdi)} mov %rbx, (%rax)
             pop %rdx; pop %rcx; pop %rax; {CHECK} jmp imported",
    );
}

#[test]
fn flags_are_saved_around_the_site() {
    accept_both(
        ".globl f\nf: {KEEP} push %rax; lahf; seto %al; push %rax
             {T:(%rdi)} pop %rdx; mov %rbx, (%rax); mov %rdx, %rax
             add $0x7f, %al; sahf; pop %rax; mov -0x8000(%rsp), %r11; mov %r11, (%rsp)
             jne 1f; ret\n1: jmp imported",
    );
}

#[test]
fn an_address_of_several_instructions_is_left_in_a_register() {
    accept_both(
        ".globl f\nf: mov $0x12345678, %r9d; add %rdi, %r9\n {V:%r9, %rax, %r10, %r11} mov (%rax), %al; ret",
    );
}

#[test]
fn per_cpu_data_is_found_through_the_context() {
    let proofs = accept_both(
        ".globl f\nf: {KEEP} mov %rsp, %r9; or $0xffff, %r9; mov -0x1ff7(%r9), %r9; lea 0x28(%r9), %r9
         {V:%r9, %rax, %r10, %r11} mov (%rax), %rbx
         mov %rsp, %r9; or $0xffff, %r9; mov -0x1fff(%r9), %r9; add $8, %r9
         {V:%r9, %rax, %r10, %r11} incl (%rax)
         mov %rsp, %rsi; or $0xffff, %rsi; add -0x1ff7(%rsi), %rdi; {RET}",
    );
    assert_eq!(proofs.map(|proof| proof.accesses.context), [3, 3]);
}

#[test]
fn a_prefetch_is_skipped_on_a_miss() {
    let stlb = ".globl f\nf: lea 64(%rdi), %rax; mov %eax, %ecx; shr $8, %ecx; and $0xfff0, %ecx
         sub twin_stlb(%rcx), %rax; cmp $0xfff, %rax; ja 1f
         add twin_stlb+8(%rcx), %rax; prefetcht0 (%rax)\n1: ret";
    let paper = ".globl f\nf: lea 64(%rdi), %rcx; mov %rcx, %rax; and $-4096, %rcx; mov %rcx, %rdx
         and $0xfff000, %rcx; shr $8, %rcx; cmp twin_stlb(%rcx), %rdx; jne 1f
         xor twin_stlb+8(%rcx), %rax; prefetchw (%rax)\n1: ret";
    assert_eq!(accept(STLB, stlb).checks, 1);
    assert_eq!(accept(PAPER, paper).checks, 1);
}

#[test]
fn bit_strings_are_accessed_at_the_masked_bit() {
    accept_both(
        ".globl f\nf: {KEEP} mov %rsi, %rbx; sar $6, %rbx; lea (%rdi,%rbx,8), %r9
             {V:%r9, %rax, %r10, %r11} mov %esi, %r8d; and $63, %r8d; bts %r8, (%rax)
             and $31, %r8d; lock; btr %r8d, (%rax); and $15, %r8d; bt %r8w, 4(%rax)
             btcl $77, (%rax); bt %rsi, %rdi; {RET}",
    );
}

#[test]
fn indirect_calls_go_through_the_runtime() {
    accept_both(
        ".globl f\nf: {KEEP} sub $8, %rsp\n {T:(%rdi)} mov (%rax), %r11; call twin_stlb_call
             add $8, %rsp; {CHECK} mov %rbx, %r11; jmp twin_stlb_call",
    );
}

#[test]
fn ports_warnings_and_bugs_go_to_the_runtime() {
    accept_both(
        ".globl f\nf: push %rbp\n {T:(%rdi)} mov $0x3f8, %edx; mov $1, %eax
             xchg %rax, %rsi; xchg %rsi, %rax
             lea 8(%rsp), %rbp; call twin_out8; call twin_in32; call twin_warn
             mov -8(%rbp), %rcx; pop %rbp; test %ecx, %ecx; js 1f; ret\n1: call twin_bug",
    );
}

#[test]
fn translations_survive_the_port_calls_that_keep_them() {
    accept_both(
        ".globl f\nf: {KEEP} {T:(%rdi)} mov %rax, %r8; call twin_in8; mov %al, (%r8); call twin_warn
             mov %al, 1(%r8); {RET}",
    );
}

#[test]
fn hot_and_cold_parts_of_a_function_jump_between_sections() {
    let proofs = accept_both(
        ".globl f\nf: {KEEP} push %rbx; test %edi, %edi; jne cold; 1: pop %rbx; {RET}
         .section .text.unlikely,\"ax\",@progbits
         cold: {T:(%rdi)} mov (%rax), %rbx; push %rdi; call g; pop %rdi
         jmp .text+9+12\n.text\n.balign 16\n g: ret",
    );
    assert_eq!(proofs.map(|proof| proof.functions), [2, 2]);
}

#[test]
fn loops_keep_a_translation_that_every_path_has() {
    accept_both(
        ".globl f\nf: {KEEP} {T:(%rdi)} xor %ecx, %ecx
         1: mov %ecx, (%rax); inc %ecx; cmp $9, %ecx; jne 1b; {RET}
         g: xor %ebx, %ebx\n2: {T:(%rdi,%rbx)} add (%rax), %ebx; cmp $9, %ebx; jb 2b; ret\n.globl g",
    );
}

#[test]
fn paths_with_different_translations_meet() {
    accept_both(
        ".globl f\nf: test %esi, %esi; je 1f\n {T:(%rdi)} jmp 2f\n1: {T:64(%rdx)} 2: mov (%rax), %rdx; ret",
    );
}

#[test]
fn the_codemap_lists_the_entries() {
    let code = "f: mov %edi, %eax; ret\n.type f,@function\ng: jmp f
        .section .twin.codemap,\"a\",@progbits
        .quad \"twin_vm:.text\"+32, f, \"twin_vm:.text\"+48, .text+3
        .section .twin.map,\"\",@progbits\n.long 1, 0, 0, 1, 2, 16, 1, 3, 48";
    for proof in accept_both(code) {
        assert_eq!((proof.codemap, proof.functions, proof.unreached), (2, 2, 0));
    }
}

#[test]
fn known_instructions_and_their_padding_are_accepted() {
    let code = ".globl f\nf: endbr64; pause; mfence; lfence; sfence; rdtsc; rdtscp; rdrand %rax
        popcnt %rax, %rbx; tzcnt %eax, %ebx; lzcnt %rax, %rbx; crc32b %al, %ebx; crc32q %rax, %rbx
        mulx %rax, %rbx, %rcx; adcx %rax, %rbx; pdep %rax, %rbx, %rcx; andn %rax, %rbx, %rcx
        aesenc %xmm0, %xmm1; pclmulqdq $1, %xmm0, %xmm1; sha256rnds2 %xmm0, %xmm1, %xmm2
        vpaddd %ymm0, %ymm1, %ymm2; vfmadd213ps %xmm0, %xmm1, %xmm2; vzeroupper; movq %xmm0, %rax
        shld $3, %rax, %rbx; bswap %rax; cqo; idiv %rcx; cmovne %rax, %rbx; sete %al; lahf; sahf
        nopw 0x10(%rax,%rax,1); cs nopw 0x200(%rax,%rax,1); nopl (%rax); xchg %ax, %ax
        .byte 0x66,0x66,0x2e,0x0f,0x1f,0x84,0,0,0,0,0
        .byte 0x66,0x66,0x66,0x66,0x2e,0x0f,0x1f,0x84,0,0,0,0,0
        mov %ah, %bl; movsbl %ah, %ecx; lea (%eax,%ebx), %ecx; cs jne 1f; 1: loop 1b; jrcxz 1b; ret";
    accept_both(code);
}

#[test]
fn the_proof_says_whether_vector_registers_are_touched() {
    let vectors = |code: &str| accept(STLB, &format!(".globl f\nf: {code}; ret")).vectors;
    assert!(!vectors("mov %rdi, %rax; cld; cqo; lahf"));
    for code in [
        "movq %xmm0, %rax",
        "xorps %xmm1, %xmm1",
        "cvtsi2sd %eax, %xmm2",
        "vpaddd %ymm0, %ymm1, %ymm2",
        "vzeroupper",
        "vmovups -64(%rsp), %zmm17",
        "nop; pshufd $1, %xmm0, %xmm1",
    ] {
        assert!(vectors(code), "{code}");
    }
}

#[test]
fn padding_is_what_no_path_reaches() {
    for scheme in BOTH {
        accept(
            scheme,
            ".globl f\nf: ret; int3; int3; nop; nopw 0x1000(%rax,%rax,1); ud2",
        );
        refuse(
            scheme,
            ".globl f\nf: ret; int3; xor %eax, %eax; nop; ret",
            "P2-unreached",
        );
    }
}

/// What a string instruction's site looks like, with `%rbx` as `%v`, `%rbp` as
/// `%w`, `%r8` as `%n` and `%r9` as `%m`.
fn string(scheme: u32, instruction: &str, shift: u32, both: bool, backward: bool) -> String {
    let count = |pointer: &str, n: &str| {
        let shr = if shift == 0 {
            String::new()
        } else {
            format!("shr ${shift}, %{n}\n")
        };
        if backward {
            format!("mov %{pointer}, %{n}\n and $0xfff, %{n}\n {shr} inc %{n}\n")
        } else {
            format!("mov %{pointer}, %{n}\n and $0xfff, %{n}\n xor $0x1fff, %{n}\n {shr}")
        }
    };
    let source = if both {
        check_register(scheme, "rsi", "rbp", "r10", "r11", 2)
            + &count("esi", "r9d")
            + "cmp %r9, %r8; cmova %r9, %r8\n"
    } else {
        String::new()
    };
    let (first, second) = (
        check_register(scheme, "rdi", "rbx", "r10", "r11", 1) + &count("edi", "r8d"),
        if both { "mov %rbp, %rsi" } else { "" },
    );
    // The counts are made after both translations, as the contract shows it.
    let (translate_first, count_first) = first.split_at(first.find("mov %edi, %r8d").unwrap());
    let (translate_second, count_second) =
        source.split_at(source.find("mov %esi, %r9d").unwrap_or(0));
    format!(
        ".Lloop: test %rcx, %rcx; je .Ldone
         {translate_first}{translate_second}{count_first}{count_second}
         cmp %rcx, %r8; cmova %rcx, %r8
         sub %r8, %rcx; push %rcx; push %rdi; push %rsi; push %rbx; push %rbp
         mov %rbx, %rdi; {second}; mov %r8, %rcx
         {instruction}
         pop %r8; pop %rbx; pop %r9; pop %r10; sub %rbx, %rdi; add %r10, %rdi
         sub %r8, %rsi; add %r9, %rsi; pop %r8; lea (%rcx,%r8), %rcx
         jmp .Lloop\n.Ldone:\n"
    )
}

#[test]
fn strings_go_forward_in_covered_chunks() {
    let cases = [
        ("rep; movsq", 3, true),
        ("rep; movsl", 2, true),
        ("rep; movsw", 1, true),
        ("rep; movsb", 0, true),
        ("rep; stosq", 3, false),
        ("rep; stosb", 0, false),
        ("repe; cmpsb", 0, true),
        ("repne; cmpsq", 3, true),
        ("repne; scasb", 0, false),
        ("repe; scasl", 2, false),
    ];
    for scheme in BOTH {
        for (instruction, shift, both) in cases {
            let site = string(scheme, instruction, shift, both, false);
            accept(scheme, &format!(".globl f\nf: {{KEEP}} {site} {{RET}}"));
            accept(
                scheme,
                &format!(".globl f\nf: {{KEEP}} mov %rax, %rdi; mov %rax, %rcx; {site} {{RET}}"),
            );
            accept(
                scheme,
                &format!(
                    ".globl f\nf: {{KEEP}} sub $64, %rsp; mov %rsp, %rdi; {site} add $64, %rsp; {{RET}}"
                ),
            );
        }
    }
}

#[test]
fn strings_go_backward_to_the_start_of_their_page() {
    for scheme in BOTH {
        for (instruction, shift, both) in [
            ("rep; movsq", 3, true),
            ("rep; stosb", 0, false),
            ("repe; cmpsw", 1, true),
        ] {
            let site = string(scheme, instruction, shift, both, true);
            accept(
                scheme,
                &format!(".globl f\nf: {{KEEP}} std; {site} cld; {{RET}}"),
            );
        }
    }
}

#[test]
fn single_string_elements_need_translations_only() {
    let code = ".globl f\nf: {KEEP} cld\n {V:%rdi, %rbx, %r10, %r11} {V:%rsi, %rbp, %r10, %r11}
        push %rdi; push %rsi; mov %rbx, %rdi; mov %rbp, %rsi; movsq; pop %rsi; pop %rdi
        mov %rbp, %rsi; lodsl; mov %rbx, %rdi; stosb; mov %rbx, %rdi; scasw
        mov %rbp, %rsi; mov %rbx, %rdi; cmpsb; cld; {RET}";
    for code in [code, &code.replacen("cld", "std", 1)] {
        let proofs = accept_both(code);
        assert_eq!(proofs.map(|proof| proof.accesses.string), [5, 5]);
    }
}
