//! The packet objects of an image: rings with their descriptors and buffers, and socket
//! buffers.

use process_lab::e1000::TX_BUFFER;

use super::{Painter, SKB_DATA};
use crate::differential::objects::Objects;

impl Painter<'_> {
    pub(super) fn rings(&mut self, objects: &Objects) {
        let descriptors = objects.arena.1 + 0x1000;
        let (tx_count, rx_count) = (self.pick(&[8, 16, 32, 64]), self.pick(&[8, 16, 32]));
        let tx = descriptors;
        let rx = tx + 64 * 16;
        let rx_buffers = rx + 32 * 16;
        for (ring, desc, buffers, count) in [
            (objects.tx_ring, tx, objects.tx_buffers, tx_count),
            (objects.rx_ring, rx, rx_buffers, rx_count),
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
        self.u16(objects.tx_ring + 0x28, tdh);
        self.u16(objects.tx_ring + 0x2a, tdt);
        self.u64(objects.rx_ring + 0x28, 0);
        let (rdh, rdt) = (self.pick(&[0x2800, 0x110]), self.pick(&[0x2808, 0x128]));
        self.u16(objects.rx_ring + 0x34, rdh);
        self.u16(objects.rx_ring + 0x36, rdt);
        for i in 0..tx_count {
            self.transmit(
                objects,
                tx + 16 * i,
                objects.tx_buffers + TX_BUFFER * i,
                tx_count,
            );
        }
        for i in 0..rx_count {
            self.receive(objects, rx + 16 * i, rx_buffers + 16 * i);
        }
    }

    fn transmit(&mut self, objects: &Objects, descriptor: u64, buffer: u64, count: u64) {
        let done = self.pick(&[0, 1, 1, 1]);
        self.u32(descriptor + 12, done);
        let skb = self.pick(&[0, objects.skbs[1], objects.skbs[2], objects.skbs[3]]);
        self.u64(buffer, skb);
        let (dma, length) = (self.pick(&[0, 0x1234_5000]), self.below(1600));
        self.u64(buffer + 8, dma);
        self.u16(buffer + 0x18, length);
        let watch = self.below(count);
        self.u16(buffer + 0x1a, watch);
        let page = self.below(2);
        self.u8(buffer + 0x1c, page);
    }

    fn receive(&mut self, objects: &Objects, descriptor: u64, buffer: u64) {
        let length = self.pick(&[0, 4, 60, 64, 200, 255, 256, 600, 1514, 1518]);
        self.u16(descriptor + 8, length);
        let status = self.below(16) | self.pick(&[0, 3, 3, 3, 3, 7]);
        self.u8(descriptor + 12, status);
        let errors = self.pick(&[0, 0, 0, 0, 0, 0, 0x20, 0x40, 0x80, 1]);
        self.u8(descriptor + 13, errors);
        let data = match self.below(4) {
            0 => 0,
            1 => objects.arena.0 + self.below(16) * 64,
            _ => objects.arena.0 + self.below(0x1000) * 8,
        };
        self.u64(buffer, data);
        let dma = self.pick(&[0, 0x1234_6000, 0x1234_7000]);
        self.u64(buffer + 8, dma);
    }

    pub(super) fn skb(&mut self, objects: &Objects, skb: u64) {
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
            let page = objects.arena.0 + self.below(24) * 64;
            let offset = self.below(4096);
            self.u64(fragment, page);
            self.u32(fragment + 8, *size);
            self.u32(fragment + 12, offset);
        }
    }
}
