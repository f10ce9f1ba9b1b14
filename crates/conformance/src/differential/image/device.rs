//! The device objects of an image: network device, PCI device, adapter, and the
//! hardware's description with its registers.

use process_lab::e1000::{HW, NAPI, PDEV_DEVICE};
use process_lab::stock::Stock;

use super::{MMIO_SIZE, Painter};
use crate::differential::objects::Objects;

impl Painter<'_> {
    pub(super) fn netdev(&mut self, objects: &Objects) {
        let n = objects.netdev;
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
        let queue = objects.arena.1 + 64;
        self.u64(n + 0x3c0, queue);
        self.u64(queue, n);
        let stopped = self.below(4);
        self.u64(queue + 0x90, stopped);
        for (list, limit) in [(0x270, 3), (0x290, 6)] {
            self.address_list(n + list, queue + 0x400 + (list - 0x270) * 0x20, limit);
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

    pub(super) fn pdev(&mut self, objects: &Objects) {
        let p = objects.pdev;
        self.u64(p + PDEV_DEVICE + 0x78, objects.netdev);
        let (device, irq) = (0x1000 + self.below(0x9a), self.below(64));
        self.u16(p + 0x3c, 0x8086);
        self.u16(p + 0x3e, device);
        self.u32(p + 0x3c4, irq);
        let error_state = self.pick(&[1, 1, 1, 1, 1, 2, 3]);
        self.u32(p + 0xc8, error_state);
    }

    pub(super) fn adapter(&mut self, objects: &Objects, stock: &Stock<'_>) {
        let a = objects.adapter();
        let code = |name: &str| stock.function(name).map_or(0, |f| f.address);
        let clean = self.pick(&[code("e1000_clean_rx_irq"), code("e1000_clean_jumbo_rx_irq")]);
        let fill = self.pick(&[
            code("e1000_alloc_rx_buffers"),
            code("e1000_alloc_jumbo_rx_buffers"),
            code("e1000_alloc_dummy_rx_buffers"),
        ]);
        self.u64(a + 0x298, clean);
        self.u64(a + 0x2a0, fill);
        self.u64(a + 0x240, objects.tx_ring);
        self.u64(a + 0x2a8, objects.rx_ring);
        self.u64(a + 0x478, objects.netdev);
        self.u64(a + 0x480, objects.pdev);
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
        self.u64(a + NAPI + 0x38, objects.netdev);
    }

    pub(super) fn hw(&mut self, objects: &Objects) {
        let h = objects.adapter() + HW;
        self.u64(h, objects.mmio);
        self.u64(h + 0x10, objects.mmio);
        self.u64(h + 0x28, objects.adapter());
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
                .offset(objects.mmio + register, 8)
                .expect("the registers");
            self.file[at..at + 8].copy_from_slice(&value.to_le_bytes());
        }
    }
}
