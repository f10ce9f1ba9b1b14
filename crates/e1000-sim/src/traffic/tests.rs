//! The packets made are correct, and wrong ones are detected.

use super::checksum::{fold, pseudo, sum};

use super::*;

const FLOW: Flow = Flow {
    number: 3,
    source: [2, 0, 0, 0, 0, 3],
    destination: [2, 0, 0, 0, 1, 0],
};

#[test]
fn a_datagram_of_any_size_says_its_number() {
    for size in SHORTEST..=LONGEST {
        let mut datagrams = Datagrams::new(FLOW, size);
        let number = 0x1234_5678_9abc + size as u64;
        assert_eq!(
            check(datagrams.finished(number)),
            Ok(Content::Datagram { flow: 3, number }),
            "{size} bytes"
        );
    }
}

#[test]
fn no_flipped_bit_after_the_addresses_goes_unnoticed() {
    let frame = Datagrams::new(FLOW, 128).finished(7).to_vec();
    for bit in 12 * 8..frame.len() * 8 {
        let mut changed = frame.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        assert!(check(&changed).is_err(), "bit {bit}");
    }
}

#[test]
fn a_payload_with_a_right_checksum_but_wrong_bytes_is_corrupt() {
    let mut frame = Datagrams::new(FLOW, 128).finished(7).to_vec();
    // Swapping two words changes no Internet checksum.
    frame.swap(100, 102);
    frame.swap(101, 103);
    assert_eq!(check(&frame), Err(Corruption::Payload));
}

#[test]
fn a_sink_counts_gaps_and_late_ones() {
    let mut datagrams = Datagrams::new(FLOW, 64);
    let mut sink = Sink::new(4);
    for number in [0, 1, 4, 3] {
        sink.take(datagrams.finished(number));
    }
    let arrived = sink.flows[3];
    assert_eq!(
        (
            arrived.packets, arrived.missing, arrived.reordered, arrived.next
        ),
        (4, 1, 1, 5)
    );
    sink.take(&[0; 20]);
    assert_eq!(sink.corrupted, 1);
}

#[test]
fn a_segment_is_checked_by_itself() {
    let mut frame = segment_headers(&FLOW, 1000).to_vec();
    frame.resize(SEGMENT_HEADERS + 100, 0);
    fill_stream(3, 1000, &mut frame[SEGMENT_HEADERS..]);
    let total = (frame.len() - 14) as u16;
    frame[16..18].copy_from_slice(&total.to_be_bytes());
    let header = !fold(sum(&frame[14..34], 0));
    frame[24..26].copy_from_slice(&header.to_be_bytes());
    let length = frame.len() - 34;
    frame[50..52].fill(0);
    let checksum = !fold(sum(
        &frame[34..],
        pseudo(&frame[14..34], PROTOCOL_TCP, length),
    ));
    frame[50..52].copy_from_slice(&checksum.to_be_bytes());
    let expected = Content::Segment {
        flow: 3,
        offset: 1000,
        length: 100,
    };
    assert_eq!(check(&frame), Ok(expected));
}
