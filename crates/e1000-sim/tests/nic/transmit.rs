//! Transmit rings: frames, contexts, offloads, segmentation, what is malformed.

use e1000_sim::nic::{BusFault, FRAME_LIMIT, Received, Register, Ring, Transmitted};

use crate::card::*;

#[test]
fn frames_go_out_in_order_and_wrap() {
    let mut card = TestCard::running();
    for number in 0..50u64 {
        let bytes = frame(MAC, 60 + number as usize * 29, number);
        card.data = TX_DATA;
        let (a, b) = bytes.split_at(bytes.len() / 3);
        let first = card.queue_buffer(a, 0, 0);
        let second = card.queue_buffer(b, EOP | RS, 0);
        let done = card.transmit();
        let expected = Transmitted {
            descriptors: 2,
            frames: 1,
            bytes: bytes.len() as u64,
        };
        assert_eq!(done, expected);
        assert!(!card.done(first), "RS was not asked for");
        assert!(card.done(second));
        assert_eq!(card.read(Register::Tdh), card.read(Register::Tdt));
        assert_eq!(card.wire.0.pop().as_deref(), Some(&bytes[..]));
        assert_eq!(card.read(Register::Icr), TXDW | TXQE);
    }
}

#[test]
fn a_disabled_transmitter_waits() {
    let mut card = TestCard::running();
    card.set(Register::Tctl, 0);
    card.queue_buffer(&frame(MAC, 60, 1), EOP, 0);
    assert_eq!(card.transmit(), Transmitted::default());
    card.set(Register::Tctl, 2);
    assert_eq!(card.transmit().frames, 1);
    assert_eq!(card.read(Register::Icr), TXQE, "without RS no TXDW");
}

#[test]
fn short_frames_are_padded_with_zeros() {
    let mut card = TestCard::running();
    // Something longer before, so that old bytes would show.
    card.queue_buffer(&frame(MAC, 200, 1), EOP, 0);
    let short = frame(MAC, 20, 2);
    card.queue_buffer(&short, EOP, 0);
    card.transmit();
    let mut padded = short.clone();
    padded.resize(60, 0);
    assert_eq!(card.wire.0[1], padded);
    card.set(Register::Tctl, 2);
    card.queue_buffer(&short, EOP, 0);
    card.transmit();
    assert_eq!(card.wire.0[2], short);
}

#[test]
fn legacy_checksum() {
    let mut card = TestCard::running();
    let bytes = frame(MAC, 101, 4);
    // CSO in the third word, CSS in the fourth.
    card.queue_buffer(&bytes, EOP | IC | 40 << 16, 20 << 8);
    card.transmit();
    let sent = &card.wire.0[0];
    assert_eq!(be16(sent, 40), !internet_sum(&bytes[20..]));
    assert_eq!((&sent[..40], &sent[42..]), (&bytes[..40], &bytes[42..]));
}

/// The context words as e1000_tx_csum and e1000_tso write them.
pub(crate) fn context(bytes: &[u8], transport: usize, tso: Option<(u32, u32)>) -> [u32; 4] {
    let ipv4 = bytes[14] >> 4 == 4;
    let udp = bytes[transport_protocol(bytes)] == 17;
    let at = transport as u32;
    let field = at + if udp { 6 } else { 16 };
    let ip = 14 | 24 << 8 | if ipv4 { (at - 1) << 16 } else { 0 };
    let mut control = DEXT | if udp { 0 } else { 1 << 24 } | if ipv4 { 1 << 25 } else { 0 };
    let mut upper = 0;
    if let Some((header, segment)) = tso {
        control |= TSE | (bytes.len() as u32 - header);
        upper = segment << 16 | header << 8;
    }
    [ip, at | field << 8, control, upper]
}

#[test]
fn checksum_offload() {
    for (ipv6, udp) in [(false, false), (false, true), (true, false), (true, true)] {
        for payload in [0, 1, 333, 1400] {
            let (mut bytes, transport) = packet(ipv6, udp, payload, 9);
            let field = transport + if udp { 6 } else { 16 };
            let pseudo = pseudo_header(&bytes, transport, (bytes.len() - transport) as u32);
            let seed = internet_sum(&pseudo).to_be_bytes();
            bytes[field..field + 2].copy_from_slice(&seed);
            let mut card = TestCard::running();
            card.set(Register::Tctl, 2);
            card.queue(context(&bytes, transport, None));
            let options = if ipv6 { 2 } else { 3 } << 8;
            let (a, b) = bytes.split_at(37);
            card.queue_buffer(a, DATA, options);
            // Only the first descriptor's options count (3.3.7.2).
            card.queue_buffer(b, DATA | EOP | RS, 0);
            card.transmit();
            let sent = &card.wire.0[0];
            assert_eq!(sent.len(), bytes.len());
            assert!(transport_valid(sent, transport), "{ipv6} {udp} {payload}");
            if !ipv6 {
                assert_eq!(internet_sum(&sent[14..34]), 0xffff);
            }
            // Without options nothing is touched.
            card.queue_buffer(&bytes, DATA | EOP, 0);
            card.transmit();
            assert_eq!(card.wire.0[1], bytes);
        }
    }
}

#[test]
fn a_udp_checksum_of_zero_is_sent_as_ones() {
    let (mut bytes, transport) = packet(false, true, 2, 9);
    bytes[42..44].copy_from_slice(&[0, 0]);
    let pseudo = pseudo_header(&bytes, transport, 10);
    let mut all = pseudo.clone();
    all.extend(&bytes[transport..]);
    // Payload that makes the sum all ones.
    let rest = !internet_sum(&all);
    bytes[42..44].copy_from_slice(&rest.to_be_bytes());
    let seed = internet_sum(&pseudo).to_be_bytes();
    bytes[40..42].copy_from_slice(&seed);
    let mut card = TestCard::running();
    card.queue(context(&bytes, transport, None));
    card.queue_buffer(&bytes, DATA | EOP, 2 << 8);
    card.transmit();
    assert_eq!(be16(&card.wire.0[0], 40), 0xffff);
}

#[test]
fn segmentation() {
    for (ipv6, udp) in [(false, false), (true, false), (false, true), (true, true)] {
        for (payload, segment) in [(64000, 1448), (1448 * 3, 1448), (100, 1448), (2801, 700)] {
            let (mut bytes, transport) = packet(ipv6, udp, payload, payload as u64);
            let header = transport + if udp { 8 } else { 20 };
            let field = transport + if udp { 6 } else { 16 };
            // As Linux leaves it: the pseudo header without length.
            let seed = internet_sum(&pseudo_header(&bytes, transport, 0));
            bytes[field..field + 2].copy_from_slice(&seed.to_be_bytes());
            let mut card = TestCard::running();
            // The last segment may be short; unpadded.
            card.set(Register::Tctl, 2);
            let tso = Some((header as u32, segment as u32));
            card.queue(context(&bytes, transport, tso));
            let options = if ipv6 { 2 } else { 3 } << 8;
            // The header in its own descriptor; the payload in odd pieces.
            let cuts = [
                header,
                header + payload / 3,
                header + payload / 2,
                bytes.len(),
            ];
            let mut from = 0;
            for to in cuts {
                let end = if to == bytes.len() { EOP | RS } else { 0 };
                card.queue_buffer(&bytes[from..to], DATA | TSE | end, options);
                from = to;
            }
            assert_eq!(card.transmit().frames as usize, payload.div_ceil(segment));
            assert_eq!(card.read(Register::Tsctc), 1);
            assert_eq!(card.read(Register::Tsctfc), 0);
            let last = card.wire.0.len() - 1;
            let mut together: Vec<u8> = Vec::new();
            for (number, sent) in card.wire.0.iter().enumerate() {
                let data = &sent[header..];
                assert!(data.len() == segment || number == last);
                assert!(transport_valid(sent, transport), "segment {number}");
                assert_eq!(sent[..14], bytes[..14]);
                if ipv6 {
                    assert_eq!(usize::from(be16(sent, 18)), sent.len() - 54);
                    assert_eq!(sent[20..54], bytes[20..54]);
                } else {
                    assert_eq!(internet_sum(&sent[14..34]), 0xffff);
                    assert_eq!(usize::from(be16(sent, 16)), sent.len() - 14);
                    assert_eq!(usize::from(be16(sent, 18)), 0x1234 + number);
                    assert_eq!(sent[26..34], bytes[26..34]);
                }
                if udp {
                    let length = usize::from(be16(sent, transport + 4));
                    assert_eq!(length, sent.len() - transport);
                } else {
                    let sequence = &sent[transport + 4..transport + 8];
                    let sequence = u32::from_be_bytes(sequence.try_into().unwrap());
                    let expected = 0xffff_ff00u32.wrapping_add(together.len() as u32);
                    assert_eq!(sequence, expected);
                    let flags = if number == last { 0x19 } else { 0x10 };
                    assert_eq!(sent[transport + 13], flags);
                }
                together.extend(data);
            }
            assert!(together == bytes[header..], "the payload came through");
        }
    }
}

#[test]
fn vlan_tags_are_inserted() {
    let mut card = TestCard::running();
    let bytes = frame(MAC, 99, 5);
    card.queue_buffer(&bytes, EOP | VLE, 0x6123 << 16);
    card.transmit();
    assert_eq!(card.wire.0[0], bytes, "CTRL.VME is 0");
    card.or(Register::Ctrl, 1 << 30);
    card.queue_buffer(&bytes, EOP | VLE, 0x6123 << 16);
    card.queue_buffer(&bytes, EOP, 0x6123 << 16);
    let (tcp, transport) = packet(false, false, 500, 1);
    card.queue(context(&tcp, transport, Some((54, 200))));
    card.queue_buffer(&tcp, DATA | TSE | EOP | VLE, 0x0007 << 16);
    card.transmit();
    let mut tagged = bytes[..12].to_vec();
    tagged.extend([0x81, 0x00, 0x61, 0x23]);
    tagged.extend(&bytes[12..]);
    assert_eq!(card.wire.0[1], tagged);
    assert_eq!(card.wire.0[2], bytes, "VLE is 0");
    assert_eq!(card.wire.0.len(), 6);
    let data: Vec<u8> = card.wire.0[3..]
        .iter()
        .flat_map(|sent| {
            assert_eq!(sent[..12], tcp[..12]);
            assert_eq!(sent[12..18], [0x81, 0x00, 0x00, 0x07, 0x08, 0x00]);
            sent[58..].to_vec()
        })
        .collect();
    assert_eq!(data, tcp[54..]);
}

/// VLE counts in the descriptor with EOP (3.3.7.1).
#[test]
fn the_last_descriptor_decides_about_the_tag() {
    let mut card = TestCard::running();
    card.or(Register::Ctrl, 1 << 30);
    let bytes = frame(MAC, 99, 5);
    let (a, b) = bytes.split_at(40);
    card.queue_buffer(a, VLE, 1 << 16);
    card.queue_buffer(b, EOP, 1 << 16);
    card.queue_buffer(a, 0, 0);
    card.queue_buffer(b, EOP | VLE, 7 << 16);
    card.transmit();
    assert_eq!(card.wire.0[0], bytes);
    assert_eq!(
        card.wire.0[1][12..18],
        [0x81, 0, 0, 7, bytes[12], bytes[13]]
    );
    assert_eq!(card.wire.0[1].len(), bytes.len() + 4);
}

#[test]
fn malformed_packets_are_dropped_and_the_next_goes_out() {
    let good = frame(MAC, 80, 1);
    let (tcp, transport) = packet(false, false, 500, 1);
    let too_long = vec![0; 9000];
    type Make<'a> = &'a dyn Fn(&mut TestCard);
    let cases: [(&str, Make); 8] = [
        ("segments longer than the buffer", &|card| {
            let segment = FRAME_LIMIT as u32 - 53;
            let mut words = context(&tcp, transport, Some((54, segment)));
            words[2] |= 0x8000;
            card.queue(words);
            card.queue_buffer(&tcp, DATA | TSE, 0);
            for _ in 0..3 {
                card.queue_buffer(&too_long, DATA | TSE, 0);
            }
            card.queue_buffer(&too_long, DATA | TSE | EOP, 0);
        }),
        ("no header", &|card| {
            card.queue(context(&tcp, transport, Some((0, 200))));
            card.queue_buffer(&tcp, DATA | TSE | EOP, 0);
        }),
        ("no segment size", &|card| {
            card.queue(context(&tcp, transport, Some((54, 0))));
            card.queue_buffer(&tcp, DATA | TSE | EOP, 0);
        }),
        ("header ends in TCP's", &|card| {
            card.queue(context(&tcp, transport, Some((50, 200))));
            card.queue_buffer(&tcp, DATA | TSE | EOP, 0);
        }),
        ("more than PAYLEN", &|card| {
            card.queue(context(&tcp, transport, Some((54, 1000))));
            card.queue_buffer(&[&tcp[..], &[0]].concat(), DATA | TSE | EOP, 0);
        }),
        ("checksum field outside", &|card| {
            card.queue_buffer(&good[..30], EOP | IC | 29 << 16, 14 << 8);
        }),
        ("longer than the buffer", &|card| {
            card.queue_buffer(&too_long, 0, 0);
            card.queue_buffer(&too_long, EOP, 0);
        }),
        ("unknown descriptor type", &|card| {
            card.queue_buffer(&good, DEXT | 5 << 20 | EOP, 0);
        }),
    ];
    for (name, make) in cases {
        let mut card = TestCard::running();
        make(&mut card);
        let last = card.queue_buffer(&good, EOP | RS, 0);
        card.transmit();
        assert_eq!(card.nic.faults().malformed, 1, "{name}");
        assert!(card.done(last), "{name}");
        assert_eq!(card.wire.0.last(), Some(&good), "{name}");
        // The frame sent before the excess was found is a whole segment.
        let before = if name == "more than PAYLEN" { 1 } else { 0 };
        assert_eq!(card.wire.0.len(), before + 1, "{name}");
    }
    // Fewer than PAYLEN: complete segments are sent, the rest is dropped.
    let mut card = TestCard::running();
    card.queue(context(&tcp, transport, Some((54, 200))));
    card.queue_buffer(&tcp[..tcp.len() - 1], DATA | TSE | EOP, 0);
    card.transmit();
    assert_eq!((card.wire.0.len(), card.nic.faults().malformed), (2, 1));
    assert_eq!(card.read(Register::Tsctfc), 1);
}

#[test]
fn the_longest_frame_goes_out() {
    let mut card = TestCard::running();
    let bytes = frame(MAC, FRAME_LIMIT, 8);
    card.or(Register::Ctrl, 1 << 30);
    card.queue_buffer(&bytes, EOP | VLE, 0);
    card.transmit();
    assert_eq!(card.wire.0[0].len(), FRAME_LIMIT + 4);
    assert_eq!(card.wire.0[0][16..], bytes[12..]);
}

#[test]
fn a_refused_address_stops_the_transmit_ring() {
    let bad = BusFault {
        address: 0xdead_0000,
        length: 100,
    };
    let mut card = TestCard::running();
    let good = frame(MAC, 60, 1);
    card.queue_buffer(&good, EOP | RS, 0);
    let at = card.queue([bad.address as u32, 0, EOP | RS | 100, 0]);
    card.queue_buffer(&good, EOP | RS, 0);
    assert_eq!(card.transmit().descriptors, 1);
    assert_eq!(card.nic.faults().transmit, bad);
    assert_eq!(card.nic.faults().bus, 1);
    assert!(card.nic.stopped(Ring::Transmit) && !card.nic.stopped(Ring::Receive));
    assert!(!card.done(at));
    assert_eq!(card.read(Register::Tdh), 1);
    assert_eq!(card.read(Register::Icr), TXDW);
    assert_eq!(card.transmit().descriptors, 0);
    // Configuration space: received master abort, until a 1 is written.
    assert_ne!(card.nic.config_read(6, 2) & 0x2000, 0);
    card.nic.config_write(6, 2, 0x2000);
    assert_eq!(card.nic.config_read(6, 2) & 0x2000, 0);
    // Receive goes on; a reset lets transmit run again.
    assert_eq!(card.receive(&good), Received::Stored { descriptors: 1 });
    card.set(Register::Ctrl, 1 << 26);
    assert!(!card.nic.stopped(Ring::Transmit));
    // The ring itself, and the write-back, are DMA too.
    let mut card = TestCard::running();
    card.set(Register::Tdbah, 9);
    card.set(Register::Tdt, 1);
    card.transmit();
    let ring = 9 << 32 | TX_RING & 0xffff_ffff;
    assert_eq!(card.nic.faults().transmit.address, ring);
}

#[test]
fn a_tail_outside_stops_the_ring() {
    let mut card = TestCard::running();
    card.set(Register::Tdt, 8);
    assert_eq!(card.transmit(), Transmitted::default());
    card.set(Register::Rdt, 0xffff);
    assert_eq!(card.receive(&frame(MAC, 60, 1)), Received::Stopped);
    assert_eq!(card.nic.faults().bad_tails, 2);
    assert!(card.nic.stopped(Ring::Transmit) && card.nic.stopped(Ring::Receive));
}

#[test]
fn low_transmit_threshold() {
    let mut card = TestCard::running();
    card.set(Register::Tdlen, 0x1000 - 0x80);
    card.set(Register::Txdctl, 1 << 25);
    for _ in 0..8 {
        card.queue_buffer(&frame(MAC, 60, 1), EOP, 0);
    }
    // `queue` wraps at 8: set the tail past the threshold by hand.
    card.set(Register::Tdt, 7);
    card.transmit();
    assert_eq!(card.read(Register::Icr), TXQE, "never more than 8 waited");
    card.set(Register::Tdh, 0);
    card.set(Register::Tdt, 9);
    card.transmit();
    assert_eq!(card.read(Register::Icr), TXQE | TXD_LOW);
}
