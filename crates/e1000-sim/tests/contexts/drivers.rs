//! Guests with the stock driver, whose rings are then written as a driver that lies would.

use std::sync::Mutex;
use std::sync::atomic::Ordering;

use e1000_sim::contexts::ContextId;
use e1000_sim::contexts::card::Stopped;
use e1000_sim::contexts::protection::Protection;
use e1000_sim::contexts::rig::{Grounds, Rig};
use e1000_sim::contexts::row::{self, Column, Extent, Fairness};
use e1000_sim::image::files::Files;
use e1000_sim::memory::{NotGiven, PAGE};
use e1000_sim::nic::Ring;
use e1000_sim::packets::round::PacketDirection;
use e1000_sim::traffic::{Datagrams, Flow, LONGEST};
use e1000_sim::transport::rendezvous::Limits;
use process_lab::program::{Scheme, Variant};
use process_lab::runtime;

/// Processes are started before a test has threads of its own, one test at a time.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

const A: ContextId = ContextId(0);
const B: ContextId = ContextId(1);
const BOTH: [Protection; 2] = [Protection::Copies, Protection::Table];
const BATCH: u64 = 32;
/// A legacy descriptor's control word: EOP, IFCS, RS.
const LEGACY: u64 = 0x0b00_0000;
/// What fills the memory that nobody sends.
const SECRET: [u8; 256] = [0xa5; 256];

fn with_guests(guests: usize, protection: Protection, test: impl FnOnce(&mut Rig<'_>)) {
    let _alone = ONE_AT_A_TIME.lock();
    let files = Files::find().unwrap_or_else(|error| panic!("{error}"));
    let grounds = Grounds::new(&files, guests).expect("grounds");
    let hypervisors = grounds.hypervisors().expect("memory");
    let posts = grounds.posts(&hypervisors);
    let limits = Limits::of_seconds(30);
    let rig = Rig::start(&grounds, &posts, LONGEST, protection, limits);
    let mut rig = rig.unwrap_or_else(|error| panic!("{error}"));
    // The kernel's limit of queued bytes grows with the first ones.
    for id in rig.ids() {
        send(&mut rig, id, 8 * BATCH);
    }
    test(&mut rig);
}

fn send(rig: &mut Rig<'_>, id: ContextId, packets: u64) {
    row::send(rig, id, packets).expect("a driver");
}

/// Frames from the wire to a guest.
fn to(id: ContextId) -> Datagrams {
    let number = id.0 as u32;
    let flow = Flow {
        number,
        source: [0x02, 0x50, 0x45, 0x45, 0x52, 0x00],
        destination: [0x02, 0x54, 0x57, 0x49, 0x4e, number as u8],
    };
    Datagrams::new(flow, LONGEST)
}

fn receive(rig: &mut Rig<'_>, id: ContextId, packets: u64) {
    let (mut peer, first) = (to(id), rig.report(id).received);
    for number in first..first + packets {
        assert_eq!(rig.receive(peer.finished(number)), 1, "{id:?} {number}");
        if number % BATCH == 0 {
            rig.settle().expect("interrupts");
        }
    }
    rig.settle().expect("interrupts");
}

/// Both ways: nothing is lost, nothing is changed.
fn is_served(rig: &mut Rig<'_>, id: ContextId) {
    let before = rig.report(id);
    send(rig, id, 3 * BATCH);
    receive(rig, id, 3 * BATCH);
    let now = rig.report(id);
    assert_eq!(now.received - before.received, 3 * BATCH, "{id:?}");
    assert_eq!(
        (now.sent, now.damaged, now.bad_completions),
        (now.completed, 0, 0),
        "{id:?}"
    );
    let arrived = rig.wire.flows[id.0];
    assert_eq!(
        (arrived.packets, arrived.missing, arrived.reordered),
        (now.sent, 0, 0),
        "{id:?}"
    );
}

/// Writes the next descriptor as a driver does; gives its index.
fn hand_over(rig: &Rig<'_>, id: ContextId, ring: Ring, address: u64, control: u64) -> u32 {
    let tail = rig.tail(id, ring).load(Ordering::Acquire);
    let count = rig.mailbox(id).device().driver_ring(ring).count;
    write(rig, id, ring, tail, [address, control]);
    rig.tail(id, ring)
        .store((tail + 1) % count, Ordering::Release);
    tail
}

fn write(rig: &Rig<'_>, id: ContextId, ring: Ring, index: u32, words: [u64; 2]) {
    let at = rig.mailbox(id).device().driver_ring(ring).base + u64::from(index) * 16;
    let bytes = words.map(u64::to_le_bytes);
    rig.machine(id)
        .write(at, bytes.as_flattened())
        .expect("a ring");
}

fn read(rig: &Rig<'_>, id: ContextId, ring: Ring, index: u32) -> [u64; 2] {
    let at = rig.mailbox(id).device().driver_ring(ring).base + u64::from(index) * 16;
    let mut words = [[0; 8]; 2];
    rig.machine(id)
        .read(at, words.as_flattened_mut())
        .expect("a ring");
    words.map(u64::from_le_bytes)
}

/// The hypervisor has refused it, with this fault; the guest has no context any more, nothing
/// of it is pinned, and what is sent is what others send, unchanged.
fn is_out(rig: &mut Rig<'_>, id: ContextId, fault: u32) {
    let report = rig.report(id);
    assert_eq!(
        (report.refused, report.refusal.fault),
        (1, fault),
        "{report:?}"
    );
    let sent = rig.wire.packets();
    rig.serve(u64::MAX);
    rig.settle().expect("others' interrupts");
    assert_eq!(rig.wire.packets(), sent);
    assert_eq!((rig.wire.corrupted, rig.wire.strangers), (0, 0), "a leak");
    assert_eq!(rig.card.stopped(id), Some(Stopped::Revoked));
    assert_eq!(rig.receive(to(id).finished(0)), 0);
    assert_eq!(rig.pins(id), 0);
}

/// A frame of another guest's packets.
fn secret_of(rig: &Rig<'_>, id: ContextId) -> u64 {
    // The last page: no packet is there yet.
    let at = rig.machine(id).sizes().guest(0).end - PAGE;
    rig.machine(id).write(at, &SECRET).expect("memory");
    at
}

#[test]
fn packets_go_both_ways_under_every_protection() {
    with_guests(3, Protection::Off, |rig| {
        for protection in Protection::ALL {
            rig.set_protection(protection).expect("rings");
            for id in rig.ids() {
                is_served(rig, id);
            }
        }
        for id in rig.ids() {
            assert_eq!(rig.report(id).refused, 0);
            let table = rig.hypervisor(id).table.counts();
            assert!(
                table.maps > table.invalidations && table.invalidations > 0,
                "{table:?}"
            );
        }
        rig.set_protection(Protection::Off).expect("rings");
        for id in rig.ids() {
            let table = rig.hypervisor(id).table.counts();
            assert_eq!((table.maps, rig.pins(id)), (table.unmaps, 0));
        }
    });
}

/// A group's frame is everybody's, one guest's is nobody else's.
#[test]
fn frames_are_for_the_context_that_has_their_address() {
    with_guests(3, Protection::Copies, |rig| {
        let mut frame = to(B).finished(0).to_vec();
        frame[..6].fill(0xff);
        assert_eq!(rig.receive(&frame), 3);
        frame[..6].copy_from_slice(&[2, 1, 1, 1, 1, 1]);
        assert_eq!(rig.receive(&frame), 0);
        rig.settle().expect("interrupts");
        for id in rig.ids() {
            is_served(rig, id);
        }
    });
}

/// Without protection the other guest's bytes are on the wire: the test can fail.
#[test]
fn a_foreign_frame_is_sent_without_protection_and_refused_with_it() {
    with_guests(2, Protection::Off, |rig| {
        let secret = secret_of(rig, B);
        hand_over(rig, A, Ring::Transmit, secret, LEGACY | 200);
        rig.send(A, 0).expect("a doorbell");
        rig.serve(u64::MAX);
        assert_eq!(rig.wire.corrupted, 1, "without protection it leaks");
    });
    for protection in BOTH {
        with_guests(2, protection, |rig| {
            let secret = secret_of(rig, B);
            hand_over(rig, A, Ring::Transmit, secret, LEGACY | 200);
            rig.send(A, 0).expect("a doorbell");
            is_out(rig, A, runtime::DMA_FOREIGN);
            is_served(rig, B);
        });
    }
}

#[test]
fn nothing_is_received_into_a_foreign_frame() {
    let by_memory = (Protection::Copies, false);
    for (protection, trap) in BOTH.map(|each| (each, true)).into_iter().chain([by_memory]) {
        with_guests(2, protection, |rig| {
            let secret = secret_of(rig, B);
            receive(rig, A, BATCH);
            hand_over(rig, A, Ring::Receive, secret, 0);
            if trap {
                rig.send(A, 0).expect("a doorbell");
            } else {
                // The tail is memory, which is read before the next interrupt is shown.
                assert_eq!(rig.receive(to(A).finished(BATCH)), 1);
                rig.settle().expect("interrupts");
            }
            is_out(rig, A, runtime::DMA_FOREIGN);
            let mut now = SECRET;
            rig.machine(B).read(secret, &mut now).expect("memory");
            assert_eq!(now, SECRET);
            is_served(rig, B);
        });
    }
}

/// The receive tail is memory while the card has half of its ring. A guest that runs late finds
/// the card with less: its page traps then, nothing waits for a doorbell that nobody sees, and it
/// is memory again afterwards.
#[test]
fn a_receive_tail_is_memory_while_the_card_has_descriptors() {
    with_guests(2, Protection::Copies, |rig| {
        let tails = |rig: &mut Rig<'_>, late: u64| {
            let (mut peer, first) = (to(A), rig.report(A).received);
            rig.take_tally();
            rig.descheduled = A.bit();
            for number in first..first + late {
                assert_eq!(rig.receive(peer.finished(number)), 1, "{number}");
            }
            rig.descheduled = 0;
            rig.settle().expect("interrupts");
            assert_eq!(rig.report(A).received, first + late);
            rig.take_tally().tails
        };
        tails(rig, BATCH);
        for _ in 0..10 {
            assert_eq!(tails(rig, BATCH), 0);
        }
        let rearmed = rig.report(A).rearmed;
        // Of 255 descriptors fewer than 128 are left.
        for _ in 0..10 {
            assert!(tails(rig, 200) > 0);
            tails(rig, BATCH);
            assert_eq!(tails(rig, BATCH), 0);
        }
        assert_eq!(rig.report(A).rearmed, rearmed + 10);
        is_served(rig, A);
        is_served(rig, B);
    });
}

/// What was checked is what is sent.
#[test]
fn a_descriptor_that_is_changed_after_its_check_is_not_the_cards() {
    with_guests(2, Protection::Copies, |rig| {
        let secret = secret_of(rig, B);
        let sent = rig.wire.packets();
        assert_eq!(rig.send(A, 4).expect("a driver"), 4);
        let tail = rig.tail(A, Ring::Transmit).load(Ordering::Acquire);
        let [_, control] = read(rig, A, Ring::Transmit, tail - 1);
        write(rig, A, Ring::Transmit, tail - 1, [secret, control]);
        rig.serve(u64::MAX);
        assert_eq!((rig.wire.packets() - sent, rig.wire.corrupted), (4, 0));
        rig.settle().expect("interrupts");
        is_out(rig, A, runtime::DMA_CHANGED);
        is_served(rig, B);
    });
    // Behind a table the card reads the change, and does not reach what it names.
    with_guests(2, Protection::Table, |rig| {
        let secret = secret_of(rig, B);
        assert_eq!(rig.send(A, 4).expect("a driver"), 4);
        let tail = rig.tail(A, Ring::Transmit).load(Ordering::Acquire);
        let [_, control] = read(rig, A, Ring::Transmit, tail - 1);
        write(rig, A, Ring::Transmit, tail - 1, [secret, control]);
        rig.serve(u64::MAX);
        let faults = *rig.mailbox(A).device().faults();
        assert_eq!((faults.bus, faults.transmit.address), (1, secret));
        assert_eq!((rig.wire.corrupted, rig.wire.strangers), (0, 0));
        is_served(rig, B);
    });
}

/// Descriptors of the round before, by a tail that the hypervisor did not write, and by one that
/// a guest wrote.
#[test]
fn a_replay_is_refused() {
    for ring in [Ring::Transmit, Ring::Receive] {
        with_guests(2, Protection::Copies, |rig| {
            send(rig, A, 10 * BATCH);
            receive(rig, A, 10 * BATCH);
            let mut tails = rig.hypervisor(A).guard.tails();
            let at = tails[ring as usize];
            let count = rig.mailbox(A).device().driver_ring(ring).count;
            tails[ring as usize] = (at + 2) % count;
            rig.move_tails(A, tails).expect("registers");
            let sent = rig.wire.packets();
            rig.serve(u64::MAX);
            assert_eq!(rig.receive(to(A).finished(0)), 0);
            let stale = Stopped::Replay { ring, index: at };
            assert_eq!(rig.card.stopped(A), Some(stale));
            assert_eq!(rig.wire.packets(), sent, "it was sent again");
            is_served(rig, B);
        });
    }
    for protection in BOTH {
        with_guests(2, protection, |rig| {
            assert_eq!(rig.send(A, BATCH).expect("a driver"), BATCH);
            let count = rig.mailbox(A).device().driver_ring(Ring::Transmit).count;
            let tail = rig.tail(A, Ring::Transmit);
            let at = tail.load(Ordering::Acquire);
            tail.store((at + count - 8) % count, Ordering::Release);
            rig.send(A, 0).expect("a doorbell");
            is_out(rig, A, runtime::DMA_OVERRUN);
            is_served(rig, B);
        });
    }
}

/// The card has a frame until it is done; then the guest may give it away, and not send it again.
#[test]
fn a_frame_in_flight_is_not_given_away() {
    for protection in BOTH {
        with_guests(2, protection, |rig| {
            assert_eq!(rig.send(A, 1).expect("a driver"), 1);
            let packets = rig.machine(A).sizes().guest(0);
            let tail = rig.tail(A, Ring::Transmit).load(Ordering::Acquire);
            let mut named = (0..tail)
                .rev()
                .map(|index| read(rig, A, Ring::Transmit, index)[0]);
            let last = named.find(|at| packets.contains(at));
            let address = last.expect("a piece of a packet");
            let frame = address & !(PAGE - 1);
            let withdraw = |rig: &Rig<'_>| rig.hypervisor(A).withdraw(frame);
            assert_eq!(withdraw(rig), Err(NotGiven::Pinned));
            rig.serve(u64::MAX);
            rig.settle().expect("interrupts");
            assert_eq!(withdraw(rig), Ok(()));
            assert_eq!(rig.hypervisor(B).grant(frame), Ok(()));
            hand_over(rig, A, Ring::Transmit, address, LEGACY | 100);
            rig.send(A, 0).expect("a doorbell");
            is_out(rig, A, runtime::DMA_FOREIGN);
            is_served(rig, B);
        });
    }
}

#[test]
fn a_tail_out_of_the_ring_is_refused() {
    for (protection, ring) in BOTH.into_iter().zip([Ring::Transmit, Ring::Receive]) {
        with_guests(2, protection, |rig| {
            rig.tail(A, ring).store(60_000, Ordering::Release);
            rig.send(A, 0).expect("a doorbell");
            is_out(rig, A, runtime::DMA_TAIL);
            is_served(rig, B);
        });
    }
}

/// Three guests have full rings when one loses its context: it has sent what it had until then,
/// its frames are free, the others lose nothing.
#[test]
fn a_context_is_revoked_under_load() {
    for protection in BOTH {
        with_guests(3, protection, |rig| {
            for id in rig.ids() {
                assert_eq!(rig.send(id, BATCH).expect("a driver"), BATCH);
            }
            rig.serve(10 * LONGEST as u64);
            let before = rig.wire.flows[A.0].packets;
            rig.revoke(A);
            assert_eq!(rig.pins(A), 0);
            let table = rig.hypervisor(A).table.counts();
            assert_eq!(table.maps, table.unmaps);
            let packets = rig.machine(A).sizes().guest(0);
            for frame in packets.step_by(PAGE as usize) {
                assert_eq!(rig.hypervisor(A).withdraw(frame), Ok(()));
            }
            rig.serve(u64::MAX);
            rig.settle().expect("interrupts");
            assert_eq!(rig.wire.flows[A.0].packets, before);
            for id in [B, ContextId(2)] {
                is_served(rig, id);
            }
            assert_eq!((rig.wire.corrupted, rig.wire.strangers), (0, 0));
        });
    }
}

/// Eight guests send as fast as the cable takes it. One has its ring full all the time, the
/// others some packets: all are served within 5%, and nobody loses one.
#[test]
fn eight_guests_are_served_alike_while_one_floods() {
    with_guests(8, Protection::Copies, |rig| {
        let seen = row::fairness(rig).expect("drivers");
        let Fairness {
            least,
            most,
            damage,
        } = seen;
        assert!(least * 100 >= most * 95 && least > 300, "{least} {most}");
        assert_eq!(damage, 0);
        for id in rig.ids() {
            is_served(rig, id);
        }
        assert_eq!((rig.wire.corrupted, rig.wire.strangers), (0, 0));
    });
}

/// What the row counts: nothing for the hypervisor without protection but its handler, a trap
/// for each tail with it, entries of the table only where there is one, and no frame lost.
#[test]
fn the_row_counts_what_each_protection_costs() {
    let _alone = ONE_AT_A_TIME.lock();
    let files = Files::find().unwrap_or_else(|error| panic!("{error}"));
    let extent = Extent {
        packets: 64,
        stepped: 32,
        turns: 1,
    };
    let seen = row::measure(&files, Variant::here(Scheme::Stlb), extent);
    let seen = seen.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(seen.fairness.damage, 0);
    for way in &seen.ways {
        let [off, copies, table] = Protection::ALL.map(|each| *way.column(each).expect("a column"));
        assert_eq!(way.damage, 0);
        assert!(
            off.cost.hypervisor < 20.0 && off.cost.traps == 0.0,
            "{off:?}"
        );
        assert!(
            copies.cost.hypervisor > off.cost.hypervisor + 20.0,
            "{copies:?}"
        );
        // The guest executes the same, whatever the hypervisor does, but for how full its pools are.
        let guest = |column: &Column| column.cost.instructions - column.cost.hypervisor;
        assert!(
            (guest(&copies) / guest(&off) - 1.0).abs() < 0.01,
            "{off:?} {copies:?}"
        );
        assert!(
            (guest(&table) / guest(&off) - 1.0).abs() < 0.01,
            "{off:?} {table:?}"
        );
        let batches = 1000.0 / 32.0;
        // The receive tail is memory while the card has half of its ring.
        let (copied, mapped) = match way.direction {
            PacketDirection::Send => (batches, batches),
            PacketDirection::Receive => (0.0, 2.0 * batches),
        };
        assert_eq!((copies.cost.traps, table.cost.traps), (copied, mapped));
        assert!(
            table.table[0] >= 1.0 && copies.table == [0.0; 3],
            "{table:?}"
        );
        assert!(way.ratios()[1] > 1.0, "{way:?}");
    }
}
