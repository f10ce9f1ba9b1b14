//! The stage `ack`: the card's interrupt is acknowledged and masked when it comes, and the
//! unmodified driver's handler gets each cause once, later. None is lost, whatever happens in
//! between, and no handler runs for nothing.

use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, Ordering};

use e1000_sim::engines::twin::{TwinEngine, VirtualInterrupts};
use e1000_sim::inject::recovery::{Mended, Quiet, Recovery};
use e1000_sim::inject::service::{Exchanged, Service};
use e1000_sim::live::early_ack::{Held, Load, Order, Prices, Taken, run};
use e1000_sim::live::price::{QUOTED, sample};
use e1000_sim::live::rig::Rig;
use e1000_sim::live::rows::with_rig;
use e1000_sim::memory::Machine;
use e1000_sim::nic::CardMask;
use e1000_sim::packets::packet_loop::{Card, Engine, Stop};
use e1000_sim::packets::round::{PEER, PacketDirection, guest_mac};
use e1000_sim::stages::ack::AckCounts;
use e1000_sim::stages::{Stage, Stages};
use e1000_sim::system::System;
use e1000_sim::traffic::{Datagrams, Flow};
use e1000_sim::transport::rendezvous::Limits;
use process_lab::program::Scheme;

#[path = "common/abort.rs"]
mod abort;
#[path = "common/system.rs"]
mod system;
#[path = "common/turn.rs"]
mod turn;

use abort::{Abort, host_receive};
use system::child::in_child;
use system::{each_alone, with_changed, with_system};

const ITR: usize = 0xc4;
const ICS: usize = 0xc8;
const LSC: u32 = 1 << 2;
const SIZE: usize = 1000;

fn limits() -> Limits {
    Limits::of_seconds(60)
}

fn frames(guest: u32) -> Datagrams {
    let flow = Flow {
        number: guest,
        source: PEER,
        destination: guest_mac(guest),
    };
    Datagrams::new(flow, SIZE)
}

/// A register of the card, as memory.
fn register(machine: &Machine, offset: usize) -> &AtomicU32 {
    // SAFETY: the card's registers, mapped as long as the machine, are words.
    unsafe { &*machine.bar().cast::<AtomicU32>().add(offset / 4) }
}

fn service<'s>(system: &System<'s>, engine: TwinEngine<'s>) -> Service<'s> {
    let service = Service::staged(system, engine, 1, Stages::of([Stage::Ack]));
    service.unwrap_or_else(|error| panic!("{error}"))
}

fn started<'s>(system: &System<'s>) -> Service<'s> {
    let engine = system.twin(limits());
    service(system, engine.unwrap_or_else(|error| panic!("{error}")))
}

fn counts(service: &Service<'_>) -> AckCounts {
    let counts = service.packet_loop.engine.engine.counts();
    counts.ack.expect("the stage is on")
}

/// Handlers that had something to do: each lists the driver's poll.
fn scheduled(service: &Service<'_>) -> u64 {
    let engine = &service.packet_loop.engine.engine.twin;
    engine.counter("scheduled").expect("a counter")
}

fn received(service: &mut Service<'_>) -> u64 {
    let packet_loop = &mut service.packet_loop;
    let delivered = packet_loop.engine.deliver(&mut service.sources);
    delivered.unwrap_or_else(|stop| panic!("{stop}"));
    service.sources[0].check();
    assert_eq!(service.sources[0].received.corrupted, 0);
    service.sources[0].received.packets()
}

type Test = fn(&System<'_>);

#[test]
fn causes_wait_for_the_handler() {
    let _turn = turn::turn();
    let tests: [(&str, Test); 4] = [
        ("packets both ways", no_handler_for_nothing),
        ("the flag held by dom0", flag_held),
        ("a frame during the handler", frame_during_the_handler),
        ("a link change during the handler", link_during_the_handler),
    ];
    each_alone(Scheme::Stlb, limits, &tests, |system, test| test(system));
}

/// Each handler has causes, and each line that rose is acknowledged early.
fn no_handler_for_nothing(system: &System<'_>) {
    let mut service = started(system);
    let rises = || system.mailbox().device().interrupts();
    let (before, listed) = (rises(), scheduled(&service));
    for _ in 0..50 {
        let exchanged = service.exchange(0..1, 24).expect("it serves");
        assert_eq!(exchanged, Exchanged::default());
    }
    let seen = counts(&service);
    assert!(seen.early >= 50, "{seen:?}");
    assert_eq!(seen.early, rises() - before, "{seen:?}");
    assert_eq!(seen.handed, scheduled(&service) - listed, "{seen:?}");
    assert_eq!((seen.joined, seen.put_off), (0, 0));
}

fn flag_held(system: &System<'_>) {
    let mut service = started(system);
    // So much that the kernel's limit of queued bytes lets ten packets go that nobody completes.
    for _ in 0..20 {
        let exchanged = service.exchange(0..1, 32).expect("it serves");
        assert_eq!(exchanged, Exchanged::default());
    }
    let flag: VirtualInterrupts<'_> = service.packet_loop.engine.engine.twin.virtual_interrupts();
    assert_eq!(service.exchange(0..1, 3).expect("it serves").lost, 0);
    let before = counts(&service);
    let (had, listed) = (received(&mut service), scheduled(&service));
    flag.pending.store(0, Ordering::SeqCst);
    flag.enabled.store(0, Ordering::SeqCst);
    service.exchange(0..1, 5).expect("nothing runs");
    let rises = system.mailbox().device().interrupts();
    // The line is low: nothing is taken again, whatever else comes.
    service.exchange(0..1, 5).expect("nothing runs");
    assert!(!service.packet_loop.card.interrupt(), "it was acknowledged");
    assert_eq!(system.mailbox().device().interrupts(), rises);
    assert_eq!(received(&mut service), had, "the handler ran");
    assert_eq!(flag.pending.load(Ordering::SeqCst), 1);
    let held = counts(&service);
    assert_eq!(held.early, before.early + 1, "{held:?}");
    assert_eq!(held.handed, before.handed, "{held:?}");
    assert!(held.put_off > 1, "{held:?}");
    // Who allows it gets all of it, by one handler.
    flag.enabled.store(1, Ordering::SeqCst);
    let loop_ = &mut service.packet_loop;
    assert_eq!(loop_.engine.interrupt(&mut loop_.card), Ok(true));
    assert_eq!(counts(&service).handed, before.handed + 1);
    assert_eq!(scheduled(&service), listed + 1);
    assert_eq!(received(&mut service), had + 10);
    assert_eq!(service.exchange(0..1, 8).expect("it serves").lost, 0);
}

/// The card, to which something happens when the handler has run.
struct During<'c, F> {
    card: &'c mut dyn Card,
    happens: Option<F>,
}

impl<F: FnOnce(&mut dyn Card)> Card for During<'_, F> {
    fn absorb_writes(&mut self, handler_ran: bool) -> Result<(), Stop> {
        let happens = if handler_ran {
            self.happens.take()
        } else {
            None
        };
        if let Some(happens) = happens {
            happens(self.card);
        }
        self.card.absorb_writes(handler_ran)
    }

    fn acknowledge(&mut self, mask: CardMask) -> Result<u32, Stop> {
        self.card.acknowledge(mask)
    }

    fn show_causes(&mut self, causes: u32) {
        self.card.show_causes(causes);
    }

    fn send(&mut self) {
        self.card.send();
    }

    fn receive(&mut self, frame: &[u8]) -> bool {
        self.card.receive(frame)
    }

    fn interrupt(&self) -> bool {
        self.card.interrupt()
    }

    fn wait(&mut self) -> bool {
        self.card.wait()
    }
}

/// An interrupt for a frame, during whose handler that happens.
fn interrupt_during(service: &mut Service<'_>, happens: impl FnOnce(&mut dyn Card)) {
    let packet_loop = &mut service.packet_loop;
    assert!(packet_loop.card.receive(frames(0).finished(0)));
    while !packet_loop.card.interrupt() {
        assert!(packet_loop.card.wait(), "its timers bring the interrupt");
    }
    let mut card = During {
        card: &mut packet_loop.card,
        happens: Some(happens),
    };
    assert_eq!(packet_loop.engine.interrupt(&mut card), Ok(true));
    assert!(card.happens.is_none(), "the handler ran");
}

/// The poll takes it, and no interrupt follows that would find nothing.
fn frame_during_the_handler(system: &System<'_>) {
    let mut service = started(system);
    assert_eq!(service.exchange(0..1, 3).expect("it serves").lost, 0);
    let (before, had) = (counts(&service), received(&mut service));
    interrupt_during(&mut service, |card| {
        assert!(card.receive(frames(0).finished(1)));
        // Long enough for delays and throttle: only the mask keeps the line low.
        while card.wait() {}
    });
    let card = &service.packet_loop.card;
    card.tick(20_000_000);
    assert!(!card.interrupt() && !service.packet_loop.engine.causes_wait());
    let seen = counts(&service);
    assert_eq!(seen.handed, before.handed + 1, "{seen:?}");
    assert_eq!(seen.polled, before.polled + 1, "{seen:?}");
    assert_eq!(received(&mut service), had + 2);
    // The numbers of its frames begin anew, so some of those are missing: not lost by the path.
    assert_eq!(service.exchange(0..1, 3).expect("it serves").damaged, 0);
}

/// No poll looks for it: another handler gets it.
fn link_during_the_handler(system: &System<'_>) {
    let mut service = started(system);
    assert_eq!(service.exchange(0..1, 3).expect("it serves").lost, 0);
    let before = counts(&service);
    let machine = system.machine();
    interrupt_during(&mut service, |_| {
        register(machine, ICS).store(LSC, Ordering::SeqCst);
    });
    assert!(service.packet_loop.engine.causes_wait(), "it waits");
    assert_eq!(counts(&service).handed, before.handed + 1);
    let packet_loop = &mut service.packet_loop;
    assert_eq!(
        packet_loop.engine.interrupt(&mut packet_loop.card),
        Ok(true)
    );
    assert!(!packet_loop.engine.causes_wait(), "once");
    assert_eq!(counts(&service).handed, before.handed + 2);
    assert_eq!(service.exchange(0..1, 3).expect("it serves").damaged, 0);
}

/* ---- A driver that is stopped between acknowledgement and poll ----------------- */

#[test]
fn a_driver_that_is_stopped_between_acknowledgement_and_poll() {
    let _turn = turn::turn();
    in_child("stopped", stopped_in_between);
}

fn stopped_in_between() {
    with_system(&HashSet::new(), limits(), |mut system| {
        let quiet = Quiet::note(&system);
        let engine = system.twin_with(limits(), host_receive);
        let mut service = service(&system, engine.expect("an instance"));
        for round in 0..8 {
            let packet_loop = &mut service.packet_loop;
            assert!(packet_loop.card.receive(frames(0).finished(round)));
            packet_loop.card.tick(20_000_000);
            let engine = &mut packet_loop.engine;
            let acknowledged = engine.engine.acknowledge(&mut packet_loop.card);
            assert_eq!(acknowledged, Ok(()));
            assert!(engine.causes_wait() && !packet_loop.card.interrupt());
            // Either the poll that would have served the causes is aborted, or they never get so
            // far, because dom0 resets the driver while they wait.
            if round % 2 == 0 {
                Abort::Once.set();
                let stopped = engine.interrupt(&mut packet_loop.card);
                assert!(stopped.is_err(), "round {round}");
                assert!(engine.engine.twin.take_stopped().is_some());
            }
            let mut recovery = Recovery {
                system: &mut system,
                service: &mut service,
                quiet: &quiet,
                start: limits(),
                limits: limits(),
            };
            assert_eq!(recovery.mend(), Ok((Mended::Reset, None)), "round {round}");
            assert!(!service.packet_loop.engine.causes_wait());
            let exchanged = service.exchange(0..1, 64).expect("it serves");
            assert_eq!(exchanged, Exchanged::default(), "round {round}");
        }
    });
}

/* ---- With a clock --------------------------------------------------------------- */

#[test]
fn with_a_clock() {
    let _turn = turn::turn();
    in_child("clocked", clocked);
}

fn clocked() {
    with_changed(
        Scheme::Stlb,
        |plan| plan.with_driver_args("InterruptThrottleRate=0"),
        limits(),
        |system| {
            with_rig(&system, limits(), |rig| {
                rig.let_it_interrupt();
                rig.settle().unwrap_or_else(|stop| panic!("{stop}"));
                off_as_before(rig);
                switched_off_while_causes_wait(rig);
                throttle_written_meanwhile(system.machine(), rig);
                orders(rig);
                Ok(())
            })
            .unwrap_or_else(|error| panic!("{error}"));
        },
    );
}

fn set(rig: &mut Rig<'_>, ack: bool) {
    let others = rig.engine.stages().list();
    let others = others.filter(|stage| *stage != Stage::Ack);
    let stages = Stages::of(others.chain(ack.then_some(Stage::Ack)));
    rig.engine.set_stages(stages);
}

/// The stage that was on leaves no instruction behind, and has no counts. The least of some samples
/// is one in which the driver fills no ring. The first samples of all are not counted: the
/// driver's second packet takes two instructions fewer than each later one.
fn off_as_before(rig: &mut Rig<'_>) {
    let mut least_of_some = |ack| {
        set(rig, ack);
        assert_eq!(rig.engine.counts().ack.is_some(), ack);
        let samples = (0..20).map(|_| sample(rig, 1, 1).unwrap_or_else(|stop| panic!("{stop}")));
        let least = samples.map(|sample| sample.interrupt).min();
        least.expect("samples")
    };
    least_of_some(false);
    let counted = [false, true, false].map(least_of_some);
    let [off, on, again] = counted;
    assert_eq!(off, again, "{counted:?}");
    assert!((off..off + 400).contains(&on), "{counted:?}");
}

fn switched_off_while_causes_wait(rig: &mut Rig<'_>) {
    set(rig, true);
    let had = rig.received(0);
    rig.arrive(0);
    rig.acknowledge().unwrap_or_else(|stop| panic!("{stop}"));
    set(rig, false);
    assert!(!rig.line() && rig.engine.causes_wait());
    assert_eq!(rig.interrupt(), Ok(true));
    assert!(!rig.engine.causes_wait());
    rig.settle().unwrap_or_else(|stop| panic!("{stop}"));
    assert_eq!(rig.received(0), had + 1);
}

/// The interval holds from the next interrupt on (13.4.18), and what waits is not lost.
fn throttle_written_meanwhile(machine: &Machine, rig: &mut Rig<'_>) {
    const INTERVAL: u32 = 100;
    const NS: u64 = 256;
    set(rig, true);
    let had = rig.received(0);
    rig.arrive(0);
    rig.acknowledge().unwrap_or_else(|stop| panic!("{stop}"));
    register(machine, ITR).store(INTERVAL, Ordering::SeqCst);
    assert_eq!(rig.interrupt(), Ok(true));
    rig.arrive(0);
    assert!(rig.line(), "the next interrupt is not held back");
    assert_eq!(rig.interrupt(), Ok(true));
    rig.arrive(0);
    assert!(!rig.line(), "the one after it is");
    assert_eq!(rig.card_event(), Some(u64::from(INTERVAL) * NS));
    rig.tick(u64::from(INTERVAL) * NS);
    assert!(rig.line());
    register(machine, ITR).store(0, Ordering::SeqCst);
    assert_eq!(rig.interrupt(), Ok(true));
    rig.settle().unwrap_or_else(|stop| panic!("{stop}"));
    assert_eq!(rig.received(0), had + 3);
    set(rig, false);
}

fn by_order(rig: &mut Rig<'_>, prices: &Prices, load: Load) -> [Taken; 3] {
    let orders = Order::ALL.map(|order| {
        let taken = run(rig, prices, &QUOTED, load, order);
        let taken = taken.unwrap_or_else(|stop| panic!("{order:?}: {stop}"));
        assert_eq!(taken.damage, 0, "{order:?} {taken:?}");
        assert_eq!(taken.packets, load.packets, "{order:?} {taken:?}");
        Taken {
            measured_cycles: 0,
            ..taken
        }
    });
    let [late, early, native] = orders;
    assert_eq!((early.again, native.again), (0, 0));
    assert!(early.interrupts <= native.interrupts, "{load:?} {orders:?}");
    assert!(
        late.interrupts >= 2 * early.interrupts,
        "{load:?} {orders:?}"
    );
    orders
}

/// Twice as many interrupts as natively without the stage, at most as many with it; the same each
/// time; and while dom0 keeps handlers waiting, one interrupt with it and a storm without.
fn orders(rig: &mut Rig<'_>) {
    let prices = Prices::count(rig).unwrap_or_else(|stop| panic!("{stop}"));
    let load = Load {
        guests: 1,
        direction: PacketDirection::Send,
        packets: 256,
        interval: 20_000,
        held: None,
    };
    assert_eq!(by_order(rig, &prices, load), by_order(rig, &prices, load));
    by_order(
        rig,
        &prices,
        Load {
            direction: PacketDirection::Receive,
            ..load
        },
    );
    let held = Load {
        guests: 3,
        direction: PacketDirection::Receive,
        held: Some(Held {
            period: 1_000_000,
            length: 100_000,
        }),
        ..load
    };
    let [late, early, _] = by_order(rig, &prices, held);
    assert!(late.interrupts > 3 * early.interrupts, "{late:?} {early:?}");
    assert!(late.cycles > early.cycles);
}
