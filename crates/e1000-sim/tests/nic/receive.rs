//! Receive rings: frames, filters, offloads, refused addresses.

use e1000_sim::nic::{BusFault, Filter, Received, Register, Ring, Table};
use process_lab::random::Random;

use crate::card::*;

#[test]
fn frames_arrive_in_order_and_wrap() {
    let mut card = TestCard::running();
    for number in 0..50u32 {
        let length = 60 + number as usize * 29;
        let bytes = frame(MAC, length, u64::from(number));
        assert_eq!(card.receive(&bytes), Received::Stored { descriptors: 1 });
        let index = number % RINGS;
        let descriptor = card.received(index);
        assert_eq!(descriptor.bytes, bytes);
        // DD, EOP, and no checksum was asked for.
        assert_eq!((descriptor.status, descriptor.errors), (0x07, 0));
        assert_eq!(descriptor.checksum, !internet_sum(&bytes));
        assert_eq!(card.read(Register::Rdh), (index + 1) % RINGS);
        assert_ne!(card.read(Register::Icr) & RXT0, 0);
        card.set(Register::Rdt, index);
    }
}

#[test]
fn the_fcs_is_stored_unless_stripped() {
    let mut card = TestCard::running();
    card.set(Register::Rctl, 1 << 1);
    let bytes = frame(MAC, 61, 1);
    card.receive(&bytes);
    let stored = card.received(0).bytes;
    assert_eq!(stored[..61], bytes);
    // The residue of a frame with its FCS (IEEE 802.3 3.2.9), bit by bit.
    let crc = stored.iter().fold(u32::MAX, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| {
            (crc >> 1) ^ ((crc & 1) * 0xedb8_8320)
        })
    });
    assert_eq!((stored.len(), crc), (65, 0xdebb_20e3));
    card.nic.skip_fcs(true);
    card.receive(&bytes);
    assert_eq!(card.received(1).bytes, [&bytes[..], &[0; 4]].concat());
}

#[test]
fn buffer_sizes_and_frames_over_several() {
    // BSIZE and BSEX to bytes (13.4.22).
    for (bits, size) in [
        (0, 2048),
        (1 << 16, 1024),
        (2 << 16, 512),
        (3 << 16, 256),
        (1 << 25 | 3 << 16, 4096),
    ] {
        let mut card = TestCard::running();
        card.set(Register::Rctl, 1 << 1 | 1 << 5 | bits);
        let length = size * 2 + 7;
        let bytes = frame(MAC, length, 3);
        assert_eq!(card.receive(&bytes), Received::Stored { descriptors: 3 });
        let parts = [card.received(0), card.received(1), card.received(2)];
        assert_eq!(parts[0].bytes.len(), size);
        assert_eq!(parts[1].bytes.len(), size);
        assert_eq!(parts[2].bytes.len(), 7 + 4);
        assert_eq!(
            [parts[0].status, parts[1].status, parts[2].status],
            [1, 1, 7]
        );
        let stored: Vec<u8> = parts.iter().flat_map(|part| part.bytes.clone()).collect();
        assert_eq!(stored[..length], bytes);
        assert_eq!(card.read(Register::Rdh), 3);
    }
}

#[test]
fn overrun_when_descriptors_run_out() {
    let mut card = TestCard::running();
    let bytes = frame(MAC, 60, 1);
    let mut thresholds = 0;
    for number in 0..7 {
        assert_eq!(card.receive(&bytes), Received::Stored { descriptors: 1 });
        let causes = card.read(Register::Icr);
        // RDMTS 0: half of the ring is left.
        assert_eq!(causes & RXDMT0 != 0, number == 2, "{number}");
        thresholds += causes >> 4 & 1;
    }
    assert_eq!(thresholds, 1);
    assert_eq!(card.receive(&bytes), Received::NoDescriptors);
    assert_eq!(card.read(Register::Icr), RXO);
    assert_eq!(card.read(Register::Mpc), 1);
    assert_eq!(card.read(Register::Rnbc), 1);
    card.set(Register::Rdt, 0);
    assert_eq!(card.receive(&bytes), Received::Stored { descriptors: 1 });
    // One descriptor is not enough for two buffers, and stays.
    card.set(Register::Rdt, 1);
    card.or(Register::Rctl, 3 << 16);
    let head = card.read(Register::Rdh);
    assert_eq!(card.receive(&frame(MAC, 300, 1)), Received::NoDescriptors);
    assert_eq!(card.read(Register::Rdh), head);
    assert_eq!(card.receive(&bytes), Received::Stored { descriptors: 1 });
}

#[test]
fn rdmts_fractions() {
    for (bits, left) in [(0, 4), (1 << 8, 2), (2 << 8, 1)] {
        let mut card = TestCard::running();
        card.or(Register::Rctl, bits);
        for free in (0..7).rev() {
            card.receive(&frame(MAC, 60, 1));
            let causes = card.read(Register::Icr);
            assert_eq!(causes & RXDMT0 != 0, free == left, "{left}: {free}");
        }
    }
}

#[test]
fn small_packets_are_detected() {
    let mut card = TestCard::running();
    card.set(Register::Rsrpd, 70);
    card.receive(&frame(MAC, 67, 1));
    assert_eq!(card.read(Register::Icr), RXT0);
    card.receive(&frame(MAC, 66, 1));
    assert_eq!(card.read(Register::Icr), RXT0 | SRPD);
}

#[test]
fn address_filters() {
    let other = [0x52, 0x54, 0x00, 0x12, 0x34, 0x57];
    let group = [0x01, 0x00, 0x5e, 0x12, 0x34, 0x56];
    const STORED: Received = Received::Stored { descriptors: 1 };
    const DROPPED: Received = Received::Filtered(Filter::Address);
    let run = |rctl: u32, to: [u8; 6]| {
        let mut card = TestCard::running();
        card.set(Register::Rctl, 2 | rctl);
        let result = card.receive(&frame(to, 60, 1));
        (result, card.received(0).status >> 7)
    };
    assert_eq!(run(0, MAC), (STORED, 0));
    assert_eq!(run(0, other), (DROPPED, 0));
    assert_eq!(run(1 << 3, other), (STORED, 1), "UPE");
    assert_eq!(run(1 << 4, other), (DROPPED, 0), "MPE");
    assert_eq!(run(0, [0xff; 6]), (DROPPED, 0));
    assert_eq!(run(1 << 15, [0xff; 6]), (STORED, 0), "BAM");
    assert_eq!(run(0, group), (DROPPED, 0));
    assert_eq!(run(1 << 15, group), (DROPPED, 0));
    assert_eq!(run(1 << 3, group), (DROPPED, 0));
    assert_eq!(run(1 << 4, group), (STORED, 1), "MPE");
    // The last receive address entry; only while it is valid.
    let mut card = TestCard::running();
    let last = Table::ReceiveAddress.offset() + 30 * 4;
    card.nic.mmio_write(last, 0x1200_5452);
    card.nic.mmio_write(last + 4, 0x5734);
    assert_eq!(card.receive(&frame(other, 60, 1)), DROPPED);
    card.nic.mmio_write(last + 4, 0x5734 | 1 << 31);
    assert_eq!(card.receive(&frame(other, 60, 1)), STORED);
}

/// The hash as e1000_hash_mc_addr has it, by bytes.
#[test]
fn multicast_hash() {
    let mut random = Random::new(6);
    for _ in 0..200 {
        let mut to: [u8; 6] = random.word().to_le_bytes()[..6].try_into().unwrap();
        to[0] |= 1;
        let (a, b) = (u32::from(to[4]), u32::from(to[5]));
        let hashes = [
            a >> 4 | b << 4,
            a >> 3 | b << 5,
            a >> 2 | b << 6,
            a | b << 8,
        ];
        for (mode, hash) in hashes.into_iter().enumerate() {
            let hash = hash & 0xfff;
            let mut card = TestCard::running();
            card.set(Register::Rctl, 2 | (mode as u32) << 12);
            let word = Table::Multicast.offset() + (hash >> 5) * 4;
            card.nic.mmio_write(word, !(1 << (hash & 31)));
            let bytes = frame(to, 60, 1);
            assert_eq!(card.receive(&bytes), Received::Filtered(Filter::Address));
            card.nic.mmio_write(word, 1 << (hash & 31));
            assert_eq!(card.receive(&bytes), Received::Stored { descriptors: 1 });
        }
    }
}

pub(crate) fn tagged(tag: u16, length: usize) -> Vec<u8> {
    let mut bytes = frame(MAC, length, 7);
    bytes[12..14].copy_from_slice(&[0x81, 0x00]);
    bytes[14..16].copy_from_slice(&tag.to_be_bytes());
    bytes
}

#[test]
fn vlan_filter_and_strip() {
    let mut card = TestCard::running();
    let bytes = tagged(0x6123, 100);
    // Not stripped without CTRL.VME.
    card.receive(&bytes);
    assert_eq!(card.received(0).bytes, bytes);
    assert_eq!(card.received(0).status & 8, 0);
    card.or(Register::Ctrl, 1 << 30);
    card.receive(&bytes);
    let stored = card.received(1);
    assert_eq!(stored.bytes, [&bytes[..12], &bytes[16..]].concat());
    assert_eq!((stored.status & 8, stored.special), (8, 0x6123));
    assert_eq!(stored.checksum, !internet_sum(&stored.bytes));
    // The filter table: identifier 0x123 is word 9, bit 3.
    card.or(Register::Rctl, 1 << 18);
    assert_eq!(card.receive(&bytes), Received::Filtered(Filter::Vlan));
    card.nic.mmio_write(Table::Vlan.offset() + 9 * 4, 1 << 3);
    assert_eq!(card.receive(&bytes), Received::Stored { descriptors: 1 });
    // Untagged frames pass.
    let plain = frame(MAC, 60, 1);
    assert_eq!(card.receive(&plain), Received::Stored { descriptors: 1 });
    assert_eq!(card.received(3).special, 0);
    // The canonical form bit.
    card.or(Register::Rctl, 1 << 19);
    assert_eq!(card.receive(&bytes), Received::Stored { descriptors: 1 });
    let odd = tagged(0x7123, 100);
    assert_eq!(
        card.receive(&odd),
        Received::Filtered(Filter::CanonicalForm)
    );
}

#[test]
fn packet_checksum_starts_anywhere() {
    for strip in [false, true] {
        for start in [0usize, 5, 11, 12, 14, 15, 99, 255] {
            let mut card = TestCard::running();
            if strip {
                card.or(Register::Ctrl, 1 << 30);
            }
            card.set(Register::Rxcsum, start as u32);
            card.receive(&tagged(5, 100));
            let stored = card.received(0);
            let tail = stored.bytes.get(start..).unwrap_or_default();
            let expected = !internet_sum(tail);
            assert_eq!(stored.checksum, expected, "{strip} {start}");
        }
    }
}

#[test]
fn lengths() {
    let mut card = TestCard::running();
    assert_eq!(
        card.receive(&frame(MAC, 59, 1)),
        Received::Filtered(Filter::TooShort)
    );
    assert_eq!(
        card.receive(&frame(MAC, 60, 1)),
        Received::Stored { descriptors: 1 }
    );
    assert_eq!(
        card.receive(&frame(MAC, 1518, 1)),
        Received::Stored { descriptors: 1 }
    );
    assert_eq!(
        card.receive(&frame(MAC, 1519, 1)),
        Received::Filtered(Filter::TooLong)
    );
    assert_eq!(card.receive(&[]), Received::Filtered(Filter::TooShort));
    assert_eq!((card.read(Register::Ruc), card.read(Register::Roc)), (2, 1));
    card.or(Register::Rctl, 1 << 5 | 1 << 25 | 1 << 16);
    assert_eq!(
        card.receive(&frame(MAC, 16380, 1)),
        Received::Stored { descriptors: 1 }
    );
    assert_eq!(
        card.receive(&frame(MAC, 16381, 1)),
        Received::Filtered(Filter::TooLong)
    );
}

#[test]
fn receive_checksum_offload() {
    const IXSM: u8 = 4;
    const TCPCS: u8 = 0x20;
    const IPCS: u8 = 0x40;
    const TCPE: u8 = 0x20;
    const IPE: u8 = 0x40;
    let check = |rxcsum: u32, bytes: &[u8]| {
        let mut card = TestCard::running();
        card.set(Register::Rxcsum, rxcsum);
        card.receive(bytes);
        let descriptor = card.received(0);
        (descriptor.status & (IXSM | TCPCS | IPCS), descriptor.errors)
    };
    for udp in [false, true] {
        for payload in [0, 1, 17, 1400] {
            let (mut bytes, transport) = packet(false, udp, payload, 5);
            fill_checksums(&mut bytes, transport);
            // Padding after the packet is not part of it.
            bytes.resize(bytes.len().max(60) + 3, 0xee);
            assert_eq!(check(0, &bytes), (IXSM, 0));
            assert_eq!(check(0x100, &bytes), (IPCS, 0));
            assert_eq!(check(0x200, &bytes), (TCPCS, 0));
            assert_eq!(check(0x300, &bytes), (IPCS | TCPCS, 0));
            let mut wrong = bytes.clone();
            wrong[22] ^= 1;
            assert_eq!(check(0x300, &wrong), (IPCS | TCPCS, IPE));
            let mut wrong = bytes.clone();
            wrong[transport] ^= 1;
            assert_eq!(check(0x300, &wrong), (IPCS | TCPCS, TCPE));
            // The same after a VLAN tag.
            let mut inside = bytes[..12].to_vec();
            inside.extend([0x81, 0, 0, 1]);
            inside.extend(&bytes[12..]);
            assert_eq!(check(0x300, &inside), (IPCS | TCPCS, 0));
            // A fragment has no transport checksum to check.
            bytes[20] = 0x20;
            let ip = internet_sum(&bytes[14..24]) as u32 + internet_sum(&bytes[26..34]) as u32;
            let ip = !((ip & 0xffff) + (ip >> 16)) as u16;
            bytes[24..26].copy_from_slice(&ip.to_be_bytes());
            assert_eq!(check(0x300, &bytes), (IPCS, 0));
            let (mut bytes, transport) = packet(true, udp, payload, 5);
            fill_checksums(&mut bytes, transport);
            assert_eq!(check(0x700, &bytes), (TCPCS, 0));
            assert_eq!(check(0x300, &bytes), (IXSM, 0));
            let last = bytes.len() - 1;
            bytes[last] ^= 0x80;
            assert_eq!(check(0x700, &bytes), (TCPCS, TCPE));
        }
    }
    // UDP without a checksum.
    let (mut bytes, transport) = packet(false, true, 30, 5);
    fill_checksums(&mut bytes, transport);
    bytes[40..42].copy_from_slice(&[0, 0]);
    assert_eq!(check(0x300, &bytes), (IPCS, 0));
    // Not IP; IP whose lengths are not possible.
    assert_eq!(check(0x700, &frame(MAC, 60, 1)), (IXSM, 0));
    bytes[16..18].copy_from_slice(&[0xff, 0xff]);
    assert_eq!(check(0x700, &bytes), (IXSM, 0));
}

#[test]
fn pause_frames_stay_in_the_mac() {
    let mut pause = frame([0x01, 0x80, 0xc2, 0, 0, 1], 60, 1);
    pause[12..18].copy_from_slice(&[0x88, 0x08, 0, 1, 0, 9]);
    let mut card = TestCard::running();
    card.or(Register::Rctl, 1 << 4);
    assert_eq!(card.receive(&pause), Received::Stored { descriptors: 1 });
    assert_eq!(card.read(Register::Fcruc), 1);
    card.or(Register::Ctrl, 1 << 27);
    assert_eq!(card.receive(&pause), Received::Filtered(Filter::Pause));
    pause[17] = 0;
    assert_eq!(card.receive(&pause), Received::Filtered(Filter::Pause));
    let counts = (card.read(Register::Xoffrxc), card.read(Register::Xonrxc));
    assert_eq!(counts, (1, 1));
    card.or(Register::Rctl, 1 << 23);
    assert_eq!(card.receive(&pause), Received::Stored { descriptors: 1 });
}

#[test]
fn a_refused_address_stops_the_receive_ring() {
    let mut card = TestCard::running();
    card.memory.put(RX_RING, &0xdead_0000u64.to_le_bytes());
    let bytes = frame(MAC, 60, 1);
    assert_eq!(card.receive(&bytes), Received::Stopped);
    let fault = BusFault {
        address: 0xdead_0000,
        length: 60,
    };
    assert_eq!(card.nic.faults().receive, fault);
    assert!(card.nic.stopped(Ring::Receive) && !card.nic.stopped(Ring::Transmit));
    assert_eq!(card.received_status(0), 0, "not done");
    assert_eq!(card.read(Register::Rdh), 0);
    assert_eq!(card.receive(&bytes), Received::Stopped);
    assert_eq!(card.nic.faults().bus, 1);
    assert_eq!(card.read(Register::Gprc), 0);
    assert_eq!(card.read(Register::Mpc), 2);
}
