//! Forms where the second decoder is known to be wrong or incomplete.

use iced_x86::{Code, Instruction, Mnemonic};

use super::Aspect;
use super::memory::has_memory;

/// Forms of which the second decoder has one aspect wrong, with the page of the manual
/// (SDM volume 2). All other aspects are compared.
pub(super) fn known_to_differ(aspect: Aspect, i: &Instruction) -> bool {
    use Mnemonic::*;
    match aspect {
        // "Jcc": `jrcxz` reads rcx and changes no register.
        Aspect::Destination => i.mnemonic() == Jrcxz,
        // "BT": `0f ba /4 ib` without REX.W has an operand of 32 bits.
        Aspect::Size if matches!(i.mnemonic(), Bt | Bts | Btr | Btc) => true,
        Aspect::Size => has_narrow_memory(i.mnemonic()),
        // "POP": `8f /0` has an operand of 64 bits also if it is a register.
        Aspect::Meaning => i.code() == Code::Pop_rm64 && !has_memory(i),
        // These are right in every listed form.
        Aspect::Length | Aspect::Memory => false,
    }
}

/// Instructions whose memory operand is narrower than their register
/// ("m32", "m64" and so on in the instruction's own table in the manual), but
/// not to the second decoder.
#[rustfmt::skip] // A table: one line half a dozen names.
fn has_narrow_memory(mnemonic: Mnemonic) -> bool {
    use Mnemonic::*;
    matches!(
        mnemonic,
        Crc32 | Cvtdq2pd | Movd | Vcmpsd | Vcmpss | Vcvtdq2pd | Vcvtph2ps | Vcvtps2ph | Vinsertps
        | Vmovlps | Vrcpss | Vroundsd | Vroundss | Vrsqrtss
        | Vpmovsxbd | Vpmovsxbq | Vpmovsxbw | Vpmovsxdq | Vpmovsxwd | Vpmovsxwq
        | Vpmovzxbd | Vpmovzxbq | Vpmovzxbw | Vpmovzxdq | Vpmovzxwd | Vpmovzxwq
        | Vfmadd132sd | Vfmadd132ss | Vfmadd213sd | Vfmadd213ss | Vfmadd231sd | Vfmadd231ss
        | Vfmsub132sd | Vfmsub132ss | Vfmsub213sd | Vfmsub213ss | Vfmsub231sd | Vfmsub231ss
        | Vfnmadd132sd | Vfnmadd132ss | Vfnmadd213sd | Vfnmadd213ss | Vfnmadd231sd | Vfnmadd231ss
        | Vfnmsub132sd | Vfnmsub132ss | Vfnmsub213sd | Vfnmsub213ss | Vfnmsub231sd | Vfnmsub231ss
    )
}
