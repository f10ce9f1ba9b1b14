//! The state before an instruction: registers, flags, vector registers, the place of
//! its operand and the contents of the translation table.
//!
//! A pure function of the case and a number, so that every process makes the
//! same.

use iced_x86::{Instruction, Mnemonic, OpKind, Register};
use process_lab::address_space::{PAGE, START_RSP};
use process_lab::random::{Random, mix};

use super::cases::{Case, FRAME};
use super::memory::{DATA, Placement, pristine};
use super::{AddressingForm, strings};

/// `rsp` at a function's entry, plus 8: where its frame ends.
pub const FRAME_TOP: u64 = START_RSP - 8 - 8;
/// The end of the words that a function leaves in its frame: it may push the word above
/// before it makes the frame.
pub const FRAME_END: u64 = FRAME_TOP - 8;
/// `rsp` at the instruction.
pub const SITE_RSP: u64 = FRAME_TOP - FRAME as u64;
/// The base of `%gs`.
pub const GS_BASE: u64 = DATA + 0x2340;
/// CF PF AF ZF SF OF.
pub const ARITHMETIC: u64 = 0x8d5;

/// What the translation table holds when the function is entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Table {
    /// Nothing: the first access misses.
    Cold,
    /// The data's pages, in order.
    Warm,
    /// Other pages in all entries of the data's pages.
    Colliding,
    /// The data's pages, mapped in random order.
    Shuffled,
}

#[derive(Clone, Debug)]
pub struct State {
    /// `rax rcx rdx rbx rsp rbp rsi rdi r8 ... r15`; that of `rsp` is ignored.
    pub registers: [u64; 16],
    pub flags: u64,
    /// The base of `%fs`.
    pub fs_base: u64,
    /// Which image of the vector registers.
    pub vectors: usize,
    pub table: Table,
    /// Where the operand is, for people.
    pub placement: Placement,
    /// Bytes to put into dom0's memory first.
    pub patches: Vec<(u64, Vec<u8>)>,
    /// Seed of the table's order.
    pub order: u64,
}

/// What states of a batch have in common.
#[derive(Clone, Copy, Debug)]
pub struct Setting<'b> {
    /// Pages of data.
    pub pages: u64,
    /// Their bytes before a run.
    pub pristine: &'b [u8],
    /// States of each case.
    pub count: u64,
    /// Seed of everything.
    pub seed: u64,
    /// VM address of a function to call.
    pub helper: u64,
}

impl Setting<'_> {
    /// The bytes that `Setting::pristine` refers to.
    pub fn memory(pages: u64, seed: u64) -> Vec<u8> {
        let length = super::memory::pieces(pages).iter().map(|p| p.length).sum();
        pristine(length, seed)
    }
}

/// State `number` of a case.
pub fn state(case: &Case, number: u64, setting: &Setting<'_>) -> State {
    let key = mix(case.form as u64 ^ (case.live as u64) << 40 ^ (case.direction as u64) << 44);
    let mut random = Random::new(mix(key ^ mix(number)) ^ setting.seed);
    let mut state = State {
        registers: std::array::from_fn(|_| value(&mut random)),
        flags: random.word() & ARITHMETIC | 0x202,
        fs_base: DATA,
        vectors: random.below(VECTOR_IMAGES as u64) as usize,
        table: table(number * 4 / setting.count.max(1)),
        placement: Placement::number(number + case.form as u64 * 5, &mut random),
        patches: Vec::new(),
        order: random.word(),
    };
    if case.is_string() {
        strings::fill(&mut state, case, &mut random, setting);
        return state;
    }
    // Most states do not fault. The first does not, so it shows whether the processor
    // knows the instruction.
    let fails = matches!(
        state.placement,
        Placement::Hole | Placement::ReadOnly | Placement::NotCanonical
    );
    let cannot = match state.placement {
        // `wrfsbase` itself refuses a base that is not canonical.
        Placement::NotCanonical => case.uses_fs() || number == 0,
        // An index reaches multiples of its scale only: an operand that must be aligned
        // would be neither aligned nor mapped, and the order of the faults is not tested
        // here.
        Placement::Hole | Placement::ReadOnly => case.mode == AddressingForm::Index || number == 0,
        // Only dom0's memory gets the address of the function to call.
        Placement::OwnStack => case.is_indirect(),
        _ => false,
    };
    if cannot || fails && !random.one_in(3) {
        state.placement = Placement::End(random.below(70) + 1);
    }
    let target = state.placement.address(&mut random, setting.pages);
    let splits = case.shows_split() && number < Placement::COUNT;
    let target = match state.placement {
        Placement::End(1) if splits => target,
        _ => case.unsplit(target),
    };
    aim(&mut state, case, target);
    suit(&mut state, case, &mut random, setting);
    state
}

fn table(n: u64) -> Table {
    [Table::Cold, Table::Warm, Table::Colliding, Table::Shuffled][n as usize % 4]
}

fn value(random: &mut Random) -> u64 {
    match random.below(8) {
        0 => random.below(256),
        1 => u64::MAX - random.below(256),
        2 => 1 << random.below(64),
        3 => random.word() & 0xffff_ffff,
        _ => random.word(),
    }
}

/// A register's value.
pub fn read(registers: &[u64; 16], register: Register) -> u64 {
    if !register.is_gpr() {
        return 0;
    }
    let full = match register.full_register() {
        Register::RSP => SITE_RSP,
        full => registers[full.number()],
    };
    match register.size() {
        8 => full,
        4 => full & 0xffff_ffff,
        2 => full & 0xffff,
        _ if matches!(
            register,
            Register::AH | Register::CH | Register::DH | Register::BH
        ) =>
        {
            full >> 8 & 0xff
        }
        _ => full & 0xff,
    }
}

/// Sets base, index or segment so that the operand is at `target`, as far as
/// its mode lets that be chosen.
fn aim(state: &mut State, case: &Case, target: u64) {
    let i = &case.instruction;
    match case.mode {
        AddressingForm::Fs => {
            near_bit(state, i);
            state.fs_base = 0;
            state.fs_base = target.wrapping_sub(address(i, state));
            return;
        }
        AddressingForm::Rip | AddressingForm::Absolute | AddressingForm::Constant
            if is_bit_string(i) =>
        {
            near_bit(state, i);
            return;
        }
        AddressingForm::Stack if is_bit_string(i) => {
            // A bit of the own frame.
            let offset = i.op1_register().full_register();
            state.registers[offset.number()] %= 8 * (FRAME as u64 - 0x30);
            return;
        }
        AddressingForm::Rip
        | AddressingForm::Absolute
        | AddressingForm::Constant
        | AddressingForm::Stack => return,
        AddressingForm::Implicit => {
            // An address in a register that it implies, by one or the other.
            state.registers[Register::RDI.number()] = target;
            state.registers[Register::RAX.number()] ^= u64::from(state.registers[0] == 0);
            return;
        }
        _ => {}
    }
    // More than once: a bit offset, an index that is the base or a 32-bit address may
    // depend on the register that is set, so each step only comes nearer.
    for _ in 0..40 {
        let distance = target.wrapping_sub(address(i, state));
        if distance == 0 {
            return;
        }
        let (base, index) = (i.memory_base(), i.memory_index());
        let (register, step) = match (base, index) {
            (Register::None | Register::RSP, index) => (
                index,
                (distance as i64).div_euclid(i64::from(i.memory_index_scale())),
            ),
            (base, _) => (base, distance as i64),
        };
        if step == 0 || !register.is_gpr() {
            return;
        }
        let slot = &mut state.registers[register.full_register().number()];
        // A base that is also a bit offset counts nine times an eighth.
        let step = match is_bit_string(i) && i.op1_register().full_register() == register {
            true if step.unsigned_abs() > 8 => step / 9 * 8,
            _ => step,
        };
        *slot = slot.wrapping_add(step as u64);
    }
}

/// A bit offset of at most a kilobyte to either side, where the address cannot
/// make up for it.
fn near_bit(state: &mut State, i: &Instruction) {
    if is_bit_string(i) {
        let offset = &mut state.registers[i.op1_register().full_register().number()];
        *offset = (*offset as i64 % 0x2000) as u64;
    }
}

/// Whether a register says which bit of memory is meant.
fn is_bit_string(i: &Instruction) -> bool {
    let family = matches!(
        i.mnemonic(),
        Mnemonic::Bt | Mnemonic::Bts | Mnemonic::Btr | Mnemonic::Btc
    );
    family && i.op1_kind() == OpKind::Register
}

/// Where the explicit memory operand is.
pub fn address(i: &Instruction, state: &State) -> u64 {
    let register = |r: Register| match r {
        Register::None => 0,
        r => read(&state.registers, r),
    };
    let scale = u64::from(i.memory_index_scale());
    let mut flat = i
        .memory_displacement64()
        .wrapping_add(register(i.memory_base()))
        .wrapping_add(register(i.memory_index()).wrapping_mul(scale));
    if matches!(i.memory_base(), Register::EDI) {
        flat &= 0xffff_ffff;
    }
    let segment = match i.segment_prefix() {
        Register::GS => GS_BASE,
        Register::FS => state.fs_base,
        _ => 0,
    };
    flat.wrapping_add(segment).wrapping_add(bit_bytes(i, state))
}

/// Bytes by which a bit offset moves the operand.
fn bit_bytes(i: &Instruction, state: &State) -> u64 {
    if !is_bit_string(i) {
        return 0;
    }
    let offset = read(&state.registers, i.op1_register());
    match i.op1_register().size() {
        2 => (i64::from(offset as i16) >> 4 << 1) as u64,
        4 => (i64::from(offset as i32) >> 5 << 2) as u64,
        _ => ((offset as i64) >> 6 << 3) as u64,
    }
}

/// Where the operand is, of whatever mode.
pub fn place(case: &Case, state: &State) -> u64 {
    match case.mode {
        AddressingForm::Rip | AddressingForm::Absolute | AddressingForm::Constant => case.address,
        _ => address(&case.instruction, state),
    }
}

/// Chooses values with which an instruction does something worth comparing.
fn suit(state: &mut State, case: &Case, random: &mut Random, setting: &Setting<'_>) {
    let at = place(case, state);
    let keeps = |r: Register| {
        let i = &case.instruction;
        ![i.memory_base(), i.memory_index()].contains(&r)
    };
    if !keeps(Register::RAX) || !keeps(Register::RDX) {
        return;
    }
    let (rax, rdx) = (0, 2);
    match case.instruction.mnemonic() {
        Mnemonic::Cmpxchg | Mnemonic::Cmpxchg8b | Mnemonic::Cmpxchg16b if random.one_in(2) => {
            let wide = case.instruction.memory_size().size() == 16;
            state.registers[rax] = word(setting, at);
            state.registers[rdx] = match wide {
                true => word(setting, at.wrapping_add(8)),
                false => word(setting, at.wrapping_add(4)),
            };
        }
        Mnemonic::Div if !random.one_in(4) => {
            state.registers[rdx] = 0;
            state.registers[rax] &= 0xffff_ffff_ffff_00ff;
        }
        Mnemonic::Idiv if !random.one_in(4) => {
            state.registers[rdx] = 0;
            state.registers[rax] = random.below(0x80);
        }
        Mnemonic::Call | Mnemonic::Jmp if case.is_indirect() => {
            state
                .patches
                .push((at, setting.helper.to_le_bytes().to_vec()));
            state.registers[rdx] = setting.helper;
        }
        _ => {}
    }
}

/// Eight bytes of the data.
fn word(setting: &Setting<'_>, address: u64) -> u64 {
    let at = address.wrapping_sub(DATA);
    if at + 8 > setting.pages * PAGE {
        return 0;
    }
    let bytes = &setting.pristine[at as usize..at as usize + 8];
    u64::from_le_bytes(bytes.try_into().expect("eight bytes"))
}

/// Images of vector registers to choose from.
pub const VECTOR_IMAGES: usize = 8;
/// Bytes of an image, as drawn at [`vectors`].
pub const VECTOR_BYTES: usize = 512 + 256 + 512 + 1024 + 64;

/// The images.
///
/// ```text
/// +0    fcw 0x37f, fsw with top 4, four registers in use
/// +24   mxcsr 0x1f80: every exception masked
/// +32   st0 ... st7, 16 bytes each
/// +160  xmm0 ... xmm15
/// +512  upper halves of ymm0 ... ymm15
/// +768  upper halves of zmm0 ... zmm15
/// +1280 zmm16 ... zmm31
/// +2304 k0 ... k7
/// ```
pub fn vectors() -> Vec<[u8; VECTOR_BYTES]> {
    let mut random = Random::new(0x7665_6374);
    let image = |_| {
        let mut image = [0; VECTOR_BYTES];
        for chunk in image[32..416].chunks_mut(8) {
            chunk.copy_from_slice(&vector_word(&mut random).to_le_bytes());
        }
        for chunk in image[512..].chunks_mut(8) {
            chunk.copy_from_slice(&vector_word(&mut random).to_le_bytes());
        }
        for register in image[32..160].chunks_mut(16) {
            register[8..].copy_from_slice(&[0xff, 0x3f, 0, 0, 0, 0, 0, 0]);
            register[7] |= 0x80;
        }
        image[0..2].copy_from_slice(&0x037f_u16.to_le_bytes());
        image[2..4].copy_from_slice(&0x2000_u16.to_le_bytes());
        image[4] = 0xf0;
        image[24..28].copy_from_slice(&0x1f80_u32.to_le_bytes());
        image
    };
    (0..VECTOR_IMAGES).map(image).collect()
}

/// Random bits, or two ordinary floats, or small integers.
fn vector_word(random: &mut Random) -> u64 {
    match random.below(4) {
        0 => (1.5f32 + random.below(100) as f32).to_bits().into(),
        1 => (random.below(1000) as f64 - 300.25).to_bits(),
        2 => random.below(16),
        _ => random.word(),
    }
}
