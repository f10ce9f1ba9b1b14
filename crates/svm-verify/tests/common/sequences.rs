//! Good sequences, of which mutants are made.
//!
//! A line that begins with `!` is the driver's own: its address, its access, the length
//! of a string, the registers that it returns. A change there makes another driver, which
//! only has to be confined. A line in braces is replaced by the lines of a check, see
//! [`Sequence::lines`].

use super::{PAPER, STLB, low32};

/// One of them.
pub struct Sequence {
    pub name: &'static str,
    /// Scheme of its checks.
    pub scheme: u32,
    source: &'static [&'static str],
    /// Registers that may hold anything after the sequence.
    pub scratch: &'static [usize],
}

impl Sequence {
    /// Lines of assembly; labels end in `@`, which becomes the mutant's number.
    ///
    /// `{stlb V I}` is the check that translates the address in `%V` through `%I`, with
    /// the labels `.Lslow@` and `.Lback@`; `{stlb V I er}` the same with `.Lslower@` and
    /// `.Lbacker@`; `{paper V I P}` that of scheme `paper`, of the address in `%I`.
    /// `{keep R}`, `{compare R}` and `{restore R}` are the sequences for the return
    /// address.
    pub fn lines(&self) -> Vec<String> {
        self.source.iter().flat_map(|line| expanded(line)).collect()
    }

    /// How often its mutants are executed; strings take long.
    pub fn runs(&self) -> usize {
        if self.source.iter().any(|l| l.contains("rep ")) {
            12
        } else {
            50
        }
    }
}

/// The lines that a line of [`Sequence::source`] stands for.
fn expanded(line: &str) -> Vec<String> {
    let Some(check) = line.strip_prefix('{').and_then(|l| l.strip_suffix('}')) else {
        return vec![line.to_string()];
    };
    match check.split(' ').collect::<Vec<_>>()[..] {
        ["stlb", v, i] => stlb(v, i, ""),
        ["stlb", v, i, suffix] => stlb(v, i, suffix),
        ["paper", v, i, p] => paper(v, i, p),
        ["keep", r] => vec![
            format!("!mov (%rsp), %{r}"),
            format!("!mov %{r}, -0x8000(%rsp)"),
        ],
        ["compare", r] => vec![
            format!("!mov -0x8000(%rsp), %{r}"),
            format!("!cmp %{r}, (%rsp)"),
            "!jne .Lsmashed@".to_string(),
        ],
        ["restore", r] => vec![
            format!("!mov -0x8000(%rsp), %{r}"),
            format!("!mov %{r}, (%rsp)"),
        ],
        _ => panic!("{line}"),
    }
}

fn stlb(v: &str, i: &str, suffix: &str) -> Vec<String> {
    let (vd, id) = (low32(v), low32(i));
    vec![
        format!("mov %{vd}, %{id}"),
        format!("shr $8, %{id}"),
        format!("and $0xfff0, %{id}"),
        format!("sub twin_stlb(%{i}), %{v}"),
        format!("cmp $0xfff, %{v}"),
        format!("ja .Lslow{suffix}@"),
        format!("add twin_stlb+8(%{i}), %{v}"),
        format!(".Lback{suffix}@:"),
    ]
}

fn paper(v: &str, i: &str, p: &str) -> Vec<String> {
    vec![
        format!("mov %{i}, %{v}"),
        format!("and $-4096, %{i}"),
        format!("mov %{i}, %{p}"),
        format!("and $0xfff000, %{i}"),
        format!("shr $8, %{i}"),
        format!("cmp twin_stlb(%{i}), %{p}"),
        "jne .Lslow@".to_string(),
        format!("xor twin_stlb+8(%{i}), %{v}"),
        ".Lback@:".to_string(),
    ]
}

const STLB_LOAD: Sequence = Sequence {
    name: "stlb load",
    scheme: STLB,
    source: &[
        "!lea 8(%rdi,%rsi,4), %rax",
        "{stlb rax rcx}",
        "!mov (%rax), %rbx",
        "!ret",
        ".Lslow@:",
        "lea 8(%rdi,%rsi,4), %rax",
        "call twin_slow_rax",
        "jmp .Lback@",
    ],
    scratch: &[0, 1],
};

const STLB_COPY: Sequence = Sequence {
    name: "stlb store through a copied register, spilled and with flags kept",
    scheme: STLB,
    source: &[
        "{keep r11}",
        "!push %rcx",
        "!lahf",
        "!seto %al",
        "!push %rax",
        "mov %rdi, %r8",
        "{stlb r8 rcx}",
        "!pop %rax",
        "!mov %rbx, (%r8)",
        "!add $0x7f, %al",
        "!sahf",
        "!pop %rcx",
        "{restore r11}",
        "!ret",
        ".Lslow@:",
        "mov %rdi, %r8",
        "call twin_slow_r8",
        "jmp .Lback@",
    ],
    scratch: &[0, 8, 11],
};

const PAPER_LOAD: Sequence = Sequence {
    name: "paper load",
    scheme: PAPER,
    source: &[
        "!lea 8(%rdi,%rsi,4), %rcx",
        "{paper rax rcx rdx}",
        "!mov (%rax), %rbx",
        "!ret",
        ".Lslow@:",
        "call twin_slow_rax",
        "jmp .Lback@",
    ],
    scratch: &[0, 1, 2],
};

const TWO_CHECKS: Sequence = Sequence {
    name: "two checks, the second of an address from memory",
    scheme: STLB,
    source: &[
        "{keep r11}",
        "!lea (%rdi), %rax",
        "{stlb rax rcx}",
        "!mov (%rax), %rdx",
        "mov %rdx, %rbx",
        "{stlb rbx rcx er}",
        "!incl 4(%rbx)",
        "!mov %r9, 8(%rax)",
        "{compare r11}",
        "!ret",
        ".Lsmashed@:",
        "!call twin_smashed",
        "!ud2",
        ".Lslow@:",
        "lea (%rdi), %rax",
        "call twin_slow_rax",
        "jmp .Lback@",
        ".Lslower@:",
        "mov %rdx, %rbx",
        "call twin_slow_rbx",
        "jmp .Lbacker@",
    ],
    scratch: &[0, 1, 3, 11],
};

const SPILLED: Sequence = Sequence {
    name: "the return address by way of a register that is live",
    scheme: STLB,
    source: &[
        "!push %rdx",
        "!mov 8(%rsp), %rdx",
        "!mov %rdx, -0x7ff8(%rsp)",
        "!pop %rdx",
        "!lea (%rdi), %rax",
        "{stlb rax rcx}",
        "!mov %rbx, (%rax)",
        "!push %rdx",
        "!mov -0x7ff8(%rsp), %rdx",
        "!cmp %rdx, 8(%rsp)",
        "!pop %rdx",
        "!jne .Lsmashed@",
        "!ret",
        ".Lsmashed@:",
        "!call twin_smashed",
        "!ud2",
        ".Lslow@:",
        "lea (%rdi), %rax",
        "call twin_slow_rax",
        "jmp .Lback@",
    ],
    scratch: &[0, 1],
};

const BIT: Sequence = Sequence {
    name: "a bit set in memory",
    scheme: STLB,
    source: &[
        "{keep r11}",
        "mov %rdi, %rax",
        "{stlb rax rcx}",
        "!mov %esi, %ecx",
        "!and $63, %ecx",
        "!bts %rcx, (%rax)",
        "{compare r11}",
        "!ret",
        ".Lsmashed@:",
        "!call twin_smashed",
        "!ud2",
        ".Lslow@:",
        "mov %rdi, %rax",
        "call twin_slow_rax",
        "jmp .Lback@",
    ],
    scratch: &[0, 1, 11],
};

const PER_CPU: Sequence = Sequence {
    name: "per-CPU data",
    scheme: STLB,
    source: &[
        "!mov %rsp, %r9",
        "!or $0xffff, %r9",
        "!mov -0x1ff7(%r9), %r9",
        "!lea 0x28(%r9), %r9",
        "mov %r9, %rax",
        "{stlb rax rcx}",
        "!mov (%rax), %rbx",
        "!ret",
        ".Lslow@:",
        "mov %r9, %rax",
        "call twin_slow_rax",
        "jmp .Lback@",
    ],
    scratch: &[0, 1],
};

const PREFETCH: Sequence = Sequence {
    name: "a prefetch",
    scheme: STLB,
    source: &[
        "!lea 64(%rdi), %rax",
        "mov %eax, %ecx",
        "shr $8, %ecx",
        "and $0xfff0, %ecx",
        "sub twin_stlb(%rcx), %rax",
        "cmp $0xfff, %rax",
        "ja .Lskip@",
        "add twin_stlb+8(%rcx), %rax",
        "!prefetcht0 (%rax)",
        ".Lskip@:",
        "!ret",
    ],
    scratch: &[0, 1],
};

const MOVS: Sequence = Sequence {
    name: "rep movsq",
    scheme: STLB,
    source: &[
        "{keep r11}",
        "!and $0x7ff, %ecx",
        ".Lloop@:",
        "!test %rcx, %rcx",
        "!je .Ldone@",
        "mov %rdi, %rbx",
        "{stlb rbx r10}",
        "mov %rsi, %rbp",
        "{stlb rbp r10 er}",
        "!mov %edi, %r8d",
        "!and $0xfff, %r8d",
        "!xor $0x1fff, %r8d",
        "!shr $3, %r8d",
        "!mov %esi, %r9d",
        "!and $0xfff, %r9d",
        "!xor $0x1fff, %r9d",
        "!shr $3, %r9d",
        "!cmp %r9, %r8",
        "!cmova %r9, %r8",
        "!cmp %rcx, %r8",
        "!cmova %rcx, %r8",
        "!sub %r8, %rcx",
        "!push %rcx",
        "!push %rdi",
        "!push %rsi",
        "!push %rbx",
        "!push %rbp",
        "!mov %rbx, %rdi",
        "!mov %rbp, %rsi",
        "!mov %r8, %rcx",
        "!rep movsq",
        "!pop %r8",
        "!sub %r8, %rsi",
        "!pop %r8",
        "!sub %r8, %rdi",
        "!pop %r8",
        "!add %r8, %rsi",
        "!pop %r8",
        "!add %r8, %rdi",
        "!pop %r8",
        "!add %r8, %rcx",
        "!jmp .Lloop@",
        ".Ldone@:",
        "{compare r11}",
        "!ret",
        ".Lsmashed@:",
        "!call twin_smashed",
        "!ud2",
        ".Lslow@:",
        "mov %rdi, %rbx",
        "call twin_slow_rbx",
        "jmp .Lback@",
        ".Lslower@:",
        "mov %rsi, %rbp",
        "call twin_slow_rbp",
        "jmp .Lbacker@",
    ],
    scratch: &[3, 5, 8, 9, 10, 11],
};

const STOS: Sequence = Sequence {
    name: "rep stosw backward, paper",
    scheme: PAPER,
    source: &[
        "{keep r11}",
        "!and $0xfff, %ecx",
        "!std",
        ".Lloop@:",
        "!test %rcx, %rcx",
        "!je .Ldone@",
        "mov %rdi, %r10",
        "{paper rbx r10 r11}",
        "!mov %edi, %r8d",
        "!and $0xfff, %r8d",
        "!shr $1, %r8d",
        "!inc %r8d",
        "!cmp %rcx, %r8",
        "!cmova %rcx, %r8",
        "!sub %r8, %rcx",
        "!push %rcx",
        "!push %rdi",
        "!push %rbx",
        "!mov %rbx, %rdi",
        "!mov %r8, %rcx",
        "!rep stosw",
        "!pop %r8",
        "!sub %r8, %rdi",
        "!pop %r8",
        "!add %r8, %rdi",
        "!pop %rcx",
        "!jmp .Lloop@",
        ".Ldone@:",
        "!cld",
        "{compare r11}",
        "!ret",
        ".Lsmashed@:",
        "!call twin_smashed",
        "!ud2",
        ".Lslow@:",
        "call twin_slow_rbx",
        "jmp .Lback@",
    ],
    scratch: &[3, 8, 10, 11],
};

/// All of them.
pub const SEQUENCES: [&Sequence; 10] = [
    &STLB_LOAD, &STLB_COPY, &PAPER_LOAD, &TWO_CHECKS, &SPILLED, &BIT, &PER_CPU, &PREFETCH, &MOVS,
    &STOS,
];
