//! Both instances of the driver at once, on the same rings under the same locks:
//! the hypervisor instance sends and receives for guests, while dom0 sends
//! natively and does its rare work (paper, 4.4).

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};

use e1000_sim::dom0::interface::{Info, ReceiveMode};
use e1000_sim::dom0::{CommandError, Dom0};
use e1000_sim::image::Module;
use e1000_sim::inject::service::{FRAME, Service};
use e1000_sim::memory::Owner;
use e1000_sim::packets::rings::{Request, Rings};
use e1000_sim::packets::round::{PEER, guest_mac};
use e1000_sim::system::System;
use e1000_sim::traffic::source::{Shape, TrafficSource};
use e1000_sim::traffic::{Flow, Sink};
use e1000_sim::transport::command::Command;
use e1000_sim::transport::mailbox::InterruptOwner;
use e1000_sim::transport::rendezvous::Limits;

#[path = "common/system.rs"]
mod system;

use system::with_system;

const GUESTS: u32 = 2;
/// dom0 sends as flow number:
const DOM0_FLOW: u32 = GUESTS;
/// Times that dom0 goes round its work at least, and until it has sent more packets than that: where
/// the other instance has the lock or the ring, it sends none.
const ROUNDS: u32 = 60;
/// Times at the most.
const MOST_ROUNDS: u32 = 100 * ROUNDS;
/// Packets of dom0's a round.
const NATIVE: u32 = 8;
/// Packets of each guest, each way, a turn.
const TURN: u32 = 16;

fn limits() -> Limits {
    Limits::of_seconds(30)
}

/// dom0's work, concurrent with the hypervisor instance.
struct Beside<'r, 's> {
    dom0: &'r mut Dom0<'s, 's>,
    info: Info,
    watchdog: (u64, u64),
    source: TrafficSource<'s>,
    rings: Rings,
    /// dom0's frames, and guests' frames that its doorbells sent.
    wire: Sink,
    sent: u64,
}

impl Beside<'_, '_> {
    fn go_rounds(&mut self) -> Result<(), CommandError> {
        for round in 0..MOST_ROUNDS {
            if round >= ROUNDS && self.sent > u64::from(ROUNDS) {
                break;
            }
            self.go_round(round)?;
        }
        Ok(())
    }

    fn go_round(&mut self, round: u32) -> Result<(), CommandError> {
        self.dom0.tick(1_000_000)?;
        self.run_watchdog()?;
        let names = self.dom0.ethtool_statistics()?;
        assert!(names.iter().any(|(name, _)| name == "tx_packets"));
        let groups = [[0x01, 0, 0x5e, 0, 0, round as u8]];
        self.dom0
            .set_receive_mode(ReceiveMode::Promiscuous, &groups)?;
        self.transmit()
    }

    /// Runs the watchdog's work at once: on the card's clock it is due every two
    /// seconds, and packets being sent would seem to hang.
    fn run_watchdog(&mut self) -> Result<(), CommandError> {
        let (function, work) = self.watchdog;
        let arguments = [work, 0, 0, 0, 0, 0];
        let call = Command::Call {
            function,
            arguments,
        };
        self.dom0.command("e1000_watchdog", call).map(drop)
    }

    fn transmit(&mut self) -> Result<(), CommandError> {
        let mark = self.dom0.mailbox().wire.mark();
        let mut request = Request::default();
        let packets: Vec<_> = (0..NATIVE).map_while(|_| self.source.prepare()).collect();
        for (index, packet) in packets.iter().enumerate() {
            self.source.describe(packet, &mut request);
            self.rings.put(index, &request);
        }
        let arguments = [self.info.net_device, 0, packets.len() as u64];
        let accepted = self.dom0.call("hot_transmit", &arguments)?.value as u32 as usize;
        for packet in packets.iter().skip(accepted).rev() {
            self.source.cancel(packet);
        }
        self.sent += accepted as u64;
        let frames = self.dom0.mailbox().wire.since(mark);
        let frames = frames.expect("the wire's memory holds a round");
        frames.iter().for_each(|frame| self.wire.take(frame));
        while let Some(done) = self.rings.completion() {
            self.source.complete(done.cookie);
        }
        Ok(())
    }
}

/// Function and work of the driver's watchdog: the adapter has a work whose
/// function it is; `func` lies 24 bytes into `struct work_struct`.
fn watchdog(system: &System<'_>) -> (u64, u64) {
    let plan = &system.blueprint().plan;
    let view = plan.view(system.machine());
    let function = plan
        .symbol_in(Module::Driver, "e1000_watchdog")
        .expect("the stock driver's");
    let start = system.info.netdev_priv;
    let has = |at: &u64| {
        let mut word = [0; 8];
        view.read(*at, &mut word).is_some() && u64::from_le_bytes(word) == function
    };
    let mut places = (start..start + 0x9b0).step_by(8);
    let at = places.find(has).expect("the adapter has its work");
    (function, at - 24)
}

fn beside<'r, 's>(system: &'r mut System<'s>) -> Beside<'r, 's> {
    let machine = system.machine();
    let flow = Flow {
        number: DOM0_FLOW,
        source: guest_mac(DOM0_FLOW),
        destination: PEER,
    };
    // dom0 sends its own memory: a guest's has to be pinned by a packet of the guest's.
    let memory = machine.sizes().guest(DOM0_FLOW);
    let given = machine
        .frames()
        .give(&memory, Owner::Guest(DOM0_FLOW), Owner::Dom0);
    assert_eq!(given, Ok(()));
    let flows = DOM0_FLOW as usize + 1;
    let plan = &system.blueprint().plan;
    let dom0_memory = system.memory();
    let hot_shared = plan.symbol("hot_shared").expect("hot.o's");
    Beside {
        watchdog: watchdog(system),
        info: system.info,
        source: TrafficSource::new(machine, flow, memory, Shape::Frames(FRAME), flows),
        rings: Rings::new(&dom0_memory, hot_shared, 0).expect("CPU 0's rings"),
        wire: Sink::new(flows),
        sent: 0,
        dom0: &mut system.dom0,
    }
}

/// The hypervisor's side until dom0 is done; how many frames were asked for.
fn serve(service: &mut Service<'_>, done: &AtomicBool) -> u64 {
    let mut turns = 0;
    while !done.load(Ordering::Acquire) || turns < 50 {
        let exchanged = service.exchange(0..GUESTS as usize, TURN);
        exchanged.unwrap_or_else(|stop| panic!("after {turns} turns: {stop}"));
        turns += 1;
    }
    turns * u64::from(TURN)
}

#[test]
fn both_instances_share_rings_and_locks() {
    with_system(&HashSet::new(), limits(), |mut system| {
        let engine = system
            .twin(limits())
            .unwrap_or_else(|error| panic!("{error}"));
        // One flow more than guests: dom0's frames are no strangers.
        let mut service =
            Service::start(&system, engine, GUESTS).unwrap_or_else(|error| panic!("{error}"));
        service.packet_loop.card.leave();
        service.packet_loop.card = system.card(GUESTS + 1).expect("the card");
        together(&mut system, &mut service);
        deferred(&system, &mut service);
        system.mailbox().set_interrupt_owner(InterruptOwner::Dom0);
    });
}

fn together<'s>(system: &mut System<'s>, service: &mut Service<'s>) {
    let done = AtomicBool::new(false);
    let beside = beside(system);
    let (turns, beside) = std::thread::scope(|scope| {
        let done = &done;
        let dom0 = Sendable(beside);
        let thread = scope.spawn(move || {
            let mut dom0 = dom0;
            let worked = dom0.beside().go_rounds();
            done.store(true, Ordering::Release);
            worked.map(|()| dom0)
        });
        let turns = serve(service, done);
        let dom0 = thread.join().expect("no panic");
        (turns, dom0.unwrap_or_else(|error| panic!("{error}")).0)
    });
    // Packets that were put off, or are being sent.
    service.exchange(0..GUESTS as usize, 1).expect("a turn");
    let turns = turns + 1;
    check_sent(service, &beside, turns);
    check_received(service, turns);
    let upcalls = service.packet_loop.engine.engine.twin.instance.upcalls();
    assert_eq!(upcalls, [], "steady state makes no upcalls");
    eprintln!(
        "{turns} packets a guest each way, {} of dom0's, {} deferred",
        beside.sent, service.packet_loop.deferred
    );
}

/// Every frame of each sender was on the wire, whichever doorbell sent it.
fn check_sent(service: &Service<'_>, beside: &Beside<'_, '_>, turns: u64) {
    let sinks = [&service.packet_loop.card.sent, &beside.wire];
    for sink in sinks {
        assert_eq!((sink.corrupted, sink.strangers), (0, 0), "{:?}", sink.first);
    }
    let of = |flow: u32| -> u64 { sinks.iter().map(|s| s.flows[flow as usize].packets).sum() };
    let [first, second] = &service.sources[..] else {
        panic!("{GUESTS} guests");
    };
    assert_eq!(first.sent + second.sent, turns * u64::from(GUESTS));
    let wanted = [first.sent, second.sent, beside.sent];
    assert_eq!([of(0), of(1), of(DOM0_FLOW)], wanted);
    assert!(beside.sent > u64::from(ROUNDS), "dom0 hardly sent");
}

/// Every frame that the card stored came to its guest.
fn check_received(service: &Service<'_>, turns: u64) {
    let sinks = service.sources.iter().map(|e| &e.received);
    let mut arrived = 0;
    for sink in sinks {
        assert_eq!((sink.corrupted, sink.strangers), (0, 0), "{:?}", sink.first);
        arrived += sink.packets();
    }
    let not_stored = service.packet_loop.card.not_stored;
    assert_eq!(arrived + not_stored, turns * u64::from(GUESTS));
    assert_eq!(
        not_stored, 0,
        "{:?}",
        service.packet_loop.card.first_refusal
    );
}

/// While dom0 has its virtual interrupts disabled, the handler does not run.
fn deferred(system: &System<'_>, service: &mut Service<'_>) {
    let plan = &system.blueprint().plan;
    let view = plan.view(system.machine());
    let word = |name| {
        let at = plan.percpu_symbol(name, 0).expect("hot.o's");
        view.word32(at).expect("percpu data")
    };
    let (enabled, pending) = (word("hot_vif"), word("hot_vif_pending"));
    let before = service.packet_loop.deferred;
    let received = |service: &Service<'_>| service.sources[0].received.packets();
    let arrived = received(service);
    enabled.store(0, Ordering::SeqCst);
    pending.store(0, Ordering::SeqCst);
    let exchanged = service.exchange(0..1, 5).expect("nothing runs");
    assert!(service.packet_loop.deferred > before, "not deferred");
    assert_eq!(pending.load(Ordering::SeqCst), 1);
    assert_eq!(received(service), arrived, "the handler ran");
    assert_eq!(exchanged.lost, 5);
    enabled.store(1, Ordering::SeqCst);
    service.exchange(0..1, 1).expect("it serves");
    assert_eq!(received(service), arrived + 6, "what was put off came");
}

/// Goes to the thread that drives dom0, and is used there alone.
struct Sendable<'r, 's>(Beside<'r, 's>);

// SAFETY: what keeps it from being `Send` is the rings' pointers into the
// machine's memory, which all threads have mapped at one address for as long as
// the machine lives; one thread at a time uses them, because the value is moved.
unsafe impl Send for Sendable<'_, '_> {}

impl<'r, 's> Sendable<'r, 's> {
    fn beside(&mut self) -> &mut Beside<'r, 's> {
        &mut self.0
    }
}
