//! The effect of each kind of instruction, one line an instruction:
//!
//! ```text
//! bytes | what they decode to | uses -> kills
//! ```
//!
//! `opaque` stands for using everything and killing nothing. Where a line follows from a rule of
//! the manuals that is easily got wrong, the rule is in the comment above its test.

use iced_x86::{Formatter, GasFormatter};
use liveness::{Effect, EffectFinder};

use crate::decode;

/// The line that the table should have for these bytes.
fn line(bytes: &str) -> [String; 3] {
    let code: Vec<u8> = bytes
        .split(' ')
        .map(|byte| u8::from_str_radix(byte, 16).expect("two hexadecimal digits"))
        .collect();
    let instruction = decode(&code);
    let mut text = String::new();
    GasFormatter::new().format(&instruction, &mut text);
    let effect = EffectFinder::new().effect(&instruction);
    let shown = match effect {
        _ if effect == Effect::OPAQUE => "opaque".to_owned(),
        Effect { uses, kills } => format!("{uses} -> {kills}"),
    };
    [bytes.to_owned(), text, shown]
}

fn check(table: &str) {
    for expected in table.trim().lines() {
        let expected: Vec<&str> = expected.split('|').map(str::trim).collect();
        assert_eq!(line(expected[0])[..], expected[..]);
    }
}

/// A write kills the pieces it replaces, and a 32-bit write replaces all of them.
#[test]
fn partial_registers() {
    check(
        "
        89 c3                         | mov %eax,%ebx                | {rax} -> {rbx}
        48 89 c3                      | mov %rax,%rbx                | {rax} -> {rbx}
        66 89 c3                      | mov %ax,%bx                  | {rax[0-15]} -> {rbx[0-15]}
        88 c3                         | mov %al,%bl                  | {rax[0-7]} -> {rbx[0-7]}
        88 e3                         | mov %ah,%bl                  | {rax[8-15]} -> {rbx[0-7]}
        88 c7                         | mov %al,%bh                  | {rax[0-7]} -> {rbx[8-15]}
        40 88 f7                      | mov %sil,%dil                | {rsi[0-7]} -> {rdi[0-7]}
        b8 01 00 00 00                | mov $1,%eax                  | {} -> {rax}
        66 b8 01 00                   | mov $1,%ax                   | {} -> {rax[0-15]}
        b4 01                         | mov $1,%ah                   | {} -> {rax[8-15]}
        41 b1 01                      | mov $1,%r9b                  | {} -> {r9[0-7]}
        0f b6 cc                      | movzbl %ah,%ecx              | {rax[8-15]} -> {rcx}
        0f b7 d1                      | movzwl %cx,%edx              | {rcx[0-15]} -> {rdx}
        66 0f be c8                   | movsbw %al,%cx               | {rax[0-7]} -> {rcx[0-15]}
        48 63 d0                      | movslq %eax,%rdx             | {rax} -> {rdx}
        8c d8                         | mov %ds,%eax                 | {} -> {rax}
        66 98                         | cbtw                         | {rax[0-7]} -> {rax[8-15]}
        98                            | cwtl                         | {rax[0-15]} -> {rax}
        48 98                         | cltq                         | {rax} -> {rax}
        66 99                         | cwtd                         | {rax[0-15]} -> {rdx[0-15]}
        99                            | cltd                         | {rax} -> {rdx}
        48 99                         | cqto                         | {rax} -> {rdx}
        f7 d2                         | not %edx                     | {rdx} -> {rdx}
        0f c8                         | bswap %eax                   | {rax} -> {rax}
        48 93                         | xchg %rax,%rbx               | {rax, rbx} -> {rax, rbx}
        86 c4                         | xchg %al,%ah                 | {rax[0-15]} -> {rax[0-15]}
        87 c0                         | xchg %eax,%eax               | {rax} -> {rax}
    ",
    );
}

/// Registers of an address are used, whole unless the address is 16 bits wide; lea uses what it
/// needs of them.
#[test]
fn addresses() {
    check(
        "
        48 8b 0c f7                   | mov (%rdi,%rsi,8),%rcx       | {rsi, rdi} -> {rcx}
        89 4f 08                      | mov %ecx,8(%rdi)             | {rcx, rdi} -> {}
        88 02                         | mov %al,(%rdx)               | {rax[0-7], rdx} -> {}
        65 48 8b 04 25 28 00 00 00    | mov %gs:0x28,%rax            | {} -> {rax}
        48 8b 05 10 00 00 00          | mov 0x17,%rax                | {} -> {rax}
        67 8b 07                      | mov (%edi),%eax              | {rdi} -> {rax}
        48 8d 44 37 08                | lea 8(%rdi,%rsi),%rax        | {rsi, rdi} -> {rax}
        8d 07                         | lea (%rdi),%eax              | {rdi} -> {rax}
        66 8d 07                      | lea (%rdi),%ax               | {rdi[0-15]} -> {rax[0-15]}
        48 8d 05 01 00 00 00          | lea 8,%rax                   | {} -> {rax}
        0f 18 0f                      | prefetcht0 (%rdi)            | {rdi} -> {}
        0f ae 3f                      | clflush (%rdi)               | {rdi} -> {}
        65 a1 00 00 00 00 00 00 00 00 | movabs %gs:0,%eax            | {} -> {rax}
        c7 44 24 08 00 00 00 00       | movl $0,8(%rsp)              | {rsp} -> {}
        48 0f a3 07                   | bt %rax,(%rdi)               | {rax, rdi} -> {CF}
        f0 48 0f b3 37                | lock btr %rsi,(%rdi)         | {rsi, rdi} -> {CF}
    ",
    );
}

/// Flags certainly written are killed; undefined ones are neither used nor killed.
#[test]
fn arithmetic() {
    check("
        48 01 c3                      | add %rax,%rbx                | {rax, rbx} -> {rbx, flags}
        66 83 c0 01                   | add $1,%ax                   | {rax[0-15]} -> {rax[0-15], flags}
        80 00 01                      | addb $1,(%rax)               | {rax} -> {flags}
        48 11 c3                      | adc %rax,%rbx                | {rax, rbx, CF} -> {rbx, flags}
        48 19 cb                      | sbb %rcx,%rbx                | {rcx, rbx, CF} -> {rbx, flags}
        ff c0                         | inc %eax                     | {rax} -> {rax, PF, AF, ZF, SF, OF}
        48 ff c9                      | dec %rcx                     | {rcx} -> {rcx, PF, AF, ZF, SF, OF}
        f7 da                         | neg %edx                     | {rdx} -> {rdx, flags}
        39 c3                         | cmp %eax,%ebx                | {rax, rbx} -> {flags}
        84 c0                         | test %al,%al                 | {rax[0-7]} -> {CF, PF, ZF, SF, OF}
        83 e1 0f                      | and $0xF,%ecx                | {rcx} -> {rcx, CF, PF, ZF, SF, OF}
        0f c1 c1                      | xadd %eax,%ecx               | {rax, rcx} -> {rax, rcx, flags}
        48 0f a3 c3                   | bt %rax,%rbx                 | {rax, rbx} -> {CF}
        48 0f ba 2f 03                | btsq $3,(%rdi)               | {rdi} -> {CF}
        48 f7 e3                      | mul %rbx                     | {rax, rbx} -> {rax, rdx, CF, OF}
        f6 e3                         | mul %bl                      | {rax[0-7], rbx[0-7]} -> {rax[0-15], CF, OF}
        f7 eb                         | imul %ebx                    | {rax, rbx} -> {rax, rdx, CF, OF}
        0f af cb                      | imul %ebx,%ecx               | {rcx, rbx} -> {rcx, CF, OF}
        6b cb 03                      | imul $3,%ebx,%ecx            | {rbx} -> {rcx, CF, OF}
        f7 f1                         | div %ecx                     | {rax, rcx, rdx} -> {rax, rdx}
        f6 f1                         | div %cl                      | {rax[0-15], rcx[0-7]} -> {rax[0-15]}
        f3 0f b8 d8                   | popcnt %eax,%ebx             | {rax} -> {rbx, flags}
        c4 e2 60 f2 c8                | andn %eax,%ebx,%ecx          | {rax, rbx} -> {rcx, CF, ZF, SF, OF}
        c4 e2 60 f3 c8                | blsr %eax,%ebx               | {rax} -> {rbx, CF, ZF, SF, OF}
        c4 e2 78 f5 cb                | bzhi %eax,%ebx,%ecx          | {rax[0-7], rbx} -> {rcx, CF, ZF, SF, OF}
        c4 e2 79 f7 cb                | shlx %eax,%ebx,%ecx          | {rax[0-7], rbx} -> {rcx}
        c4 e2 e3 f6 c8                | mulx %rax,%rbx,%rcx          | {rax, rdx} -> {rcx, rbx}
        66 0f 38 f6 d8                | adcx %eax,%ebx               | {rax, rbx, CF} -> {rbx, CF}
        f3 0f 38 f6 d8                | adox %eax,%ebx               | {rax, rbx, OF} -> {rbx, OF}
        f2 0f 38 f0 c8                | crc32 %al,%ecx               | {rax[0-7], rcx} -> {rcx}
    ");
}

/// A register combined with itself is not used where the result does not depend on it.
#[test]
fn zero_idioms() {
    check("
        31 c0                         | xor %eax,%eax                | {} -> {rax, CF, PF, ZF, SF, OF}
        48 31 c0                      | xor %rax,%rax                | {} -> {rax, CF, PF, ZF, SF, OF}
        66 31 c0                      | xor %ax,%ax                  | {} -> {rax[0-15], CF, PF, ZF, SF, OF}
        30 c0                         | xor %al,%al                  | {} -> {rax[0-7], CF, PF, ZF, SF, OF}
        30 c4                         | xor %al,%ah                  | {rax[0-15]} -> {rax[8-15], CF, PF, ZF, SF, OF}
        31 c1                         | xor %eax,%ecx                | {rax, rcx} -> {rcx, CF, PF, ZF, SF, OF}
        29 c0                         | sub %eax,%eax                | {} -> {rax, flags}
        4d 29 c0                      | sub %r8,%r8                  | {} -> {r8, flags}
        29 c1                         | sub %eax,%ecx                | {rax, rcx} -> {rcx, flags}
        19 c0                         | sbb %eax,%eax                | {CF} -> {rax, flags}
        48 19 d2                      | sbb %rdx,%rdx                | {CF} -> {rdx, flags}
        18 c0                         | sbb %al,%al                  | {CF} -> {rax[0-7], flags}
        18 e0                         | sbb %ah,%al                  | {rax[0-15], CF} -> {rax[0-7], flags}
    ");
}

/// What may survive is not killed: cmov, a bit scan of zero, a compare that fails.
#[test]
fn conditional_writes() {
    check("
        48 0f 47 d8                   | cmova %rax,%rbx              | {rax, CF, ZF} -> {}
        0f 47 d8                      | cmova %eax,%ebx              | {rax, rbx, CF, ZF} -> {}
        66 0f 44 07                   | cmove (%rdi),%ax             | {rdi, ZF} -> {}
        0f 90 c0                      | seto %al                     | {OF} -> {rax[0-7]}
        0f 92 c4                      | setb %ah                     | {CF} -> {rax[8-15]}
        0f 94 07                      | sete (%rdi)                  | {rdi, ZF} -> {}
        0f bc d8                      | bsf %eax,%ebx                | {rax} -> {ZF}
        48 0f bd d8                   | bsr %rax,%rbx                | {rax} -> {ZF}
        66 0f bc c1                   | bsf %cx,%ax                  | {rcx[0-15]} -> {ZF}
        f3 0f bc d8                   | tzcnt %eax,%ebx              | {rax} -> {rbx, CF, ZF}
        f3 48 0f bd d8                | lzcnt %rax,%rbx              | {rax} -> {rbx, CF, ZF}
        f0 0f b1 0f                   | lock cmpxchg %ecx,(%rdi)     | {rax, rcx, rdi} -> {flags}
        f0 48 0f b1 0f                | lock cmpxchg %rcx,(%rdi)     | {rax, rcx, rdi} -> {flags}
        0f b1 cb                      | cmpxchg %ecx,%ebx            | {rax, rcx, rbx} -> {flags}
        f0 48 0f c7 0f                | lock cmpxchg16b (%rdi)       | {rax, rcx, rdx, rbx, rdi} -> {ZF}
        f0 0f c7 0f                   | lock cmpxchg8b (%rdi)        | {rax, rcx, rdx, rbx, rdi} -> {ZF}
    ");
}

/// A count that is zero once masked, or may be, kills no flag; one beyond the operand leaves CF
/// undefined.
#[test]
fn shifts() {
    check("
        d1 e0                         | shl $1,%eax                  | {rax} -> {rax, CF, PF, ZF, SF, OF}
        c1 e0 04                      | shl $4,%eax                  | {rax} -> {rax, CF, PF, ZF, SF}
        c1 e0 00                      | shl $0,%eax                  | {rax} -> {rax}
        c1 e0 20                      | shl $0x20,%eax               | {rax} -> {rax}
        48 c1 e0 20                   | shl $0x20,%rax               | {rax} -> {rax, CF, PF, ZF, SF}
        48 c1 e0 40                   | shl $0x40,%rax               | {rax} -> {rax}
        d3 e0                         | shl %cl,%eax                 | {rax, rcx[0-7]} -> {rax}
        48 d3 f8                      | sar %cl,%rax                 | {rax, rcx[0-7]} -> {rax}
        c0 e0 07                      | shl $7,%al                   | {rax[0-7]} -> {rax[0-7], CF, PF, ZF, SF}
        c0 e0 08                      | shl $8,%al                   | {rax[0-7]} -> {rax[0-7], PF, ZF, SF}
        c0 e8 08                      | shr $8,%al                   | {rax[0-7]} -> {rax[0-7], PF, ZF, SF}
        66 c1 e8 10                   | shr $0x10,%ax                | {rax[0-15]} -> {rax[0-15], PF, ZF, SF}
        66 c1 2f 11                   | shrw $0x11,(%rdi)            | {rdi} -> {PF, ZF, SF}
        c0 f8 09                      | sar $9,%al                   | {rax[0-7]} -> {rax[0-7], CF, PF, ZF, SF}
        d1 c0                         | rol $1,%eax                  | {rax} -> {rax, CF, OF}
        c1 c0 03                      | rol $3,%eax                  | {rax} -> {rax, CF}
        c1 c0 00                      | rol $0,%eax                  | {rax} -> {rax}
        c0 c0 08                      | rol $8,%al                   | {rax[0-7]} -> {rax[0-7], CF}
        d3 c0                         | rol %cl,%eax                 | {rax, rcx[0-7]} -> {rax}
        d1 d0                         | rcl $1,%eax                  | {rax, CF} -> {rax, CF, OF}
        c1 d0 00                      | rcl $0,%eax                  | {rax} -> {rax}
        c0 d0 09                      | rcl $9,%al                   | {rax[0-7]} -> {rax[0-7]}
        66 c1 d0 11                   | rcl $0x11,%ax                | {rax[0-15]} -> {rax[0-15]}
        d3 d8                         | rcr %cl,%eax                 | {rax, rcx[0-7], CF} -> {rax}
        0f a4 c3 03                   | shld $3,%eax,%ebx            | {rax, rbx} -> {rbx, CF, PF, ZF, SF}
        0f a4 c3 00                   | shld $0,%eax,%ebx            | {rax, rbx} -> {rbx}
        66 0f ac c3 10                | shrd $0x10,%ax,%bx           | {rax[0-15], rbx[0-15]} -> {rbx[0-15], CF, PF, ZF, SF}
        66 0f a4 c3 11                | shld $0x11,%ax,%bx           | {rax[0-15], rbx[0-15]} -> {rbx[0-15]}
        48 0f ad c3                   | shrd %cl,%rax,%rbx           | {rax, rcx[0-7], rbx} -> {rbx}
    ");
}

/// String instructions use DF; a repeated one may do nothing, so it kills nothing.
#[test]
fn strings() {
    check("
        a4                            | movsb (%rsi),(%rdi)          | {rsi, rdi, DF} -> {rsi, rdi}
        48 a5                         | movsq (%rsi),(%rdi)          | {rsi, rdi, DF} -> {rsi, rdi}
        f3 48 a5                      | rep movsq (%rsi),(%rdi)      | {rcx, rsi, rdi, DF} -> {}
        ab                            | stos %eax,(%rdi)             | {rax, rdi, DF} -> {rdi}
        f3 aa                         | rep stos %al,(%rdi)          | {rax[0-7], rcx, rdi, DF} -> {}
        ac                            | lods (%rsi),%al              | {rsi, DF} -> {rax[0-7], rsi}
        ad                            | lods (%rsi),%eax             | {rsi, DF} -> {rax, rsi}
        f3 ad                         | rep lods (%rsi),%eax         | {rcx, rsi, DF} -> {}
        a6                            | cmpsb (%rdi),(%rsi)          | {rsi, rdi, DF} -> {rsi, rdi, flags}
        f3 a6                         | repe cmpsb (%rdi),(%rsi)     | {rcx, rsi, rdi, DF} -> {}
        f2 a7                         | repne cmpsl (%rdi),(%rsi)    | {rcx, rsi, rdi, DF} -> {}
        ae                            | scas (%rdi),%al              | {rax[0-7], rdi, DF} -> {rdi, flags}
        f2 ae                         | repne scas (%rdi),%al        | {rax[0-7], rcx, rdi, DF} -> {}
        f3 48 af                      | repe scas (%rdi),%rax        | {rax, rcx, rdi, DF} -> {}
        f3 6c                         | rep insb %dx,(%rdi)          | {rcx, rdx[0-15], rdi, DF} -> {}
        6f                            | outsl (%rsi),%dx             | {rdx[0-15], rsi, DF} -> {rsi}
        67 a4                         | movsb (%esi),(%edi)          | {rsi, rdi, DF} -> {rsi, rdi}
        67 f3 ab                      | rep stos %eax,(%edi)         | {rax, rcx, rdi, DF} -> {}
        d7                            | xlat (%rbx)                  | {rax[0-7], rbx} -> {rax[0-7]}
    ");
}

/// Instructions about flags.
#[test]
fn flags_by_name() {
    check("
        9c                            | pushf                        | {rsp, flags, DF} -> {rsp}
        9d                            | popf                         | {rsp} -> {rsp, flags, DF}
        9f                            | lahf                         | {CF, PF, AF, ZF, SF} -> {rax[8-15]}
        9e                            | sahf                         | {rax[8-15]} -> {CF, PF, AF, ZF, SF}
        fc                            | cld                          | {} -> {DF}
        fd                            | std                          | {} -> {DF}
        f8                            | clc                          | {} -> {CF}
        f9                            | stc                          | {} -> {CF}
        f5                            | cmc                          | {CF} -> {CF}
        fa                            | cli                          | {} -> {}
        fb                            | sti                          | {} -> {}
        0f 01 ca                      | clac                         | {} -> {}
        0f 01 cb                      | stac                         | {} -> {}
    ");
}

/// Stack instructions use and move rsp.
#[test]
fn stack() {
    check(
        "
        50                            | push %rax                    | {rax, rsp} -> {rsp}
        66 50                         | push %ax                     | {rax[0-15], rsp} -> {rsp}
        ff 37                         | pushq (%rdi)                 | {rsp, rdi} -> {rsp}
        5b                            | pop %rbx                     | {rsp} -> {rbx, rsp}
        8f 07                         | popq (%rdi)                  | {rsp, rdi} -> {rsp}
        5c                            | pop %rsp                     | {rsp} -> {rsp}
        c8 10 00 00                   | enter $0x10,$0               | {rsp, rbp} -> {rsp, rbp}
        c8 10 00 02                   | enter $0x10,$2               | {rsp, rbp} -> {rsp, rbp}
        c9                            | leave                        | {rbp} -> {rsp, rbp}
    ",
    );
}

/// Calls, jumps and returns have their own operands only.
#[test]
fn control() {
    check(
        "
        e8 fb ff ff ff                | call 0                       | {rsp} -> {rsp}
        ff d0                         | call *%rax                   | {rax, rsp} -> {rsp}
        ff 57 08                      | callq *8(%rdi)               | {rsp, rdi} -> {rsp}
        eb fe                         | jmp 0                        | {} -> {}
        ff e1                         | jmp *%rcx                    | {rcx} -> {}
        ff 24 cd 00 00 00 00          | jmpq *(,%rcx,8)              | {rcx} -> {}
        c3                            | ret                          | {rsp} -> {rsp}
        c2 08 00                      | ret $8                       | {rsp} -> {rsp}
        74 fe                         | je 0                         | {ZF} -> {}
        77 fe                         | ja 0                         | {CF, ZF} -> {}
        7e fe                         | jle 0                        | {ZF, SF, OF} -> {}
        7a fe                         | jp 0                         | {PF} -> {}
        e2 fe                         | loop 0                       | {rcx} -> {rcx}
        e1 fe                         | loope 0                      | {rcx, ZF} -> {rcx}
        67 e2 fd                      | loopl 0                      | {rcx} -> {rcx}
        e3 fe                         | jrcxz 0                      | {rcx} -> {}
        67 e3 fd                      | jecxz 0                      | {rcx} -> {}
    ",
    );
}

/// Port and clock instructions have implicit registers.
#[test]
fn ports_and_clocks() {
    check(
        "
        ec                            | in %dx,%al                   | {rdx[0-15]} -> {rax[0-7]}
        ed                            | in %dx,%eax                  | {rdx[0-15]} -> {rax}
        66 e5 60                      | in $0x60,%ax                 | {} -> {rax[0-15]}
        ee                            | out %al,%dx                  | {rax[0-7], rdx[0-15]} -> {}
        e7 80                         | out %eax,$0x80               | {rax} -> {}
        0f 31                         | rdtsc                        | {} -> {rax, rdx}
        0f 01 f9                      | rdtscp                       | {} -> {rax, rcx, rdx}
        0f c7 f0                      | rdrand %eax                  | {} -> {rax, flags}
    ",
    );
}

/// An instruction that does nothing uses nothing, whatever address it spells.
#[test]
fn no_operations() {
    check(
        "
        90                            | nop                          | {} -> {}
        66 90                         | xchg %ax,%ax                 | {} -> {}
        0f 1f 44 18 08                | nopl 8(%rax,%rbx)            | {} -> {}
        2e 66 0f 1f 04 00             | nopw (%rax,%rax)             | {} -> {}
        0f 1f c0                      | nop %eax                     | {} -> {}
        f3 0f 1e fa                   | endbr64                      | {} -> {}
        f3 90                         | pause                        | {} -> {}
        0f ae e8                      | lfence                       | {} -> {}
    ",
    );
}

/// Of vector and x87 instructions the general registers and flags count.
#[test]
fn vectors_and_x87() {
    check(
        "
        0f 2f c8                      | comiss %xmm0,%xmm1           | {} -> {flags}
        db f1                         | fcomi %st(1),%st             | {} -> {CF, PF, ZF}
        df e0                         | fnstsw %ax                   | {} -> {rax[0-15]}
        66 0f 6e c0                   | movd %eax,%xmm0              | {rax} -> {}
        66 48 0f 7e c0                | movq %xmm0,%rax              | {} -> {rax}
        66 0f d7 c0                   | pmovmskb %xmm0,%eax          | {} -> {rax}
        66 0f 3a 20 c0 01             | pinsrb $1,%eax,%xmm0         | {rax[0-7]} -> {}
        66 0f 3a 61 c8 01             | pcmpestri $1,%xmm0,%xmm1     | {rax, rdx} -> {rcx, flags}
        66 0f 38 17 c8                | ptest %xmm0,%xmm1            | {} -> {flags}
        0f 10 04 37                   | movups (%rdi,%rsi),%xmm0     | {rsi, rdi} -> {}
        c4 e2 69 90 04 0f             | vpgatherdd %xmm2,(%rdi,%xmm1),%xmm0 | {rdi} -> {}
        66 0f f7 c1                   | maskmovdqu %xmm1,%xmm0       | {rdi} -> {}
        c5 f8 77                      | vzeroupper                   | {} -> {}
    ",
    );
}

/// An instruction that depends on the machine, or whose registers no manual's table lists, uses
/// everything and kills nothing.
#[test]
fn opaque() {
    check(
        "
        0f 05                         | syscall                      | opaque
        cc                            | int3                         | opaque
        cd 80                         | int $0x80                    | opaque
        0f 0b                         | ud2                          | opaque
        0f a2                         | cpuid                        | opaque
        f4                            | hlt                          | opaque
        48 cf                         | iretq                        | opaque
        cb                            | lretl                        | opaque
        ff 2f                         | ljmpl *(%rdi)                | opaque
        ff 1f                         | lcalll *(%rdi)               | opaque
        c7 f8 fa ff ff ff             | xbegin 0                     | opaque
        0f 01 d5                      | xend                         | opaque
        0f ae 07                      | fxsave (%rdi)                | opaque
        0f ae 0f                      | fxrstor (%rdi)               | opaque
        0f ae 27                      | xsave (%rdi)                 | opaque
        0f ae 2f                      | xrstor (%rdi)                | opaque
        0f 32                         | rdmsr                        | opaque
        0f 30                         | wrmsr                        | opaque
        0f 20 c0                      | mov %cr0,%rax                | opaque
        0f 23 f8                      | mov %rax,%dr7                | opaque
        0f 01 07                      | sgdt (%rdi)                  | opaque
        0f 01 e0                      | smsw %eax                    | opaque
        0f 02 c0                      | lar %eax,%eax                | opaque
        0f 00 2f                      | verw (%rdi)                  | opaque
        0f 01 f8                      | swapgs                       | opaque
        0f 01 c8                      | monitor                      | opaque
        0f 01 c1                      | vmcall                       | opaque
        0f 33                         | rdpmc                        | opaque
        f3 0f c7 f8                   | rdpid %rax                   | opaque
        f3 48 0f ae c8                | rdgsbase %rax                | opaque
        f3 48 0f 1e c8                | rdsspq %rax                  | opaque
        0f 01 3f                      | invlpg (%rdi)                | opaque
        0f 1a 07                      | nop %eax,(%rdi)              | opaque
        06                            | (bad)                        | opaque
    ",
    );
}
