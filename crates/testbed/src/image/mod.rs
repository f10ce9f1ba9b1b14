//! Random images of dom0's memory in which the driver gets somewhere.
//!
//! Every 64-bit word is random: often a pointer into the heap, often small or
//! zero, now and then wild. Into that goes a *scene*: a network device, its
//! adapter, rings, descriptors, socket buffers, registers, at random places,
//! with random but plausible fields. In half of the images some of the scene's
//! fields are left as random words: that is where wild pointers come from.
//!
//! Offsets are those of the structures in Debian's 6.1 (BTF of kernel and
//! module); a wrong one would make runs shallower, not comparisons weaker.

use crate::dom0::{
    AddressSpace, HEAP, HEAP_SIZE, ISLAND, ISLAND_SIZE, PAGE, PERCPU, PERCPU_SIZE, VARIABLES,
    VARIABLES_SIZE,
};
use crate::random::Random;
use crate::scene::{ADAPTER_SIZE, HW, NAPI, NETDEV_SIZE, PDEV_DEVICE, Scene, TX_BUFFER};
use crate::stock::{CANARY, Stock, variable};

/// Bytes of device registers in a scene.
const MMIO_SIZE: u64 = 0x6000;
/// Bytes of packet data behind an `sk_buff`, the shared information included.
const SKB_DATA: u64 = 0x400;

/// How much of an image is out of order.
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

/// Makes the image of `seed` in `file`, the bytes behind dom0's regions, which
/// hold the pristine module.
pub fn make(stock: &Stock<'_>, file: &mut [u8], seed: u64) -> Scene {
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
    let scene = painter.place();
    painter.netdev(&scene);
    painter.pdev(&scene);
    painter.adapter(&scene, stock);
    painter.hw(&scene);
    painter.rings(&scene);
    painter.buffer(&scene);
    painter.kernel(&scene);
    painter.options(stock);
    for skb in scene.skbs {
        painter.skb(&scene, skb);
    }
    scene
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

    // ---- The scene -----------------------------------------------------------

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

    /// Puts the objects at random places, none on another.
    fn place(&mut self) -> Scene {
        let mut next = HEAP + 0x400 + self.below(256) * 8;
        let mut take = |painter: &mut Self, size: u64, align: u64| {
            let at = (next + painter.below(24) * 8).next_multiple_of(align);
            next = at + size;
            at
        };
        let mut scene = Scene {
            netdev: take(self, NETDEV_SIZE + ADAPTER_SIZE, 32),
            pdev: take(self, 0xa48, 8),
            tx_ring: take(self, 0x30, 8),
            rx_ring: take(self, 0x38, 8),
            tx_buffers: take(self, 64 * TX_BUFFER, 8),
            ..Scene::default()
        };
        for i in 0..4 {
            scene.skbs[i] = take(self, 0xe8 + SKB_DATA, 8);
        }
        scene.buffer = take(self, PAGE + 0x200, 8);
        scene.mmio = take(self, MMIO_SIZE, 4096);
        scene.arena = (take(self, 0, 64), HEAP + HEAP_SIZE - 2 * PAGE);
        scene
    }

    fn netdev(&mut self, scene: &Scene) {
        let n = scene.netdev;
        self.bytes(n, b"eth0\0");
        let (state, flags, features) = (self.below(8), self.below(0x2000), self.random.word());
        self.u64(n + 0x38, state);
        self.u32(n + 0xc0, flags);
        self.u64(n + 0xe8, features);
        let mtu = self.pick(&[68, 1500, 1500, 1500, 9000, 16110]);
        self.u32(n + 0xe0, mtu);
        self.u64(n + 0x330, n + 0x948);
        self.u32(n + 0x340, 1);
        self.u32(n + 0x3c8, 1);
        let queue = scene.arena.1 + 64;
        self.u64(n + 0x3c0, queue);
        self.u64(queue, n);
        let stopped = self.below(4);
        self.u64(queue + 0x90, stopped);
        for (list, limit) in [(0x270, 3), (0x290, 6)] {
            self.address_list(n + list, queue + 0x400 + (list - 0x270) * 0x20, limit);
        }
    }

    /// Variables of the kernel that refer to the scene.
    fn kernel(&mut self, scene: &Scene) {
        const CURRENT_TASK: u64 = PERCPU + 0x100;
        self.u64(CURRENT_TASK, scene.arena.0);
        // `struct page` number n of the arena is page n of the heap.
        let vmemmap = variable("vmemmap_base").expect("a variable of the table");
        self.u64(vmemmap, scene.arena.0);
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
    fn buffer(&mut self, scene: &Scene) {
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
            self.u32(scene.buffer + 4 * field, value);
        }
    }

    /// A `netdev_hw_addr_list` with a few entries at `entries`.
    fn address_list(&mut self, head: u64, entries: u64, limit: u64) {
        const ENTRY: u64 = 0x68;
        let count = self.below(limit);
        let at = |i: u64| {
            if i == 0 || i > count {
                head
            } else {
                entries + (i - 1) * ENTRY
            }
        };
        for i in 0..=count {
            self.u64(at(i), at(i + 1));
            self.u64(at(i) + 8, if i == 0 { at(count) } else { at(i - 1) });
        }
        self.u32(head + 0x10, count);
    }

    fn pdev(&mut self, scene: &Scene) {
        let p = scene.pdev;
        self.u64(p + PDEV_DEVICE + 0x78, scene.netdev);
        let (device, irq) = (0x1000 + self.below(0x9a), self.below(64));
        self.u16(p + 0x3c, 0x8086);
        self.u16(p + 0x3e, device);
        self.u32(p + 0x3c4, irq);
        let error_state = self.pick(&[1, 1, 1, 1, 1, 2, 3]);
        self.u32(p + 0xc8, error_state);
    }

    fn adapter(&mut self, scene: &Scene, stock: &Stock<'_>) {
        let a = scene.adapter();
        let code = |name: &str| stock.function(name).map_or(0, |f| f.address);
        let clean = self.pick(&[code("e1000_clean_rx_irq"), code("e1000_clean_jumbo_rx_irq")]);
        let fill = self.pick(&[
            code("e1000_alloc_rx_buffers"),
            code("e1000_alloc_jumbo_rx_buffers"),
            code("e1000_alloc_dummy_rx_buffers"),
        ]);
        self.u64(a + 0x298, clean);
        self.u64(a + 0x2a0, fill);
        self.u64(a + 0x240, scene.tx_ring);
        self.u64(a + 0x2a8, scene.rx_ring);
        self.u64(a + 0x478, scene.netdev);
        self.u64(a + 0x480, scene.pdev);
        // A bitmap of 4096 VLANs of which few are in use.
        let sparse = self.pick(&[4, 16, 16, 64]);
        for word in 0..64 {
            let bits = if self.random.one_in(sparse) {
                1 << self.below(64)
            } else {
                0
            };
            self.u64(a + 8 * word, bits);
        }
        let vlan = self.pick(&[0xffff, 5, 100]);
        self.u16(a + 0x200, vlan);
        let speed = self.pick(&[0, 10, 100, 1000, 1000]);
        self.u16(a + 0x218, speed);
        let length = self.pick(&[256, 1522, 2048, 4096, 16384]);
        self.u32(a + 0x208, length);
        let itr = self.pick(&[0, 1, 3, 4, 8000]);
        self.u32(a + 0x234, itr);
        let stalled = self.below(3);
        self.u32(a + 0x28c, stalled);
        for offset in [0x27c, 0x284] {
            let bytes = self.below(0x4000);
            self.u32(a + offset, bytes);
        }
        let setting = self.pick(&[0, 1, 2]) << 16 | self.pick(&[0, 1, 2]);
        self.u32(a + 0x238, setting);
        let packets = self.below(200);
        self.u32(a + 0x22c, packets);
        let board = self.below(40);
        self.u32(a + 0x204, board);
        self.u32(a + 0x440, 1);
        self.u32(a + 0x444, 1);
        let (msg, flags) = (self.random.word(), self.below(16));
        self.u32(a + 0x868, msg);
        self.u64(a + 0x870, flags);
        for offset in [0x290, 0x291, 0x292, 0x464, 0x86c, 0x86d, 0x86e, 0x884] {
            let value = self.below(2);
            self.u8(a + offset, value);
        }
        self.u64(a + NAPI + 0x38, scene.netdev);
    }

    fn hw(&mut self, scene: &Scene) {
        let h = scene.adapter() + HW;
        self.u64(h, scene.mmio);
        self.u64(h + 0x10, scene.mmio);
        self.u64(h + 0x28, scene.adapter());
        let mac = self.below(15);
        self.u32(h + 0x18, mac);
        for (offset, bound) in [
            (0x1c, 4),  // phy_type
            (0x20, 2),  // phy_init_script
            (0x24, 3),  // media_type
            (0x40, 4),  // fc
            (0x44, 6),  // bus_speed
            (0x48, 5),  // bus_width
            (0x4c, 4),  // bus_type
            (0x50, 5),  // eeprom.type
            (0x60, 4),  // master_slave
            (0x64, 4),  // original_master_slave
            (0x68, 3),  // ffe_config_state
            (0x88, 32), // phy_addr
            (0x94, 2),  // autoneg_failed
            (0xa0, 4),  // mc_filter_type
            (0x104, 3), // smart_speed
            (0x108, 4), // dsp_config_state
        ] {
            let value = self.below(bound);
            self.u32(h + offset, value);
        }
        for (offset, bound) in [(0x54, 513), (0x56, 17), (0x58, 17), (0x5a, 60), (0x5c, 33)] {
            let value = self.below(bound);
            self.u16(h + offset, value);
        }
        let id = self.pick(&[
            0x1410c50, 0x1410c20, 0x1410ca0, 0x2a80380, 0x1410cb0, 0x1410cc0, 0x4dd074,
        ]);
        self.u32(h + 0x80, id);
        let (port, device) = (self.below(0x10000), 0x1000 + self.below(0x9a));
        self.u64(h + 0x78, port);
        self.u16(h + 0xe6, device);
        self.u16(h + 0xe8, 0x8086);
        let magic_device = self.pick(&[0x100e, 0x1004, device]);
        self.u16(h + 0xe6, magic_device);
        for offset in (0xef..0xf4).chain(0x100..0x102).chain(0x10c..0x11d) {
            let value = self.below(2);
            self.u8(h + offset, value);
        }
        let forced = self.below(5);
        self.u8(h + 0xf1, forced);
        // Registers: random 32-bit values, status and interrupt causes sparse.
        for register in (0..MMIO_SIZE).step_by(8) {
            let value = self.random.word();
            let value = if value & 3 == 0 { value >> 32 } else { value };
            let (at, _) = self
                .space
                .offset(scene.mmio + register, 8)
                .expect("the registers");
            self.file[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
    }

    fn rings(&mut self, scene: &Scene) {
        let descriptors = scene.arena.1 + 0x1000;
        let (tx_count, rx_count) = (self.pick(&[8, 16, 32, 64]), self.pick(&[8, 16, 32]));
        let tx = descriptors;
        let rx = tx + 64 * 16;
        let rx_buffers = rx + 32 * 16;
        for (ring, desc, buffers, count) in [
            (scene.tx_ring, tx, scene.tx_buffers, tx_count),
            (scene.rx_ring, rx, rx_buffers, rx_count),
        ] {
            self.u64(ring, desc);
            self.u64(ring + 8, desc);
            self.u32(ring + 0x10, count * 16);
            self.u32(ring + 0x14, count);
            let (use_, clean) = (self.below(count), self.below(count));
            self.u32(ring + 0x18, use_);
            self.u32(ring + 0x1c, clean);
            self.u64(ring + 0x20, buffers);
        }
        let (tdh, tdt) = (self.pick(&[0x2810, 0x3810]), self.pick(&[0x2818, 0x3818]));
        self.u16(scene.tx_ring + 0x28, tdh);
        self.u16(scene.tx_ring + 0x2a, tdt);
        self.u64(scene.rx_ring + 0x28, 0);
        let (rdh, rdt) = (self.pick(&[0x2800, 0x110]), self.pick(&[0x2808, 0x128]));
        self.u16(scene.rx_ring + 0x34, rdh);
        self.u16(scene.rx_ring + 0x36, rdt);
        for i in 0..tx_count {
            self.transmit(
                scene,
                tx + 16 * i,
                scene.tx_buffers + TX_BUFFER * i,
                tx_count,
            );
        }
        for i in 0..rx_count {
            self.receive(scene, rx + 16 * i, rx_buffers + 16 * i);
        }
    }

    fn transmit(&mut self, scene: &Scene, descriptor: u64, buffer: u64, count: u64) {
        let done = self.pick(&[0, 1, 1, 1]);
        self.u32(descriptor + 12, done);
        let skb = self.pick(&[0, scene.skbs[1], scene.skbs[2], scene.skbs[3]]);
        self.u64(buffer, skb);
        let (dma, length) = (self.pick(&[0, 0x1234_5000]), self.below(1600));
        self.u64(buffer + 8, dma);
        self.u16(buffer + 0x18, length);
        let watch = self.below(count);
        self.u16(buffer + 0x1a, watch);
        let page = self.below(2);
        self.u8(buffer + 0x1c, page);
    }

    fn receive(&mut self, scene: &Scene, descriptor: u64, buffer: u64) {
        let length = self.pick(&[0, 4, 60, 64, 200, 255, 256, 600, 1514, 1518]);
        self.u16(descriptor + 8, length);
        let status = self.below(16) | self.pick(&[0, 3, 3, 3, 3, 7]);
        self.u8(descriptor + 12, status);
        let errors = self.pick(&[0, 0, 0, 0, 0, 0, 0x20, 0x40, 0x80, 1]);
        self.u8(descriptor + 13, errors);
        let data = match self.below(4) {
            0 => 0,
            1 => scene.arena.0 + self.below(16) * 64,
            _ => scene.arena.0 + self.below(0x1000) * 8,
        };
        self.u64(buffer, data);
        let dma = self.pick(&[0, 0x1234_6000, 0x1234_7000]);
        self.u64(buffer + 8, dma);
    }

    fn skb(&mut self, scene: &Scene, skb: u64) {
        let head = skb + 0xe8;
        let end = SKB_DATA - 0x140;
        let data = head + self.below(64);
        let fragments = self.pick(&[0, 0, 1, 2, 3]);
        let sizes: Vec<u64> = (0..fragments).map(|_| 1 + self.below(5000)).collect();
        let linear = 14 + self.below(400);
        let paged: u64 = sizes.iter().sum();
        self.u32(skb + 0x70, linear + paged);
        self.u32(skb + 0x74, paged);
        self.u16(skb + 0x7c, 0);
        let checks = self.below(4) << 5;
        self.u8(skb + 0x80, checks);
        let protocol = self.pick(&[0x0008, 0xdd86, 0x0081, 0x0608]);
        self.u16(skb + 0xb4, protocol);
        let (network, transport) = (data - head + 14, data - head + 34);
        self.u16(skb + 0xb6, transport);
        self.u16(skb + 0xb8, network);
        self.u16(skb + 0xba, data - head);
        self.u32(skb + 0xbc, data - head + linear);
        self.u32(skb + 0xc0, end);
        self.u64(skb + 0xc8, head);
        self.u64(skb + 0xd0, data);
        let shared = head + end;
        self.u8(shared + 2, fragments);
        let segment = self.pick(&[0, 0, 536, 1460]);
        self.u16(shared + 4, segment);
        let segments = self.below(8);
        self.u16(shared + 6, segments);
        let kind = self.pick(&[0, 1, 16, 17]);
        self.u32(shared + 0x18, kind);
        for (i, size) in sizes.iter().enumerate() {
            let fragment = shared + 0x30 + 16 * i as u64;
            let page = scene.arena.0 + self.below(24) * 64;
            let offset = self.below(4096);
            self.u64(fragment, page);
            self.u32(fragment + 8, *size);
            self.u32(fragment + 12, offset);
        }
    }
}
