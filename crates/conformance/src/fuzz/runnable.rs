//! Programs whose behaviour is defined, so that it can be compared: the programs of
//! [`program`](super::program()), without instructions that a correct program would not
//! have or on which two runs may differ.
//!
//! Left out are: instructions that leave the function (calls, returns, indirect jumps,
//! traps, ports), those that read the time or a random number, addresses below `rsp`
//! and `rsp` as a value, `%fs`, branches backwards (a program ends), and uses of
//! flags that an instruction left undefined.

use iced_x86::{
    Decoder, DecoderOptions, Encoder, FlowControl, Instruction, Mnemonic, OpKind, Register,
};

use svm_rewrite::{Options, Refusal, RefusalCode, Scheme};

use super::program::{Choices, one};

/// Most instructions of a program.
const MOST: usize = 48;

/// The body of a function. `None` if it reads undefined flags.
pub fn body(choices: &[u8]) -> Option<Vec<u8>> {
    let mut choices = Choices(choices);
    let mut list: Vec<(Instruction, u8)> = Vec::new();
    let (mut depth, mut undefined) = (0i32, 0);
    while let (Some(number), true) = (choices.next(), list.len() < MOST) {
        let bytes = one(number, &mut choices);
        let decoded = Decoder::new(64, &bytes, DecoderOptions::NONE).decode();
        let moved = stack_change(&decoded);
        let fits = (0..=8).contains(&(depth + moved)) && decoded.rflags_read() & undefined == 0;
        // Two pointers added are seldom one, nor a pointer and an eighth of one.
        let sum = decoded.memory_index() != Register::None || is_bit_string(&decoded);
        let lost = sum && !choices.byte().is_multiple_of(8);
        if fits && !lost && is_suitable(&decoded) && is_rewritten(&decoded) {
            depth += moved;
            undefined = undefined_after(&decoded, undefined);
            let branch = is_branch(&decoded);
            list.push((decoded, if branch { choices.byte() } else { 0 }));
        }
    }
    let targets = targets(&list);
    reads_defined_flags(&list, &targets).then_some(())?;
    encode(&list, &targets, depth)
}

fn is_branch(i: &Instruction) -> bool {
    i.flow_control() == FlowControl::ConditionalBranch
        || i.flow_control() == FlowControl::UnconditionalBranch
}

/// Whether a register says which bit of memory is meant.
fn is_bit_string(i: &Instruction) -> bool {
    use Mnemonic::{Bt, Btc, Btr, Bts};
    let family = matches!(i.mnemonic(), Bt | Btc | Btr | Bts);
    family && i.op0_kind() == OpKind::Memory && i.op1_kind() == OpKind::Register
}

/// Words that it pushes.
fn stack_change(i: &Instruction) -> i32 {
    -i.stack_pointer_increment() / 8
}

fn is_suitable(i: &Instruction) -> bool {
    use Mnemonic as M;
    let straight = i.flow_control() == FlowControl::Next;
    let branch = is_branch(i) && (0..i.op_count()).all(|n| i.op_kind(n) == OpKind::NearBranch64);
    let unsteady = matches!(
        i.mnemonic(),
        M::Rdtsc | M::Rdtscp | M::Rdrand | M::Rdseed | M::Leave | M::Enter | M::Pushf | M::Popf
    );
    let short = matches!(
        i.mnemonic(),
        M::Loop | M::Loope | M::Loopne | M::Jrcxz | M::Jecxz
    );
    !i.is_invalid() && (straight || branch) && !unsteady && !short && addresses_data(i)
}

/// Whether the rewriter accepts it: one refused instruction would leave the others
/// untested.
fn is_rewritten(i: &Instruction) -> bool {
    if is_branch(i) {
        return true;
    }
    let mut encoder = Encoder::new(64);
    if encoder.encode(i, 0).is_err() {
        return false;
    }
    let mut code = encoder.take_buffer();
    code.push(0xc3);
    let options = Options::new(Scheme::Stlb);
    let rewritten = svm_rewrite::rewrite(&super::object_of(&code), options);
    // A direction is known where the program is, or not, but not here.
    let unknown =
        |refusals: &Vec<Refusal>| refusals.iter().all(|r| r.code == RefusalCode::Direction);
    rewritten.map_or_else(|refusals| unknown(&refusals), |_| true)
}

/// Whether its operands neither show where the stack is nor reach below it, nor
/// the code or the first 4 GiB by a constant.
fn addresses_data(i: &Instruction) -> bool {
    let names_rsp = (0..i.op_count()).any(|n| {
        i.op_kind(n) == OpKind::Register && i.op_register(n).full_register() == Register::RSP
    });
    let memory = (0..i.op_count()).any(|n| i.op_kind(n) == OpKind::Memory);
    if names_rsp || i.segment_prefix() == Register::FS {
        return false;
    }
    if !memory {
        return true;
    }
    let (base, index) = (i.memory_base(), i.memory_index());
    match base {
        Register::RSP => {
            let inside = (0..0x1c0).contains(&(i.memory_displacement64() as i64));
            inside && index == Register::None && i.mnemonic() != Mnemonic::Lea
        }
        Register::ESP | Register::RIP | Register::EIP => false,
        Register::None => index != Register::None || i.segment_prefix() == Register::GS,
        _ => true,
    }
}

/// The target of each branch: one of the instructions after it, or the end.
fn targets(list: &[(Instruction, u8)]) -> Vec<Option<usize>> {
    let to = |(n, (i, far)): (usize, &(Instruction, u8))| {
        let behind = list.len() - n;
        is_branch(i).then(|| n + 1 + usize::from(*far) % behind)
    };
    list.iter().enumerate().map(to).collect()
}

/// Whether no instruction reads a flag that one before it may have left
/// undefined, on any path.
fn reads_defined_flags(list: &[(Instruction, u8)], targets: &[Option<usize>]) -> bool {
    let mut undefined = vec![0u32; list.len() + 1];
    for (n, (i, _)) in list.iter().enumerate() {
        if i.rflags_read() & undefined[n] != 0 {
            return false;
        }
        let after = undefined_after(i, undefined[n]);
        if i.flow_control() != FlowControl::UnconditionalBranch {
            undefined[n + 1] |= after;
        }
        if let Some(target) = targets[n] {
            undefined[target] |= after;
        }
    }
    true
}

/// The flags that are undefined after an instruction, from those before it.
fn undefined_after(i: &Instruction, before: u32) -> u32 {
    let defined = match may_keep_flags(i) {
        true => 0,
        false => i.rflags_written() | i.rflags_cleared() | i.rflags_set(),
    };
    before & !defined | i.rflags_undefined()
}

/// Whether a count of zero leaves the flags alone.
fn may_keep_flags(i: &Instruction) -> bool {
    use Mnemonic as M;
    i.is_string_instruction()
        || matches!(
            i.mnemonic(),
            M::Shl | M::Shr | M::Sar | M::Rol | M::Ror | M::Rcl | M::Rcr | M::Shld | M::Shrd
        )
}

/// The bytes, then a removal of the words that are still pushed: `lea 8*depth(%rsp),%rsp`.
fn encode(list: &[(Instruction, u8)], targets: &[Option<usize>], depth: i32) -> Option<Vec<u8>> {
    let mut code = Vec::new();
    let mut starts = Vec::new();
    let mut fields = Vec::new();
    for (n, (i, _)) in list.iter().enumerate() {
        starts.push(code.len());
        let mut changed = *i;
        if targets[n].is_some() {
            changed.as_near_branch();
            changed.set_near_branch64(0x1000_0000);
        }
        let mut encoder = Encoder::new(64);
        encoder.encode(&changed, code.len() as u64).ok()?;
        code.extend(encoder.take_buffer());
        if targets[n].is_some() {
            fields.push((code.len() - 4, n));
        }
    }
    starts.push(code.len());
    for (at, n) in fields {
        let distance = starts[targets[n]?] as i32 - (at as i32 + 4);
        code[at..at + 4].copy_from_slice(&distance.to_le_bytes());
    }
    code.extend([0x48, 0x8d, 0xa4, 0x24]);
    code.extend((8 * depth).to_le_bytes());
    Some(code)
}
