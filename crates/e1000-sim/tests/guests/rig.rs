//! A machine whose guests are processes, one of them bad, and what all tests ask of it.

use std::collections::HashSet;
use std::time::Duration;

use e1000_sim::guests::back::CrossingCounts;
use e1000_sim::guests::crossing::{Guests, Kicks, Loop};
use e1000_sim::guests::front::{Entry, Front, Order, honest};
use e1000_sim::image::files::Files;
use e1000_sim::memory::{Machine, Owner, PAGE, Sizes};
use e1000_sim::packets::round::{PEER, guest_mac};
use e1000_sim::stages::Stages;
use e1000_sim::system::{Blueprint, System};
use e1000_sim::traffic::source::Shape;
use e1000_sim::traffic::{Datagrams, Flow};
use e1000_sim::transport::mailbox::Mailbox;
use e1000_sim::transport::rendezvous::Limits;
use process_lab::process;
use process_lab::program::{Scheme, Variant};

/// Guests of each test.
pub const GUESTS: u32 = 3;
/// The one that is not honest.
pub const BAD: u32 = 1;
/// The others.
pub const HONEST: [u32; 2] = [0, 2];
/// Bytes of a frame.
pub const FRAME: usize = 1000;

/// What the guests of a test do, by their number.
pub type Conduct = fn(&mut Front<'_>, Entry);
pub type Test = fn(&mut Rig<'_>);

/// Each test with a machine, guests and a system of its own, in a process of its own. Guests come first.
pub fn each_alone(tests: &[(&str, Conduct, Test)]) {
    let files = Files::find().unwrap_or_else(|error| panic!("{error}"));
    let variant = Variant::here(Scheme::Stlb);
    let blueprint = Blueprint::new(&files, variant, &HashSet::new());
    let blueprint = blueprint.unwrap_or_else(|error| panic!("{error}"));
    for (name, conduct, test) in tests {
        let mut child = process::fork(|| {
            with_guests(&blueprint, *conduct, *test);
            0
        })
        .expect("fork");
        child.wait();
        let fate = child.fate();
        assert_eq!(fate.as_deref(), Some("ended with status 0"), "{name}");
    }
}

pub fn with_guests(blueprint: &Blueprint<'_>, conduct: Conduct, test: Test) {
    let machine = Machine::new(Sizes::default()).expect("memory");
    let shape = Shape::Frames(FRAME);
    let of = |guest| if guest == BAD { conduct } else { honest };
    let guests = Guests::start_with(&machine, GUESTS, shape, guest_limits(), of);
    let guests = guests.unwrap_or_else(|error| panic!("{error}"));
    let mailbox = Mailbox::new().expect("memory");
    let system = System::start(blueprint, &machine, mailbox.get(), Limits::of_seconds(60));
    let system = system.unwrap_or_else(|error| panic!("{error}"));
    let engine = system.staged(Limits::of_seconds(60), GUESTS, Stages::NONE);
    let engine = engine.unwrap_or_else(|error| panic!("{error}"));
    let runner = system.staged_runner(engine, GUESTS, shape);
    let runner = runner.unwrap_or_else(|error| panic!("{error}"));
    let peer = |number| Flow {
        number,
        source: PEER,
        destination: guest_mac(number),
    };
    test(&mut Rig {
        guests,
        packets: runner.packet_loop,
        peers: (0..GUESTS)
            .map(|n| Datagrams::new(peer(n), FRAME))
            .collect(),
        numbers: vec![0; GUESTS as usize],
        system: &system,
    });
}

/// Of a guest's own processor time.
pub fn guest_limits() -> Limits {
    Limits {
        time: Duration::from_secs(1),
        spin: 0,
    }
}

pub struct Rig<'s> {
    pub guests: Guests<'s>,
    pub packets: Loop<'s>,
    pub peers: Vec<Datagrams>,
    pub numbers: Vec<u64>,
    pub system: &'s System<'s>,
}

impl Rig<'_> {
    pub fn send(&mut self, count: u32, kicks: Kicks) {
        let Rig {
            guests, packets, ..
        } = self;
        let sent = guests.send(packets, GUESTS, count, kicks);
        sent.unwrap_or_else(|stop| panic!("{stop}"));
    }

    /// A frame for each of these guests, with one interrupt.
    pub fn receive(&mut self, guests: &[u32]) {
        let frames: Vec<Vec<u8>> = guests.iter().map(|guest| self.frame(*guest)).collect();
        let Rig {
            guests, packets, ..
        } = self;
        let stored = guests.receive(packets, frames.iter().map(Vec::as_slice));
        let stored = stored.unwrap_or_else(|stop| panic!("{stop}"));
        assert_eq!(stored, frames.len() as u32);
    }

    pub fn frame(&mut self, guest: u32) -> Vec<u8> {
        let number = &mut self.numbers[guest as usize];
        *number += 1;
        self.peers[guest as usize].finished(*number - 1).to_vec()
    }

    pub fn check(&mut self) {
        let Rig {
            guests, packets, ..
        } = self;
        let checked = guests.check(packets);
        checked.unwrap_or_else(|stop| panic!("{stop}"));
    }

    pub fn schedule(&mut self, guest: u32, order: Order) {
        let Rig {
            guests, packets, ..
        } = self;
        let done = guests.schedule(packets, guest, order);
        done.unwrap_or_else(|stop| panic!("{stop}"));
    }

    pub fn serve(&mut self) {
        let Rig {
            guests, packets, ..
        } = self;
        let served = guests.serve(packets);
        served.unwrap_or_else(|stop| panic!("{stop}"));
    }

    pub fn deliver(&mut self) {
        let Rig {
            guests, packets, ..
        } = self;
        let delivered = guests.deliver(packets);
        delivered.unwrap_or_else(|stop| panic!("{stop}"));
    }

    pub fn counts(&mut self, guest: u32) -> CrossingCounts {
        self.guests.back(guest).counts
    }

    /// The honest guests send and receive, and all of it arrives.
    pub fn others_are_served(&mut self) {
        self.check();
        let before = self.guests.reports();
        let wire = HONEST.map(|guest| self.on_the_wire(guest));
        for _ in 0..4 {
            self.send(GUESTS * 16, Kicks::Batch);
            self.receive(&[HONEST, HONEST, HONEST, HONEST].concat());
        }
        self.check();
        let after = self.guests.reports();
        for (at, guest) in HONEST.into_iter().enumerate() {
            let [before, after] = [before[guest as usize], after[guest as usize]];
            assert_eq!(
                after.completed - before.completed,
                64,
                "guest {guest}: {after:?}"
            );
            assert_eq!(
                after.received - before.received,
                16,
                "guest {guest}: {after:?}"
            );
            assert_eq!((after.corrupted, after.missing), (0, 0), "guest {guest}");
            assert_eq!((after.ready, after.unanswered), (0, 0), "guest {guest}");
            assert_eq!((after.refused, after.bad_answers), (0, 0), "guest {guest}");
            assert_eq!(self.on_the_wire(guest) - wire[at], 64, "guest {guest}");
        }
    }

    /// Frames of a guest's on the cable. None of anybody's is damaged.
    pub fn on_the_wire(&self, guest: u32) -> u64 {
        let sent = &self.packets.card.sent;
        assert_eq!((sent.corrupted, sent.strangers), (0, 0), "{:?}", sent.first);
        sent.flows[guest as usize].packets
    }

    /// Nothing of a guest's memory is held any more, and it can be given away.
    pub fn nothing_is_held(&mut self, guest: u32) {
        let machine = self.guests.machine();
        let memory = machine.sizes().guest(guest);
        for page in memory.clone().step_by(PAGE as usize) {
            assert_eq!(machine.frames().pins(page), 0, "{page:#x}");
        }
        let frames = machine.frames();
        let given = frames.give(&memory, Owner::Guest(guest), Owner::Nobody);
        assert_eq!(given, Ok(()));
        let back = frames.give(&memory, Owner::Nobody, Owner::Guest(guest));
        assert_eq!(back, Ok(()));
    }

    /// The driver's pools are as at another time when everything had ended.
    pub fn pools(&mut self) -> Vec<[usize; 4]> {
        super::pools::pools(self.system)
    }
}
