use process_lab::process;

use super::*;
use crate::traffic::SHORTEST;
use crate::transport::mailbox::SharedPages;

const SPREAD: Spread = Spread {
    guests: 2,
    queues: 1,
    processors: 2,
};
const FLOWS_EACH: u32 = 4;

/// The packet of that number of a flow; each guest has flows to each card.
fn packet(flow: u32, number: u64) -> Outgoing {
    let (card, guest) = (flow % 2, flow / 2 % 2);
    let mut frame = [0; SHORTEST];
    frame[6..12].copy_from_slice(&guest_mac(guest));
    frame[42..50].copy_from_slice(&number.to_le_bytes());
    Outgoing::new(card, guest, flow, &frame)
}

fn number(packet: &Outgoing) -> u64 {
    let bytes: [u8; 8] = packet.bytes[42..50].try_into().expect("eight bytes");
    u64::from_le_bytes(bytes)
}

fn queue(guest: u32) -> QueueId {
    SPREAD.queue(guest, 0)
}

fn memory() -> SharedPages<Outward> {
    SharedPages::new().expect("memory")
}

/// Takes all of a card's packets; each is its flow's next.
fn drain(outward: &Outward, card: u32, next: &mut [u64]) -> u64 {
    let mut taken = Vec::new();
    outward.take(card, &mut taken, CARD_ROOM);
    for packet in &taken {
        assert_eq!(packet.card, card);
        let next = &mut next[packet.flow as usize];
        assert_eq!(number(packet), *next, "flow {}", packet.flow);
        *next += 1;
        outward.note_sent(packet.flow.into());
    }
    taken.len() as u64
}

/// Gives a guest's flows packets by turns until so many are in its queue.
fn give(outward: &Outward, guest: u32, flows: &[u32], next: &mut [u64], count: usize) {
    for turn in 0..count {
        let flow = flows[turn % flows.len()];
        let given = outward.put(queue(guest), &packet(flow, next[flow as usize]));
        assert_eq!(given, Ok(()));
        next[flow as usize] += 1;
    }
}

/// Two processes hand to two cards and take from one each, at once: nothing is lost, each flow in order.
#[test]
fn flows_stay_in_order_while_processors_hand_to_each_others_cards() {
    const EACH: u64 = 10_000;
    let pages = memory();
    let outward = pages.get();
    let run = |me: u32| {
        let mut hander = Hander::new(outward, SPREAD, ProcessorId(me), 2);
        // The guest of this processor's queue gives packets here.
        let flows: Vec<u32> = (0..FLOWS_EACH).filter(|flow| flow / 2 % 2 == me).collect();
        let mut given = vec![0; FLOWS_EACH as usize];
        let mut next = vec![0; FLOWS_EACH as usize];
        let all = EACH * u64::from(FLOWS_EACH) / 2;
        let mut got = 0;
        while got < all || flows.iter().any(|flow| outward.sent(*flow) < EACH) {
            for flow in &flows {
                let made = &mut given[*flow as usize];
                let credit = outward.sent(*flow) + CARD_ROOM as u64 / u64::from(FLOWS_EACH);
                while *made < EACH.min(credit)
                    && outward.put(queue(me), &packet(*flow, *made)).is_ok()
                {
                    *made += 1;
                }
            }
            hander.serve();
            got += drain(outward, me, &mut next);
            std::thread::yield_now();
        }
        assert_eq!((hander.counts.dropped, hander.counts.refused), (0, 0));
        assert_eq!(hander.counts.handed, EACH * flows.len() as u64);
        0
    };
    let mut children = [0, 1].map(|me| process::fork(|| run(me)).expect("fork"));
    // One that finds disorder ends; the other waits for it, and is ended.
    assert_eq!(process::wait_for_all(&mut children), Ok(()));
    for flow in 0..FLOWS_EACH {
        assert_eq!(outward.sent(flow), EACH, "flow {flow}");
    }
    assert!(outward.all_free());
}

/// A processor is stuck with card 0's lock, and lives. What goes by card 1 goes on, without limit; for
/// card 0 a window's packets are kept, what a guest gives beyond is dropped, and all that was kept is
/// handed, in order, when the lock is free.
#[test]
fn a_card_whose_lock_is_held_for_ever_holds_up_no_other() {
    let pages = memory();
    let outward = pages.get();
    let mut hander = Hander::new(outward, SPREAD, ProcessorId(0), 2);
    let (mut given, mut next) = (vec![0; 4], vec![0; 4]);
    let stuck = outward.card(0).hold();
    let rounds = 2 * CARD_ROOM / (ROOM / 2);
    for _ in 0..rounds {
        // Flow 0 by card 0, flow 1 by card 1, by turns.
        give(outward, 0, &[0, 1], &mut given, ROOM);
        assert!(hander.serve());
        assert_eq!(drain(outward, 1, &mut next), ROOM as u64 / 2, "at once");
    }
    let each = (rounds * ROOM / 2) as u64;
    assert_eq!((next[0], next[1]), (0, each));
    assert_eq!(hander.kept(0), CARD_ROOM);
    assert_eq!(hander.counts.dropped, each - CARD_ROOM as u64);
    assert_eq!(hander.counts.held, rounds as u64);
    drop(stuck);
    assert!(!hander.serve(), "the guest has given nothing more");
    assert_eq!(drain(outward, 0, &mut next), CARD_ROOM as u64);
    assert!(outward.all_free());
}

/// The same with an owner that died in the middle: its lock is taken over, and nothing is lost.
#[test]
fn a_card_whose_locks_owner_died_gets_its_packets() {
    let pages = memory();
    let outward = pages.get();
    let mut child = process::fork(|| {
        std::mem::forget(outward.card(0).hold());
        0
    })
    .expect("fork");
    child.wait();
    let mut hander = Hander::new(outward, SPREAD, ProcessorId(0), 2);
    let (mut given, mut next) = (vec![0; 4], vec![0; 4]);
    give(outward, 0, &[0, 1], &mut given, ROOM);
    hander.serve();
    let got = [0, 1].map(|card| drain(outward, card, &mut next));
    assert_eq!(got, [ROOM as u64 / 2; 2]);
    assert!(outward.all_free());
}

/// Card 0 has thirty-one packets for each of card 1's, and takes none: card 1's go in the round in which they
/// were given, whatever waits for card 0.
#[test]
fn a_busy_cards_packets_do_not_hold_up_anothers() {
    let pages = memory();
    let outward = pages.get();
    let mut hander = Hander::new(outward, SPREAD, ProcessorId(0), 2);
    let (mut given, mut next) = (vec![0; 4], vec![0; 4]);
    let mut flows = vec![0; 31];
    flows.push(1);
    let rounds = 20;
    for _ in 0..rounds {
        give(outward, 0, &flows, &mut given, ROOM);
        hander.serve();
        assert_eq!(drain(outward, 1, &mut next), 2);
    }
    assert_eq!(outward.waiting(0), CARD_ROOM as u64);
    assert_eq!(hander.kept(0), CARD_ROOM);
    let more = rounds * 62 - 2 * CARD_ROOM as u64;
    assert_eq!(hander.counts.dropped, more, "beyond all windows");
    assert_eq!(hander.counts.held, 0, "a full queue is no held lock");
}

/// What a guest writes into its queue is not believed.
#[test]
fn packets_of_others_and_for_no_card_are_refused() {
    let pages = memory();
    let outward = pages.get();
    let mut hander = Hander::new(outward, SPREAD, ProcessorId(0), 2);
    let good = packet(0, 0);
    let bad = [
        Outgoing { card: 2, ..good },
        Outgoing {
            card: u32::MAX,
            ..good
        },
        Outgoing { guest: 1, ..good },
        Outgoing {
            flow: FLOWS as u32,
            ..good
        },
        Outgoing { length: 13, ..good },
        Outgoing {
            length: HEADER as u32 + 1,
            ..good
        },
        packet(2, 0),
    ];
    for packet in bad.iter().chain([&good]) {
        outward.put(queue(0), packet).expect("room");
    }
    hander.serve();
    assert_eq!(hander.counts.refused, bad.len() as u64);
    assert_eq!(hander.counts.handed, 1);
    outward.note_sent(u64::MAX);
    outward.note_sent(FLOWS as u64);
    assert!((0..FLOWS as u32).all(|flow| outward.sent(flow) == 0));
}
