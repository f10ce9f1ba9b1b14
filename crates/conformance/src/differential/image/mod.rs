//! Random images of dom0's memory in which driver functions run for a while.
//!
//! Every 64-bit word is random: often a pointer into the heap, often small or
//! zero, sometimes wild. Into these words go the *objects*: a network device, its
//! adapter, rings, descriptors, socket buffers, registers, at random places,
//! with random but plausible fields. In half of the images some of the objects'
//! fields stay random words, which yields wild pointers.
//!
//! Offsets are those of the structures in Debian's 6.1 (BTF of kernel and
//! module); a wrong one would make runs shallower, not comparisons weaker.

mod device;
mod packets;

use process_lab::address_space::{
    AddressSpace, HEAP, HEAP_SIZE, ISLAND, ISLAND_SIZE, PAGE, PERCPU, PERCPU_SIZE, VARIABLES,
    VARIABLES_SIZE,
};
use process_lab::e1000::{ADAPTER_SIZE, NETDEV_SIZE, TX_BUFFER};
use process_lab::random::Random;
use process_lab::stock::{CANARY, Stock, variable};

use crate::differential::objects::Objects;

/// Bytes of device registers.
const MMIO_SIZE: u64 = 0x6000;

/// Bytes of packet data of an `sk_buff`, the shared information included.
const SKB_DATA: u64 = 0x400;

/// How much of an image is irregular.
#[derive(Clone, Copy, Debug)]
struct Profile {
    /// Wild words in 1000.
    wild: u64,
    /// One field in this many is left random; 0: none.
    holes: u64,
}

const PROFILES: [Profile; 4] = [
    Profile { wild: 0, holes: 0 },
    Profile { wild: 20, holes: 0 },
    Profile {
        wild: 60,
        holes: 60,
    },
    Profile {
        wild: 150,
        holes: 12,
    },
];

/// Makes the image of `seed` in `file`, the bytes of dom0's regions, which
/// hold the pristine module.
pub fn make(stock: &Stock<'_>, file: &mut [u8], seed: u64) -> Objects {
    let mut random = Random::new(seed);
    let profile = PROFILES[random.below(PROFILES.len() as u64) as usize];
    let mut painter = Painter {
        space: &stock.space,
        file,
        random,
        profile,
    };
    for (start, length) in [
        (VARIABLES, VARIABLES_SIZE),
        (PERCPU, PERCPU_SIZE),
        (HEAP, HEAP_SIZE),
        (ISLAND, ISLAND_SIZE),
    ] {
        painter.fill(start, length);
    }
    painter.variables();
    let objects = painter.place();
    painter.netdev(&objects);
    painter.pdev(&objects);
    painter.adapter(&objects, stock);
    painter.hw(&objects);
    painter.rings(&objects);
    painter.buffer(&objects);
    painter.kernel(&objects);
    painter.options(stock);
    for skb in objects.skbs {
        painter.skb(&objects, skb);
    }
    objects
}

struct Painter<'i> {
    space: &'i AddressSpace,
    file: &'i mut [u8],
    random: Random,
    profile: Profile,
}

impl Painter<'_> {
    fn fill(&mut self, start: u64, length: u64) {
        let (at, _) = self.space.offset(start, length).expect("a region");
        for i in 0..length as usize / 8 {
            let word = self.any_word();
            self.file[at + 8 * i..at + 8 * i + 8].copy_from_slice(&word.to_le_bytes());
        }
    }

    fn any_word(&mut self) -> u64 {
        let random = self.random.word();
        let kind = random % 1000;
        let value = random >> 10;
        if kind < self.profile.wild {
            return self.random.word();
        }
        match kind % 16 {
            0..7 => HEAP + (value % (HEAP_SIZE - 0x200)) / 8 * 8,
            7..11 => value % 64,
            11..13 => 0,
            13 => value % 0x10000,
            14 => (value & 0xff) | (value & 0xff00) << 24,
            _ => value & 0xffff_ffff,
        }
    }

    // ---- Fields --------------------------------------------------------------

    fn bytes(&mut self, address: u64, bytes: &[u8]) {
        if self.profile.holes != 0 && self.random.one_in(self.profile.holes) {
            return;
        }
        if let Some((at, _)) = self.space.offset(address, bytes.len() as u64) {
            self.file[at..at + bytes.len()].copy_from_slice(bytes);
        }
    }

    fn u64(&mut self, address: u64, value: u64) {
        self.bytes(address, &value.to_le_bytes());
    }

    fn u32(&mut self, address: u64, value: u64) {
        self.bytes(address, &(value as u32).to_le_bytes());
    }

    fn u16(&mut self, address: u64, value: u64) {
        self.bytes(address, &(value as u16).to_le_bytes());
    }

    fn u8(&mut self, address: u64, value: u64) {
        self.bytes(address, &[value as u8]);
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random.below(bound)
    }

    fn pick(&mut self, values: &[u64]) -> u64 {
        values[self.random.below(values.len() as u64) as usize]
    }

    // ---- The objects -----------------------------------------------------------

    fn variables(&mut self) {
        let set = |painter: &mut Self, name, value| {
            let address = variable(name).expect("a variable of the table");
            painter.u64(address, value);
        };
        set(self, "vmemmap_base", HEAP);
        set(self, "page_offset_base", HEAP);
        set(self, "phys_base", 0);
        let state = self.below(6);
        set(self, "system_state", state);
        let canary = self.random.word() & !0xff;
        self.u64(CANARY, canary);
    }

    /// Puts the objects at random places without overlap.
    fn place(&mut self) -> Objects {
        let mut next = HEAP + 0x400 + self.below(256) * 8;
        let mut take = |painter: &mut Self, size: u64, align: u64| {
            let at = (next + painter.below(24) * 8).next_multiple_of(align);
            next = at + size;
            at
        };
        let mut objects = Objects {
            netdev: take(self, NETDEV_SIZE + ADAPTER_SIZE, 32),
            pdev: take(self, 0xa48, 8),
            tx_ring: take(self, 0x30, 8),
            rx_ring: take(self, 0x38, 8),
            tx_buffers: take(self, 64 * TX_BUFFER, 8),
            ..Objects::default()
        };
        for i in 0..4 {
            objects.skbs[i] = take(self, 0xe8 + SKB_DATA, 8);
        }
        objects.buffer = take(self, PAGE + 0x200, 8);
        objects.mmio = take(self, MMIO_SIZE, 4096);
        objects.arena = (take(self, 0, 64), HEAP + HEAP_SIZE - 2 * PAGE);
        objects
    }

    /// Variables of the kernel that refer to the objects.
    fn kernel(&mut self, objects: &Objects) {
        const CURRENT_TASK: u64 = PERCPU + 0x100;
        self.u64(CURRENT_TASK, objects.arena.0);
        // `struct page` number n of the arena is page n of the heap.
        let vmemmap = variable("vmemmap_base").expect("a variable of the table");
        self.u64(vmemmap, objects.arena.0);
    }

    /// Module parameters: arrays of 33 numbers in `.data`, and how many of each
    /// were given, in `.bss`.
    fn options(&mut self, stock: &Stock<'_>) {
        const ARRAYS: (u64, u64) = (0x1c0, 0x9c0);
        const COUNTS: (u64, u64) = (0x0c, 0x40);
        let (Some(data), Some(bss)) = (stock.section(".data"), stock.section(".bss")) else {
            return;
        };
        if self.random.one_in(2) {
            return;
        }
        for offset in (ARRAYS.0..ARRAYS.1).step_by(4) {
            let number = self.pick(&[
                u64::MAX,
                0,
                1,
                2,
                3,
                10,
                32,
                100,
                1000,
                80,
                256,
                4096,
                100_000,
            ]);
            self.u32(data + offset, number);
        }
        for offset in (COUNTS.0..COUNTS.1).step_by(4) {
            self.u32(bss + offset, 32);
        }
    }

    /// Shapes half of the buffers as 32-bit fields: those of ethtool's structures.
    fn buffer(&mut self, objects: &Objects) {
        if self.random.one_in(2) {
            return;
        }
        let magic = self.pick(&[0x100e_8086, 0x1004_8086]);
        for field in 0..PAGE / 4 {
            let value = match self.below(8) {
                0 => 0,
                1 => self.random.word(),
                2 => magic,
                3..5 => self.random.below(4),
                _ => self.random.below(100),
            };
            self.u32(objects.buffer + 4 * field, value);
        }
    }
}
