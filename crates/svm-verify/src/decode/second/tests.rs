//! Every encoding that is on the allow-list, and most that are not, go through
//! both decoders.

use std::collections::{BTreeMap, HashSet};

use iced_x86::{
    Code, Decoder, DecoderOptions, InstructionInfoFactory, Mnemonic, OpCodeOperandKind,
};
use twin_abi::Scheme;

use super::*;
use crate::decode::allow::{self, Admission};
use crate::decode::classify::{self, OperandField};
use crate::decode::prefix;
use crate::targets::Rules;

/// Every opcode byte of these maps after `head`, with every register field and each
/// form of an address.
fn every_opcode(head: &[u8], mut check: impl FnMut(&[u8; 24])) {
    for opcode in 0..=255u8 {
        for modrm in (0..=255u8).filter(|modrm| !matches!(modrm & 7, 3 | 6 | 7)) {
            let mut bytes = [0x11; 24];
            bytes[..head.len()].copy_from_slice(head);
            bytes[head.len()] = opcode;
            bytes[head.len() + 1] = modrm;
            // A base and an index, or none with a scale all the same.
            bytes[head.len() + 2] = [0x8b, 0x23, 0x63, 0xe3][usize::from(modrm >> 3 & 3)];
            check(&bytes);
        }
    }
}

/// The bytes before the opcode: prefixes, REX and escape bytes, or VEX.
fn heads() -> Vec<Vec<u8>> {
    let mut heads = Vec::new();
    let prefixes = [
        &[][..],
        &[0x66],
        &[0xf2],
        &[0xf3],
        &[0xf0],
        &[0x66, 0xf2],
        &[0x66, 0xf3],
    ];
    for prefix in prefixes {
        for rex in [&[][..], &[0x40], &[0x48], &[0x45], &[0x4f]] {
            for map in [&[][..], &[0x0f], &[0x0f, 0x38], &[0x0f, 0x3a]] {
                heads.push([prefix, rex, map].concat());
            }
        }
    }
    for map in 1..=3 {
        for third in 0..=255u8 {
            // vvvv: no register, xmm3 and xmm11.
            let (vvvv, inverted) = (third >> 3 & 15, if third & 0x20 == 0 { 0 } else { 0xe0 });
            if matches!(vvvv, 15 | 12 | 4) {
                heads.push(vec![0xc4, inverted | map, third]);
            }
        }
    }
    for second in [0xf8, 0xf9, 0xfa, 0xfb, 0xfc, 0x65, 0x62] {
        heads.push(vec![0xc5, second]);
    }
    heads
}

/// The comparison of the instruction at the start of the bytes, in an object of that
/// scheme; `None` if a rule refuses it by name.
fn compared(
    bytes: &[u8],
    scheme: Scheme,
    factory: &mut InstructionInfoFactory,
) -> Option<(Instruction, Result<(), &'static str>)> {
    let i = Decoder::with_ip(64, bytes, 0, DecoderOptions::NONE).decode();
    if allow::admission(i.code()) != Admission::Allowed {
        return None;
    }
    let rules = Rules::hypervisor(scheme, scheme.processor());
    prefix::check(&i, &bytes[..i.len()], rules).ok()?;
    let insn = classify::classify(&i, OperandField::None, rules, factory).ok()?;
    Some((i, agrees(&InstDecoder::default(), &i, &insn, bytes)))
}

/// Listed, but refused because the second decoder does not know them. No compiler emits
/// them: W set where the manual ignores it, and VPCLMULQDQ of 256 bits, which is newer
/// than the decoder.
const LOST: [Code; 3] = [
    Code::VEX_Vpextrb_r64m8_xmm_imm8,
    Code::VEX_Vpextrw_r64m16_xmm_imm8,
    Code::VEX_Vpclmulqdq_ymm_ymm_ymmm256_imm8,
];

/// The properties that [`crate::decode::memo`] relies on.
#[test]
fn what_follows_an_instruction_changes_nothing() {
    let mut factory = InstructionInfoFactory::new();
    for (head, scheme) in all_heads() {
        every_opcode(&head, |bytes| {
            let Some((i, result)) = compared(bytes, scheme, &mut factory) else {
                return;
            };
            for tail in [0x00, 0x66, 0xf0, 0xff] {
                let mut other = *bytes;
                other[i.len()..].fill(tail);
                let again = compared(&other, scheme, &mut factory);
                let (j, again) = again.expect("the same instruction");
                assert_eq!((i, i.len(), result), (j, j.len(), again), "{bytes:02x?}");
            }
        });
    }
}

/// The heads for a scheme with a table, and for one with a window the same behind the
/// prefixes of an operand there, in either order.
fn all_heads() -> impl Iterator<Item = (Vec<u8>, Scheme)> {
    heads().into_iter().flat_map(|head| {
        let behind = |prefixes: [u8; 2]| [&prefixes[..], &head].concat();
        [
            (behind([0x65, 0x67]), Scheme::Window32),
            (behind([0x67, 0x65]), Scheme::Window32),
            (head, Scheme::Stlb),
        ]
    })
}

/// The listed instructions that occur behind heads, if the decoders agree on all of them.
fn agreed(heads: impl Iterator<Item = (Vec<u8>, Scheme)>) -> HashSet<Code> {
    let mut factory = InstructionInfoFactory::new();
    let (mut seen, mut differ) = (HashSet::new(), BTreeMap::new());
    for (head, scheme) in heads {
        every_opcode(&head, |bytes| match compared(bytes, scheme, &mut factory) {
            Some((i, Ok(()))) => {
                seen.insert(i.code());
            }
            Some((i, Err(reason))) if !LOST.contains(&i.code()) => {
                let text = format!("{i}: {:02x?}: {reason}", &bytes[..i.len()]);
                differ.entry(i.code() as u32).or_insert(text);
            }
            _ => {}
        });
    }
    let shown: Vec<&str> = differ.values().map(String::as_str).collect();
    assert!(shown.is_empty(), "{}", shown.join("\n"));
    seen
}

#[test]
fn the_decoders_agree_on_every_operand_in_the_window() {
    let seen = agreed(all_heads().filter(|(_, scheme)| *scheme == Scheme::Window32));
    let has = |kind: fn(OpCodeOperandKind) -> bool| {
        move |code: &Code| code.op_code().op_kinds().iter().any(|&k| kind(k))
    };
    let memory = |kind| {
        use OpCodeOperandKind::*;
        matches!(
            kind,
            mem | r8_or_mem | r16_or_mem | r32_or_mem | r64_or_mem | xmm_or_mem | ymm_or_mem
        )
    };
    let listed = Code::values()
        .filter(|&code| allow::admission(code) == Admission::Allowed)
        .filter(|code| !LOST.contains(code) && !allow::wide_move(*code));
    let missing: Vec<Code> = listed
        .filter(has(memory))
        .filter(|code| !seen.contains(code))
        // They reach nothing: prefixes are refused.
        .filter(|code| !matches!(code.mnemonic(), Mnemonic::Lea | Mnemonic::Nop))
        .collect();
    assert_eq!(missing, []);
    // Nothing else has these prefixes.
    let others: Vec<Code> = seen.into_iter().filter(|code| !has(memory)(code)).collect();
    assert_eq!(others, []);
}

#[test]
fn the_decoders_agree_on_every_listed_instruction() {
    let seen = agreed(all_heads().filter(|(_, scheme)| *scheme == Scheme::Stlb));
    let listed = Code::values().filter(|&code| allow::admission(code) == Admission::Allowed);
    let missing: Vec<Code> = listed
        .filter(|code| !seen.contains(code) && !LOST.contains(code))
        // This test writes no EVEX prefix; the fixture `class_avx512` has them.
        .filter(|code| !allow::wide_move(*code))
        // An absolute address is refused for its form.
        .filter(|code| {
            !code
                .op_code()
                .op_kinds()
                .contains(&OpCodeOperandKind::mem_offs)
        })
        .collect();
    assert_eq!(missing, []);
}

/// By the first decoder's own table; the rule goes by the operands.
#[test]
fn no_scalar_is_accepted_with_256_bits() {
    let mut factory = InstructionInfoFactory::new();
    let (mut long, mut scalars) = (0, 0);
    for (head, scheme) in all_heads() {
        let vex = head.iter().rposition(|b| matches!(b, 0xc4 | 0xc5));
        if vex.is_none_or(|at| at + 3 < head.len()) {
            continue;
        }
        let is_long = head.last().is_some_and(|b| b & 4 != 0);
        every_opcode(&head, |bytes| {
            let Some((i, _)) = compared(bytes, scheme, &mut factory) else {
                return;
            };
            let scalar = i.code().op_code().is_lig();
            assert!(!(is_long && scalar), "{i}: {bytes:02x?}");
            long += usize::from(is_long);
            scalars += usize::from(scalar);
        });
    }
    assert!(long > 0 && scalars > 0);
}
