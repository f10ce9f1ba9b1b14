//! A guest sends only its own frames: a packet that names another's is refused and
//! counted, is not on the wire, and costs the other guests nothing.

use std::collections::HashSet;
use std::ops::Range;

use e1000_sim::engines::twin::TwinEngine;
use e1000_sim::memory::{Machine, NotGiven, Owner, PAGE};
use e1000_sim::nic::Wire;
use e1000_sim::packets::packet_loop::{Card, Engine};
use e1000_sim::packets::rings::{Fragment, Request, Sent};
use e1000_sim::packets::round::Runner;
use e1000_sim::system::System;
use e1000_sim::traffic::source::{Shape, TrafficSource};
use e1000_sim::transport::rendezvous::Limits;
use e1000_sim::transport::wire::MachineBus;

#[path = "common/system.rs"]
mod system;

use system::with_system;

const FRAME: usize = 1000;
/// Guests: an honest one, one that lies, and the owner of the memory that it names.
const HONEST: usize = 0;
const LIAR: usize = 1;
const VICTIM: u32 = 2;
const GUESTS: u32 = 3;
/// The byte that fills the victim's memory.
const SECRET: u8 = 0xa5;

fn limits() -> Limits {
    Limits::of_seconds(30)
}

/// Frames as they are on the cable.
#[derive(Default)]
struct Cable(Vec<Vec<u8>>);

impl Wire for Cable {
    fn transmit(&mut self, frame: &[u8]) {
        self.0.push(frame.to_vec());
    }
}

type Guests<'s> = Runner<'s, TwinEngine<'s>>;

fn runner<'s>(system: &System<'s>) -> Guests<'s> {
    let engine = system
        .twin(limits())
        .unwrap_or_else(|error| panic!("{error}"));
    system
        .twin_runner(engine, GUESTS, Shape::Frames(FRAME))
        .unwrap_or_else(|error| panic!("{error}"))
}

/// The frames that the card sends now.
fn cable(system: &System<'_>) -> Vec<Vec<u8>> {
    let dma = system.blueprint().plan.space().dma();
    let mut cable = Cable::default();
    let mut device = system.mailbox().device();
    let mut bus = MachineBus::new(system.machine(), dma).for_device(&device);
    device.process_transmit(&mut bus, &mut cable);
    cable.0
}

/// A packet of that guest, in its own memory.
fn honest(source: &mut TrafficSource<'_>) -> Request {
    let mut request = Request::default();
    let packet = source.prepare().expect("a free slot");
    source.describe(&packet, &mut request);
    assert_eq!(request.fragments, 1);
    request
}

/// The addresses that the liar names, each in place of its packet's rest.
fn lies(machine: &Machine) -> Vec<(&'static str, Vec<Fragment>)> {
    let sizes = machine.sizes();
    let victim = sizes.guest(VICTIM);
    let own = sizes.guest(LIAR as u32);
    let good = Fragment::new(own.start, 100);
    let at = |address, length| vec![Fragment::new(address, length)];
    vec![
        ("another guest's frame", at(victim.start, 904)),
        ("the last one", at(victim.end - 100, 100)),
        ("from its own into the next guest's", at(own.end - 10, 20)),
        ("from the guest before into its own", at(own.start - 10, 20)),
        ("dom0's frame", at(PAGE, 904)),
        ("a frame that does not exist", at(sizes.total(), 904)),
        ("the end of all addresses", at(u64::MAX - 2, 3)),
        (
            "another's after its own",
            vec![good, good, Fragment::new(victim.start, 60)],
        ),
        (
            "another's before its own",
            vec![Fragment::new(victim.start, 60), good],
        ),
    ]
}

/// Sends the submitted packets and waits for their completion; gives the frames.
fn send(system: &System<'_>, runner: &mut Guests<'_>, count: u32) -> Vec<Vec<u8>> {
    let sent = runner.packet_loop.engine.transmit(count);
    let sent = sent.unwrap_or_else(|stop| panic!("{stop}"));
    let frames = cable_after(system, runner);
    assert_eq!(frames.len(), sent as usize);
    complete(runner);
    frames
}

fn cable_after(system: &System<'_>, runner: &mut Guests<'_>) -> Vec<Vec<u8>> {
    runner
        .packet_loop
        .card
        .absorb_writes(false)
        .expect("the card follows");
    cable(system)
}

/// Interrupts are served, and guests get their packets back.
fn complete(runner: &mut Guests<'_>) {
    let served = runner
        .packet_loop
        .receive(&mut runner.sources, std::iter::empty());
    served.unwrap_or_else(|stop| panic!("{stop}"));
    while let Some(done) = runner.packet_loop.engine.completion() {
        runner.sources[done.guest as usize].complete(done.cookie);
    }
}

fn has_secret(frame: &[u8]) -> bool {
    frame.windows(8).any(|bytes| bytes == [SECRET; 8])
}

fn pins(machine: &Machine, range: &Range<u64>) -> u32 {
    let frames = (range.start..range.end).step_by(PAGE as usize);
    frames.map(|at| machine.frames().pins(at)).sum()
}

/// One system for all: a process has one instance.
#[test]
fn a_guest_sends_its_own_frames_and_no_others() {
    with_system(&HashSet::new(), limits(), |system| {
        let mut runner = runner(&system);
        what_names_anothers_frame_is_refused_and_on_no_wire(&system, &mut runner);
        a_frame_on_its_way_keeps_its_owner(&system, &mut runner);
    });
}

fn what_names_anothers_frame_is_refused_and_on_no_wire(
    system: &System<'_>,
    runner: &mut Guests<'_>,
) {
    let machine = system.machine();
    let victim = machine.sizes().guest(VICTIM);
    let secret = vec![SECRET; (victim.end - victim.start) as usize];
    machine.write(victim.start, &secret).expect("its memory");
    let lies = lies(machine);
    // The card has receive buffers in dom0's.
    let guests = machine.sizes().dom0..machine.sizes().total();
    for (what, pieces) in &lies {
        // Before an honest packet and after one.
        for (place, who) in [(0, LIAR), (1, HONEST)] {
            let good = honest(&mut runner.sources[who]);
            let mut lie = honest(&mut runner.sources[LIAR]);
            lie.guest = VICTIM;
            lie.fragments = pieces.len() as u16;
            lie.fragment[..pieces.len()].copy_from_slice(pieces);

            runner.packet_loop.engine.submit(place, LIAR as u32, &lie);
            runner
                .packet_loop
                .engine
                .submit(1 - place, who as u32, &good);
            let frames = send(system, runner, 2);
            let engine = &runner.packet_loop.engine;
            assert_eq!(engine.result(place), Sent::Foreign, "{what}");
            assert_eq!(engine.result(1 - place), Sent::Sent, "{what}");
            assert_eq!(frames.len(), 1, "{what}");
            assert!(!has_secret(&frames[0]), "{what}");
            let pinned = pins(machine, &guests);
            assert_eq!(pinned, 0, "{what}");
        }
    }
    let counts = runner.packet_loop.engine.outgoing();
    let each = 2 * lies.len() as u64;
    assert_eq!((counts.foreign, counts.admitted), (each, each));
    assert_eq!((counts.completed, counts.unknown), (each, 0));
    // The owner can send these bytes, so the test would have seen them.
    let mut own = honest(&mut runner.sources[VICTIM as usize]);
    own.fragment[0].address = victim.end - PAGE;
    runner.packet_loop.engine.submit(0, VICTIM, &own);
    let frames = send(system, runner, 1);
    assert!(has_secret(&frames[0]));
}

fn a_frame_on_its_way_keeps_its_owner(system: &System<'_>, runner: &mut Guests<'_>) {
    let frames = system.machine().frames();
    let request = honest(&mut runner.sources[HONEST]);
    let at = request.fragment[0].address & !(PAGE - 1);
    let frame = at..at + PAGE;
    let (from, to) = (Owner::Guest(HONEST as u32), Owner::Guest(LIAR as u32));

    runner.packet_loop.engine.submit(0, HONEST as u32, &request);
    assert_eq!(runner.packet_loop.engine.transmit(1), Ok(1));
    // By the packet, and by the descriptor that the card is to read.
    assert_eq!(frames.pins(at), 2);
    assert_eq!(frames.give(&frame, from, to), Err(NotGiven::Pinned));
    assert_eq!(frames.give(&frame, to, from), Err(NotGiven::NotOwned));
    assert_eq!(cable_after(system, runner).len(), 1);
    complete(runner);
    assert_eq!(frames.pins(at), 0);
    assert_eq!(frames.give(&frame, from, to), Ok(()));
    assert_eq!(frames.owner(at), to);

    for (guest, result) in [(HONEST, Sent::Foreign), (LIAR, Sent::Sent)] {
        runner.packet_loop.engine.submit(0, guest as u32, &request);
        send(system, runner, 1);
        assert_eq!(runner.packet_loop.engine.result(0), result, "guest {guest}");
    }
}
