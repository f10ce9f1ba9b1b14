//! Encodings as bytes, from the tables of the manual (SDM volume 2, 2.1 to 2.3 and
//! appendix A) and not from a decoder's: prefixes, REX, opcode map, opcode, ModRM and
//! SIB in this order, with several displacements and immediates. The verifier refuses
//! most of them.

/// Legacy prefixes: none, and those that choose an instruction or change it.
const PREFIXES: [&[u8]; 9] = [
    &[],
    &[0x66],
    &[0xf2],
    &[0xf3],
    &[0xf0],
    &[0x66, 0xf0],
    &[0x66, 0xf2],
    &[0x66, 0xf3],
    &[0x67],
];

/// REX: none, without effect but for the byte registers, and each of W, R and B.
const REX: [&[u8]; 10] = [
    &[],
    &[0x40],
    &[0x41],
    &[0x44],
    &[0x45],
    &[0x48],
    &[0x49],
    &[0x4a],
    &[0x4c],
    &[0x4d],
];

/// Opcode maps.
const MAPS: [&[u8]; 4] = [&[], &[0x0f], &[0x0f, 0x38], &[0x0f, 0x3a]];

/// SIB bytes: `(%rsp)` or `(%r12)`, `(%rbp,...)`, with an index, without a base.
const SIB: [u8; 3] = [0x24, 0x25, 0x48];

/// Displacement and immediate: small and positive, negative, at a sign's edge.
const TAILS: [[u8; 12]; 3] = [
    [0x10, 0, 0, 0, 0x03, 0, 0, 0, 0x11, 0, 0, 0],
    [
        0xf0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
    ],
    [0x40, 0x80, 0, 0, 0x80, 0x80, 0, 0, 0x80, 0x7f, 0, 0],
];

/// Calls `f` with each, behind `first`. What follows an encoding in the bytes means nothing.
pub fn each(first: &[u8], f: &mut dyn FnMut(&[u8])) {
    for prefix in PREFIXES {
        for rex in REX {
            for map in MAPS {
                for opcode in 0..=255 {
                    let head = [first, prefix, rex, map, &[opcode]].concat();
                    operands(&head, f);
                }
            }
        }
    }
    vex(first, f);
    evex(first, f);
}

/// All ModRM bytes, with each SIB where there is one, and each tail.
fn operands(head: &[u8], f: &mut dyn FnMut(&[u8])) {
    // A prefix is no opcode of its own: it was written before this.
    for modrm in 0..=255u8 {
        let has_sib = modrm >> 6 != 3 && modrm & 7 == 4;
        let sibs: &[u8] = if has_sib { &SIB } else { &SIB[..1] };
        for &sib in sibs {
            for tail in &TAILS {
                let mut bytes = [0x90; 32];
                let mut at = 0;
                let mut put = |part: &[u8]| {
                    bytes[at..at + part.len()].copy_from_slice(part);
                    at += part.len();
                };
                put(head);
                put(&[modrm]);
                if has_sib {
                    put(&[sib]);
                }
                put(tail);
                f(&bytes);
            }
        }
    }
}

/// Three-byte VEX: `c4`, inverted RXB and the map, W vvvv L pp, opcode.
fn vex(first: &[u8], f: &mut dyn FnMut(&[u8])) {
    for map in 1..=3 {
        for opcode in 0..=255 {
            for control in 0..=7u8 {
                // L and pp are its low bits.
                for w in [0, 0x80] {
                    for vvvv in [0xf, 0, 8] {
                        for rxb in [0xe0, 0x60, 0xc0] {
                            let head = [0xc4, rxb | map, w | vvvv << 3 | control, opcode];
                            operands(&[first, &head].concat(), f);
                        }
                    }
                }
            }
        }
    }
}

/// EVEX of 64 bytes without a mask, where moves are: `62`, map 1, W and pp, L'L.
fn evex(first: &[u8], f: &mut dyn FnMut(&[u8])) {
    for opcode in [0x10, 0x11, 0x28, 0x29, 0x6f, 0x7f] {
        for pp in 0..=3 {
            for w in [0, 0x80] {
                for rxb in [0xf1, 0xd1] {
                    let head = [0x62, rxb, w | 0x7c | pp, 0x48, opcode];
                    operands(&[first, &head].concat(), f);
                }
            }
        }
    }
}
