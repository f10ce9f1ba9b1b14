//! Calls a function with every register set, and stores every register afterwards: one
//! piece of assembly for the native and the rewritten process, and the block of memory
//! that it loads and stores.
//! (`crates/process-lab/src/enter.rs` says how this entry differs from the others.)
//!
//! ```text
//! +0x0000  rax rcx rdx rbx - rbp rsi rdi r8 ... r15      in
//! +0x0080  flags, +0x088 entry, +0x090 AVX is there, +0x0b8 AVX-512 is
//! +0x0098  %fs base of the test, +0x0a0 of the host, +0x0a8 use it
//! +0x00b0  host's rsp
//! +0x0100  registers, +0x180 flags                       out
//! +0x0200  fxsave image                                  in
//! +0x0400  upper halves of ymm0 to ymm15
//! +0x0500  upper halves of zmm0 to zmm15
//! +0x0700  zmm16 to zmm31
//! +0x0b00  k0 to k7
//! +0x1200  the same from +0x200 on                       out
//! ```
//!
//! The block is at an address that displacements reach, where dom0 has nothing. Vector
//! registers that the processor does not have are neither set nor compared.

use std::arch::global_asm;

use process_lab::address_space::{PAGE, START_RSP};
use process_lab::error::Error;
use process_lab::{mapping, segments};

use super::state::{ARITHMETIC, State, VECTOR_BYTES};

/// Where the block is.
pub const BLOCK: u64 = 0x6000_0000;
// Offsets in it, as drawn above; the assembly has them as numbers.
const FLAGS: u64 = 0x80;
const ENTRY: u64 = 0x88;
const HAS_AVX: u64 = 0x90;
const FS_BASE: u64 = 0x98;
const HOST_FS: u64 = 0xa0;
const USE_FS: u64 = 0xa8;
const OUT: u64 = 0x100;
const OUT_FLAGS: u64 = 0x180;
const VECTORS: u64 = 0x200;
const HAS_AVX512: u64 = 0xb8;
const OUT_VECTORS: u64 = 0x1200;
/// Bytes of the block, whole pages.
pub const BLOCK_BYTES: u64 = 2 * PAGE;

global_asm!(
    // On a machine without AVX, the instructions that need it are not executed.
    ".macro TWIN_FORMS_EACH operation, at, size",
    "    .irp n, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15",
    "    \\operation \\n, \\at + \\size * \\n",
    "    .endr",
    ".endm",
    ".macro TWIN_FORMS_YMM_IN n, at",
    "    vinsertf128 $1, \\at, %ymm\\n, %ymm\\n",
    ".endm",
    ".macro TWIN_FORMS_YMM_OUT n, at",
    "    vextractf128 $1, %ymm\\n, \\at",
    ".endm",
    ".macro TWIN_FORMS_ZMM_IN n, at",
    "    vinsertf64x4 $1, \\at, %zmm\\n, %zmm\\n",
    ".endm",
    ".macro TWIN_FORMS_ZMM_OUT n, at",
    "    vextractf64x4 $1, %zmm\\n, \\at",
    ".endm",
    ".macro TWIN_FORMS_HIGH operation",
    "    .irp n, 16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31",
    "    \\operation \\n",
    "    .endr",
    ".endm",
    ".macro TWIN_FORMS_HIGH_IN n",
    "    vmovdqu64 {b}+0x700 + 64 * (\\n - 16), %zmm\\n",
    ".endm",
    ".macro TWIN_FORMS_HIGH_OUT n",
    "    vmovdqu64 %zmm\\n, {b}+0x1700 + 64 * (\\n - 16)",
    ".endm",
    ".text",
    // On the driver's stack: everything in, call, everything out.
    ".balign 16",
    ".globl twin_forms_trampoline",
    "twin_forms_trampoline:",
    "    fxrstor64 {b}+0x200",
    "    cmpq  $0, {b}+0x90",
    "    je    1f",
    "    TWIN_FORMS_EACH TWIN_FORMS_YMM_IN, {b}+0x400, 16",
    "    cmpq  $0, {b}+0xb8",
    "    je    1f",
    "    TWIN_FORMS_EACH TWIN_FORMS_ZMM_IN, {b}+0x500, 32",
    "    TWIN_FORMS_HIGH TWIN_FORMS_HIGH_IN",
    "    .irp n, 0,1,2,3,4,5,6,7",
    "    kmovq {b}+0xb00 + 8 * \\n, %k\\n",
    "    .endr",
    "1:  cmpq  $0, {b}+0xa8",
    "    je    2f",
    "    movq  {b}+0x98, %rax",
    "    wrfsbase %rax",
    "2:  pushq {b}+0x80",
    "    popfq",
    "    movq  {b}+0x00, %rax",
    "    movq  {b}+0x08, %rcx",
    "    movq  {b}+0x10, %rdx",
    "    movq  {b}+0x18, %rbx",
    "    movq  {b}+0x28, %rbp",
    "    movq  {b}+0x30, %rsi",
    "    movq  {b}+0x38, %rdi",
    "    movq  {b}+0x40, %r8",
    "    movq  {b}+0x48, %r9",
    "    movq  {b}+0x50, %r10",
    "    movq  {b}+0x58, %r11",
    "    movq  {b}+0x60, %r12",
    "    movq  {b}+0x68, %r13",
    "    movq  {b}+0x70, %r14",
    "    movq  {b}+0x78, %r15",
    "    call  *{b}+0x88",
    "    movq  %rax, {b}+0x100",
    "    movq  %rcx, {b}+0x108",
    "    movq  %rdx, {b}+0x110",
    "    movq  %rbx, {b}+0x118",
    "    movq  %rsp, {b}+0x120",
    "    movq  %rbp, {b}+0x128",
    "    movq  %rsi, {b}+0x130",
    "    movq  %rdi, {b}+0x138",
    "    movq  %r8, {b}+0x140",
    "    movq  %r9, {b}+0x148",
    "    movq  %r10, {b}+0x150",
    "    movq  %r11, {b}+0x158",
    "    movq  %r12, {b}+0x160",
    "    movq  %r13, {b}+0x168",
    "    movq  %r14, {b}+0x170",
    "    movq  %r15, {b}+0x178",
    "    pushfq",
    "    popq  {b}+0x180",
    "    cld",
    "    cmpq  $0, {b}+0xa8",
    "    je    3f",
    "    movq  {b}+0xa0, %rax",
    "    wrfsbase %rax",
    "3:  fxsave64 {b}+0x1200",
    "    cmpq  $0, {b}+0x90",
    "    je    4f",
    "    TWIN_FORMS_EACH TWIN_FORMS_YMM_OUT, {b}+0x1400, 16",
    "    cmpq  $0, {b}+0xb8",
    "    je    5f",
    "    TWIN_FORMS_EACH TWIN_FORMS_ZMM_OUT, {b}+0x1500, 32",
    "    TWIN_FORMS_HIGH TWIN_FORMS_HIGH_OUT",
    "    .irp n, 0,1,2,3,4,5,6,7",
    "    kmovq %k\\n, {b}+0x1b00 + 8 * \\n",
    "    .endr",
    "5:  vzeroupper",
    "4:  fninit",
    "    ldmxcsr {b}+0x218",
    "    ret",
    // u64 native(void): 0 returned, 1 unwound.
    ".balign 16",
    ".globl twin_forms_native",
    "twin_forms_native:",
    process_lab::push_host_frame!(),
    "    movq  %rsp, {b}+0xb0",
    "    movq  ${top}, %rsp",
    "    call  twin_forms_trampoline",
    "    xorl  %eax, %eax",
    "    jmp   1f",
    ".globl twin_forms_unwind",
    "twin_forms_unwind:",
    "    movl  $1, %eax",
    "1:  movq  {b}+0xb0, %rsp",
    "    cld",
    process_lab::pop_host_frame!(),
    // void reset(void): the floating-point state that the host expects.
    ".globl twin_forms_reset",
    "twin_forms_reset:",
    "    fninit",
    "    ldmxcsr {b}+0x218",
    "    ret",
    // When a signal's handler begins, %fs may be the test's.
    ".balign 16",
    ".globl twin_forms_signal",
    "twin_forms_signal:",
    "    cmpq  $0, {b}+0xa8",
    "    je    1f",
    "    movq  {b}+0xa0, %rax",
    "    wrfsbase %rax",
    "1:  jmp   {handler}",
    b = const BLOCK,
    top = const START_RSP,
    handler = sym super::native::on_signal,
    options(att_syntax)
);

unsafe extern "C" {
    fn twin_forms_trampoline();
    fn twin_forms_native() -> u64;
    fn twin_forms_unwind();
    fn twin_forms_reset();
    fn twin_forms_signal();
}

/// The trampoline, for `twin_enter`.
pub fn trampoline() -> u64 {
    twin_forms_trampoline as *const () as u64
}

/// Where a native run is given up.
pub fn unwind() -> u64 {
    twin_forms_unwind as *const () as u64
}

/// The handler to install for a native run's signals.
pub fn signal_entry() -> usize {
    twin_forms_signal as *const () as usize
}

/// The mapped block of this process.
pub struct Block {
    compared: usize,
    can_use_fs: bool,
    vectors: Vec<[u8; VECTOR_BYTES]>,
}

impl Block {
    /// Maps the block.
    pub fn new() -> Result<Block, Error> {
        mapping::new_memory(BLOCK, BLOCK_BYTES)
            .map_err(Error::system("mapping the register block"))?;
        let fs_base = segments::fs().map_err(Error::system("asking for the base of %fs"))?;
        let mut block = Block {
            compared: features().bytes(),
            can_use_fs: can_write_fs_base(),
            vectors: super::state::vectors(),
        };
        block.put(HAS_AVX, u64::from(features() != Features::Sse));
        block.put(HAS_AVX512, u64::from(features() == Features::Avx512));
        block.put(VECTORS + 24, 0x1f80);
        block.put(HOST_FS, fs_base);
        Ok(block)
    }

    /// Whether the base of `%fs` can be set for a native run.
    pub fn can_use_fs(&self) -> bool {
        self.can_use_fs
    }

    fn put(&mut self, offset: u64, value: u64) {
        // SAFETY: inside the block, which is this value's alone while no
        // assembly of this module runs.
        unsafe { ((BLOCK + offset) as *mut u64).write(value) }
    }

    fn get(&self, offset: u64) -> u64 {
        // SAFETY: as for `put`.
        unsafe { ((BLOCK + offset) as *const u64).read() }
    }

    /// Sets the state in which the function at `entry` begins.
    pub fn load(&mut self, state: &State, entry: u64, native_fs: bool) {
        for (n, value) in state.registers.iter().enumerate() {
            self.put(n as u64 * 8, *value);
        }
        self.put(FLAGS, state.flags);
        self.put(ENTRY, entry);
        self.put(FS_BASE, state.fs_base);
        self.put(USE_FS, u64::from(native_fs));
        let image = &self.vectors[state.vectors];
        // SAFETY: the image's bytes fit between its offset and the output.
        unsafe {
            let to = (BLOCK + VECTORS) as *mut u8;
            std::ptr::copy_nonoverlapping(image.as_ptr(), to, self.compared);
        }
    }

    /// The registers and flags that the function left.
    pub fn registers(&self) -> ([u64; 16], u64) {
        let registers = std::array::from_fn(|n| self.get(OUT + n as u64 * 8));
        let direction = 0x400;
        (registers, self.get(OUT_FLAGS) & (ARITHMETIC | direction))
    }

    /// The vector and x87 registers that it left. The addresses of the last
    /// x87 instruction and operand, which rewriting changes, are left out.
    pub fn vectors(&self) -> Vec<u8> {
        let at = (BLOCK + OUT_VECTORS) as *const u8;
        // SAFETY: inside the block, see `put`.
        let all = unsafe { std::slice::from_raw_parts(at, self.compared) };
        let mut bytes = all[..416].to_vec();
        bytes[6..24].fill(0);
        bytes.extend(&all[512..]);
        bytes
    }
}

/// The vector registers that are set and compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Features {
    /// `xmm`.
    Sse,
    /// `ymm` too.
    Avx,
    /// `zmm`, 32 of them, and masks of 64 bits, too.
    Avx512,
}

impl Features {
    /// Bytes of an image of them.
    fn bytes(self) -> usize {
        match self {
            Features::Sse => 512,
            Features::Avx => 512 + 256,
            Features::Avx512 => VECTOR_BYTES,
        }
    }
}

/// Those of this processor. Masks have 64 bits with AVX-512BW (SDM volume 1, 15.1.3):
/// where there are shorter ones only, AVX-512 is not observed.
pub fn features() -> Features {
    use std::arch::is_x86_feature_detected;
    if is_x86_feature_detected!("avx512bw") {
        Features::Avx512
    } else if is_x86_feature_detected!("avx") {
        Features::Avx
    } else {
        Features::Sse
    }
}

/// Whether the kernel lets user code execute `wrfsbase`.
fn can_write_fs_base() -> bool {
    const FSGSBASE: u64 = 2;
    // SAFETY: plain look-up.
    unsafe { libc::getauxval(libc::AT_HWCAP2) & FSGSBASE != 0 }
}

/// Runs the function that the block names, on this process's driver stack.
/// Whether it returned.
///
/// # Safety
/// The block is loaded, a driver stack is mapped, and every fault of the
/// function resumes at [`unwind`].
pub unsafe fn native() -> bool {
    // SAFETY: the caller's promise.
    unsafe { twin_forms_native() == 0 }
}

/// Gives back the floating-point state that Rust code expects.
pub fn reset() {
    // SAFETY: changes x87 and SSE control state to their defaults only.
    unsafe { twin_forms_reset() }
}
