//! Bytes that decoders, and processors of different makers, are known to read
//! differently. Each is refused, or means the same to both decoders of the
//! verifier. If a rule refuses the bytes before the second decoding, the expected code is
//! that of the rule.

mod common;
use common::*;

/// Bytes before a `ret` in hexadecimal, named for their trick, and the code they are refused
/// with; empty if they are accepted.
#[rustfmt::skip] // A table: one line a case.
const CASES: &[(&str, &str, &str)] = &[
    // Padding that assemblers emit.
    ("nop", "90", ""),
    ("nop with an operand size", "66 90", ""),
    ("nop of three bytes", "0f 1f 00", ""),
    ("nop of nine bytes", "66 0f 1f 84 00 00 00 00 00", ""),
    ("nop with cs", "66 2e 0f 1f 84 00 00 00 00 00", ""),
    ("nop of fifteen bytes", "66 66 66 66 66 66 2e 0f 1f 84 00 00 00 00 00", ""),
    ("nop whose operand is a register", "0f 1f c0", ""),
    ("pause", "f3 90", ""),
    ("rep ret", "f3 c3", ""),
    ("endbr64", "f3 0f 1e fa", ""),
    // Too long: sixteen bytes and more.
    ("nop of sixteen bytes", "66 66 66 66 66 66 66 2e 0f 1f 84 00 00 00 00 00", "P3-undecodable"),
    ("fifteen prefixes", "66 66 66 66 66 66 66 66 66 66 66 66 66 66 66 90", "P3-undecodable"),
    ("movabs behind prefixes", "2e 2e 2e 2e 2e 2e 48 b8 01 02 03 04 05 06 07 08", "P3-undecodable"),
    ("only prefixes up to ret", "66 66 66 66 66 66 66 66 66 66 66 66 66 66 66", "P3-undecodable"),
    // An operand size on branches: 16 bits of offset to one maker, 32 to another.
    ("call rel16 or rel32", "66 e8 00 00 00 00", "P3-prefix"),
    ("jmp rel16 or rel32", "66 e9 00 00 00 00", "P3-prefix"),
    ("jmp rel8 with an operand size", "66 eb 00", "P3-prefix"),
    ("jcc rel16 or rel32", "66 0f 85 00 00 00 00", "P3-prefix"),
    ("jcc rel8 with an operand size", "66 75 00", "P3-prefix"),
    ("loop with an operand size", "66 e2 00", "P3-prefix"),
    ("jrcxz with an operand size", "66 e3 00", "P3-prefix"),
    ("ret with an operand size", "66 c3", "P3-prefix"),
    ("call with REX.W after the operand size", "66 48 e8 00 00 00 00", "P3-prefix"),
    ("indirect jmp of 16 bits", "66 ff e0", "P2-indirect"),
    ("enter the middle: rel16 hides an instruction", "66 e8 00 00 90 90", "P3-prefix"),
    // bnd, notrack and branch hints.
    ("bnd ret", "f2 c3", "P3-prefix"),
    ("bnd call", "f2 e8 00 00 00 00", "P3-prefix"),
    ("bnd jmp", "f2 e9 00 00 00 00", "P3-prefix"),
    ("bnd jmp rel8", "f2 eb 00", "P3-prefix"),
    ("bnd jcc", "f2 0f 85 00 00 00 00", "P3-prefix"),
    ("bnd jcc rel8", "f2 75 00", "P3-prefix"),
    ("notrack jmp rel8", "3e eb 00", ""),
    ("branch taken", "3e 75 00", ""),
    ("branch not taken", "2e 75 00", ""),
    ("branch with fs", "64 75 00", "P1-address-form"),
    ("xacquire on jmp", "f2 f0 eb 00", "P3-undecodable"),
    ("rep jmp", "f3 eb 00", "P3-prefix"),
    ("rep jcc", "f3 75 00", "P3-prefix"),
    ("rep call", "f3 e8 00 00 00 00", "P3-prefix"),
    // REX: the last one before the opcode counts, and only there.
    ("two REX", "48 40 89 c8", "P3-prefix"),
    ("two REX, W last", "40 48 89 c8", "P3-prefix"),
    ("REX before an operand size", "48 66 89 c8", "P3-prefix"),
    ("REX before rep", "48 f3 a4", "P3-prefix"),
    ("REX before cs", "48 2e 89 c8", "P3-prefix"),
    ("REX on ret", "48 c3", "P3-prefix"),
    ("REX on jmp", "48 eb 00", "P3-prefix"),
    ("REX on jcc", "48 75 00", "P3-prefix"),
    ("REX on call", "48 e8 00 00 00 00", "P3-prefix"),
    ("needless REX", "40 89 c8", ""),
    ("needless REX on push", "48 50 58", ""),
    ("REX.B on nop: xchg %r8, %rax", "49 90", ""),
    ("REX on nop", "48 90", ""),
    ("REX before VEX", "48 c5 f8 57 c0", "P3-undecodable"),
    ("REX before the nop prefix of mandatory f3", "48 f3 0f b8 c0", "P3-prefix"),
    ("REX alone at the end", "48 48", "P3-prefix"),
    // Soup of prefixes.
    ("rep and repne", "f3 f2 a4", "P3-prefix"),
    ("repne and rep", "f2 f3 a4", "P3-prefix"),
    ("rep twice", "f3 f3 90", "P3-prefix"),
    ("lock twice", "f0 f0 ff 04 24", "P3-prefix"),
    ("lock on a register", "f0 ff c0", "P3-undecodable"),
    ("lock on mov", "f0 89 04 24", "P3-undecodable"),
    ("lock on nop", "f0 90", "P3-undecodable"),
    ("lock on cmp", "f0 39 04 24", "P3-undecodable"),
    ("operand size twice", "66 66 89 c8", "P3-prefix"),
    ("all segments", "26 2e 36 3e 89 c8", "P3-prefix"),
    ("cs on mov", "2e 89 c8", ""),
    ("address size on mov", "67 89 c8", "P1-address-form"),
    ("address size on push", "67 50", "P1-address-form"),
    ("address size on jrcxz: jecxz", "67 e3 00", "P3-instruction"),
    ("address size on loop", "67 e2 00", "P3-instruction"),
    ("address size twice on lea", "67 67 8d 04 08", "P3-prefix"),
    ("gs on lea", "65 8d 04 08", "P1-address-form"),
    ("gs on a register", "65 89 c8", "P1-address-form"),
    ("repne on mov", "f2 89 c8", "P3-prefix"),
    ("rep on mov", "f3 89 c8", "P3-prefix"),
    ("rep on bsf: tzcnt", "f3 0f bc c0", ""),
    ("rep on bsr: lzcnt", "f3 0f bd c0", ""),
    ("repne on bsf", "f2 0f bc c0", "P3-prefix"),
    ("rep on popcnt with an operand size", "66 f3 0f b8 c0", ""),
    ("operand size behind rep on popcnt", "f3 66 0f b8 c0", ""),
    ("66 and f2 as mandatory prefixes", "66 f2 0f 10 c0", "P3-prefix"),
    ("f3 and f2 as mandatory prefixes", "f3 f2 0f 10 c0", "P3-prefix"),
    ("VEX behind an operand size", "66 c5 f8 57 c0", "P3-undecodable"),
    ("VEX behind lock", "f0 c5 f8 57 c0", "P3-undecodable"),
    ("VEX behind rep", "f3 c5 f8 57 c0", "P3-undecodable"),
    // One opcode, several readings.
    ("3DNow! prefetch of a register", "0f 0d c8", "P3-instruction"),
    ("prefetch with the reserved field 7", "0f 0d 3c 24", "P3-instruction"),
    ("prefetchw", "0f 0d 0c 24", ""),
    ("prefetch of AMD", "0f 0d 04 24", "P3-instruction"),
    ("prefetchwt1", "0f 0d 14 24", "P3-instruction"),
    ("hint nop 0f 18 /4", "0f 18 24 24", "P3-instruction"),
    ("hint nop of a register", "0f 18 c0", "P3-instruction"),
    ("hint nop 0f 19", "0f 19 c0", "P3-instruction"),
    ("hint nop 0f 1a: bndldx", "0f 1a c0", "P3-instruction"),
    ("hint nop 0f 1c: cldemote", "0f 1c 04 24", "P3-instruction"),
    ("hint nop 0f 1e", "0f 1e c0", "P3-instruction"),
    ("rdsspd", "f3 0f 1e c8", "P3-instruction"),
    ("hint nop 0f 1f /1", "0f 1f c8", "P3-instruction"),
    ("nop 0f 1f of memory with an index", "0f 1f 44 00 00", ""),
    ("endbr32", "f3 0f 1e fb", "P3-instruction"),
    ("ud0 with or without modrm", "0f ff c0", "P3-instruction"),
    ("ud1", "0f b9 c0", "P3-instruction"),
    ("ud2", "0f 0b", ""),
    ("movsxd of 16 bits", "66 63 c8", "P3-instruction"),
    ("bswap of 16 bits", "66 0f c8", "P3-instruction"),
    ("xbegin", "c7 f8 00 00 00 00", "P3-instruction"),
    ("test by the undocumented field 1", "f7 c8 00 00 00 00", "P3-instruction"),
    ("shl by the undocumented field 6", "c1 f0 04", "P3-instruction"),
    ("salc", "d6", "P3-undecodable"),
    ("int1", "f1", "P3-instruction"),
    ("fence with another register field", "0f ae e9", "P3-instruction"),
    ("lfence", "0f ae e8", ""),
    ("mov to cr8 by lock", "f0 0f 22 c0", "P3-undecodable"),
    ("far ret", "cb", "P3-instruction"),
    ("ret with an immediate", "c2 08 00", "P3-instruction"),
    ("XOP", "8f e8 78 c2 c0 00", "P3-instruction"),
    ("pop %rcx by modrm", "51 8f c1", ""),
    ("EVEX", "62 f1 7c 48 57 c0", "P3-instruction"),
    ("REX2", "d5 00 89 c8", "P3-undecodable"),
    ("vpextrb with W", "c4 e3 f9 14 c0 00", "P3-decoders"),
    ("vpextrb", "c4 e3 79 14 c0 00", ""),
    ("vpclmulqdq of 256 bits", "c4 e3 75 44 c2 00", "P3-decoders"),
    ("VEX of map 0", "c4 e0 78 57 c0", "P3-undecodable"),
    ("VEX of map 5", "c4 e5 78 57 c0", "P3-undecodable"),
    ("vaddss with L", "c5 fe 58 c0", "P3-prefix"),
    ("vmovd with L", "c5 fd 6e c0", "P3-undecodable"),
    ("mov to a segment", "8e d8", "P3-instruction"),
    ("cmov that faults or not", "0f 44 04 24", ""),
    ("sib without index", "8b 44 24 f8", ""),
    ("sib without index, scaled by 8", "8b 44 e4 f8", ""),
    ("sib without base", "48 8b 04 65 00 00 00 00", "P1-address-form"),
    ("absolute address", "48 8b 04 25 00 00 00 00", "P1-address-form"),
    ("moffs", "48 a1 00 00 00 00 00 00 00 00", "P1-address-form"),
    ("moffs with an address size", "67 48 a1 00 00 00 00", "P1-address-form"),
    ("mov %rsp, %rsp by the other opcode", "48 8b e4", ""),
];

/// The first code that `bytes; ret` is refused with. The `ret` is a function of its own,
/// so it may follow code that does not continue.
fn verdict(bytes: &str) -> String {
    let list = format!("0x{}", bytes.replace(' ', ", 0x"));
    let found = codes(&object(
        STLB,
        &format!(".globl f, g\nf: .byte {list}\ng: ret\n"),
    ));
    found.first().map_or_else(String::new, ToString::to_string)
}

#[test]
fn bytes_that_decoders_dispute() {
    let mut wrong = Vec::new();
    for (name, bytes, expected) in CASES {
        let found = verdict(bytes);
        if found != *expected {
            wrong.push(format!(
                "{name} ({bytes}): {found:?} instead of {expected:?}"
            ));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}
