//! The processor whose cycles were counted.

use std::arch::x86_64::{__cpuid, __cpuid_count};

use serde::{Deserialize, Serialize};

/// The processor as CPUID identifies it (SDM volume 2, CPUID).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Processor {
    /// Its brand string.
    pub name: String,
    /// Vendor, family, model, stepping.
    pub version: String,
    /// Those of [`FLAGS`] that it has, by the kernel's names.
    pub flags: Vec<String>,
}

/// A flag: its name, leaf and subleaf, the register (eax, ebx, ecx, edx) and the bit.
type Flag = (&'static str, [u32; 2], usize, u32);

/// What makes a difference to what is measured: string instructions, wide
/// registers, whether the counter runs at one rate, whether others share the machine.
const FLAGS: [Flag; 7] = [
    ("avx2", [7, 0], 1, 5),
    ("avx512f", [7, 0], 1, 16),
    ("erms", [7, 0], 1, 9),
    ("fsrm", [7, 0], 3, 4),
    ("constant_tsc", [0x8000_0007, 0], 3, 8),
    ("ht", [1, 0], 3, 28),
    ("hypervisor", [1, 0], 2, 31),
];

impl Processor {
    pub fn this() -> Processor {
        let flags = FLAGS.into_iter().filter(|flag| has(*flag));
        Processor {
            name: brand(),
            version: version(),
            flags: flags.map(|(name, ..)| name.to_owned()).collect(),
        }
    }

    /// In a line.
    pub fn text(&self) -> String {
        format!("{} ({}): {}", self.name, self.version, self.flags.join(" "))
    }
}

fn registers([leaf, subleaf]: [u32; 2]) -> [u32; 4] {
    if __cpuid(leaf & 0x8000_0000).eax < leaf {
        return [0; 4];
    }
    let found = __cpuid_count(leaf, subleaf);
    [found.eax, found.ebx, found.ecx, found.edx]
}

fn has((_, leaf, register, bit): Flag) -> bool {
    registers(leaf)[register] >> bit & 1 != 0
}

fn text(words: impl Iterator<Item = u32>) -> String {
    let bytes: Vec<u8> = words.flat_map(u32::to_le_bytes).collect();
    let text = String::from_utf8_lossy(&bytes);
    text.trim_matches(['\0', ' ']).to_owned()
}

fn brand() -> String {
    let leaves = [0x8000_0002, 0x8000_0003, 0x8000_0004];
    text(leaves.into_iter().flat_map(|leaf| registers([leaf, 0])))
}

fn version() -> String {
    let [_, b, c, d] = registers([0, 0]);
    let signature = registers([1, 0])[0];
    let field = |from: u32, bits: u32| signature >> from & ((1 << bits) - 1);
    let (family, model) = match field(8, 4) {
        family @ (6 | 15) => {
            let more = if family == 15 { field(20, 8) } else { 0 };
            (family + more, field(16, 4) << 4 | field(4, 4))
        }
        family => (family, field(4, 4)),
    };
    let vendor = text([b, d, c].into_iter());
    format!(
        "{vendor} family {family} model {model} stepping {}",
        field(0, 4)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_processor_has_a_vendor_and_a_family() {
        let this = Processor::this();
        let (vendor, rest) = this.version.split_once(' ').expect("a vendor");
        assert_eq!(vendor.len(), 12, "{this:?}");
        assert!(rest.starts_with("family "), "{this:?}");
        assert_eq!(
            this.flags.contains(&"avx2".to_owned()),
            is_x86_feature_detected!("avx2")
        );
    }
}
