//! What the driver hands to the card is checked (`runtime/include/twin/dma.h`): the stock
//! driver's descriptors pass, one that names foreign memory aborts the invocation, and the
//! card sees nothing of it.

use std::sync::atomic::{AtomicU32, Ordering};

use e1000_sim::engines::twin::TwinEngine;
use e1000_sim::hypervisor::instance::{DriverAbort, Stopped};
use e1000_sim::memory::BAR_SIZE;
use e1000_sim::nic::{Register, Ring, RingPlace};
use e1000_sim::packets::packet_loop::{Card, Engine};
use e1000_sim::packets::round::{PacketDirection, Runner};
use e1000_sim::system::System;
use e1000_sim::traffic::source::Shape;
use e1000_sim::transport::rendezvous::Limits;
use process_lab::program::Scheme;
use process_lab::runtime;

#[path = "system.rs"]
mod system;

const GUESTS: u32 = 2;
const PACKETS: u64 = 600;
/// The byte that fills the memory of a guest that sends nothing.
const SECRET: u8 = 0xa5;
/// A legacy descriptor's control word: EOP, IFCS, RS.
const LEGACY: u64 = 0x0b00_0000;

fn limits() -> Limits {
    Limits::of_seconds(30)
}

type Guests<'s> = Runner<'s, TwinEngine<'s>>;
type Test = fn(&System<'_>, &mut Guests<'_>);

/// All tests.
pub fn run(scheme: Scheme) {
    let tests: [(&str, Test); 5] = [
        ("the stock driver", the_stock_drivers_descriptors_pass),
        ("a foreign buffer", a_foreign_buffer_aborts_and_is_not_sent),
        ("receiving", nothing_is_received_outside_the_pool),
        ("a change", a_change_after_the_check_is_not_the_cards),
        ("registers", the_rings_registers_are_not_dom0s_meanwhile),
    ];
    system::each_alone(scheme, limits, &tests, with_guests);
}

/// The hypervisor instance serves two guests.
fn with_guests(system: &System<'_>, test: Test) {
    let engine = system.twin(limits()).expect("an instance");
    let runner = system.twin_runner(engine, GUESTS, Shape::Frames(1000));
    test(system, &mut runner.expect("a card"));
}

/// Thousands of packets each way, more than the rings hold: all are checked, and none is
/// refused.
fn the_stock_drivers_descriptors_pass(system: &System<'_>, guests: &mut Guests<'_>) {
    let before = system.guard().events().0;
    for direction in [PacketDirection::Send, PacketDirection::Receive] {
        let round = guests.run(direction, PACKETS).expect("packets go");
        assert_eq!((round.lost, round.corrupted), (0, 0), "{direction:?}");
    }
    let counts = system.guard().events().0;
    assert!(counts.checked - before.checked > 2 * PACKETS, "{counts:?}");
    assert!(counts.shown > PACKETS && counts.doorbells > 0, "{counts:?}");
    assert_eq!(counts.refused, 0);
    let device = system.mailbox().device();
    assert_eq!((device.faults().bus, device.refused_writes()), (0, 0));
    drop(device);
    guests.packet_loop.card.close().expect("no stray write");
    assert!(!system.mailbox().device().is_guarded());
    let pool = system.blueprint().plan.space().heap();
    let pins = (pool.start..pool.end).step_by(4096);
    let pins: u32 = pins.map(|at| system.machine().frames().pins(at)).sum();
    assert_eq!(pins, 0, "the rings were given back");
}

/// The driver's own view of a ring, and the doorbell.
struct Lever<'a, 's> {
    system: &'a System<'s>,
    place: RingPlace,
    ring: Ring,
}

impl Lever<'_, '_> {
    fn doorbell(&self) -> &AtomicU32 {
        let tail = match self.ring {
            Ring::Transmit => Register::Tdt,
            Ring::Receive => Register::Rdt,
        };
        assert!(u64::from(tail.offset()) < BAR_SIZE);
        // SAFETY: a word of the mapped registers, which is accessed atomically.
        unsafe {
            &*self
                .system
                .machine()
                .bar()
                .add(tail.offset() as usize)
                .cast()
        }
    }

    /// Writes the next descriptor as a driver does, and gives its index.
    fn hand_over(&self, address: u64, control: u64) -> u64 {
        let tail = self.doorbell().load(Ordering::Acquire);
        self.write(tail, 0, address);
        self.write(tail, 8, control);
        let next = (tail + 1) % self.place.count;
        self.doorbell().store(next, Ordering::Release);
        u64::from(tail)
    }

    fn write(&self, index: u32, offset: u64, word: u64) {
        let at = self.place.base + u64::from(index) * 16 + offset;
        let written = self.system.machine().write(at, &word.to_le_bytes());
        written.expect("the ring is in memory");
    }
}

fn lever<'a, 's>(system: &'a System<'s>, ring: Ring) -> Lever<'a, 's> {
    Lever {
        system,
        place: system.mailbox().device().driver_ring(ring),
        ring,
    }
}

/// The abort of the next invocation, of a function that does nothing with the rings.
fn abort_of(guests: &mut Guests<'_>) -> DriverAbort {
    let entered = guests.packet_loop.engine.instance.call("hot_pending", &[]);
    match entered {
        Err(Stopped::Aborted(report)) => report,
        other => panic!("not aborted: {other:?}"),
    }
}

/// Another guest's memory, which nobody sends: the invocation is aborted with ring, index,
/// address and function, and the secret is on no wire.
fn a_foreign_buffer_aborts_and_is_not_sent(system: &System<'_>, guests: &mut Guests<'_>) {
    let victim = system.machine().sizes().guest(GUESTS);
    let secret = vec![SECRET; (victim.end - victim.start) as usize];
    system
        .machine()
        .write(victim.start, &secret)
        .expect("its memory");
    let lever = lever(system, Ring::Transmit);
    let before = system.mailbox().device().driver_ring(Ring::Transmit);
    let index = lever.hand_over(victim.start, LEGACY | 200);

    let report = abort_of(guests);
    assert_eq!(report.kind, runtime::ABORT_DMA);
    let dma = report.dma().expect("a ring");
    assert_eq!(
        (dma.kind, u64::from(dma.index)),
        (runtime::DMA_TRANSMIT, index)
    );
    assert_eq!(
        (dma.fault, dma.address),
        (runtime::DMA_FOREIGN, victim.start)
    );
    assert!(report.place.contains("hot_pending"), "{report}");
    let said = report.to_string();
    let wanted = format!("transmit descriptor {index}: a frame that the card may not use");
    assert!(
        said.starts_with("DMA refused at ") && said.contains(&wanted),
        "{said}"
    );
    assert_eq!(system.guard().events().0.refused, 1);

    let card = &mut guests.packet_loop.card;
    card.absorb_writes(false).expect("registers are fine");
    card.send();
    assert_eq!(card.sent.packets() + card.sent.strangers, 0, "it was sent");
    let device = system.mailbox().device();
    assert_eq!(
        device.peek(Register::Tdt),
        before.tail,
        "the card saw the doorbell"
    );
    assert_eq!(device.faults().bus, 0, "the card saw the address");
}

/// A buffer to receive into: dom0's kernel code, which the driver's stores do not reach, and
/// a guest's memory.
fn nothing_is_received_outside_the_pool(system: &System<'_>, guests: &mut Guests<'_>) {
    let pool = system.blueprint().plan.space().heap();
    let address = pool.start - 4096;
    let lever = lever(system, Ring::Receive);
    let index = lever.hand_over(address, 0);
    let dma = abort_of(guests).dma().expect("a ring");
    assert_eq!(
        (dma.kind, u64::from(dma.index)),
        (runtime::DMA_RECEIVE, index)
    );
    assert_eq!((dma.fault, dma.address), (runtime::DMA_FOREIGN, address));
}

/// A descriptor that is changed after it was checked: what was checked is sent, and the
/// next invocation is aborted.
fn a_change_after_the_check_is_not_the_cards(system: &System<'_>, guests: &mut Guests<'_>) {
    let mut request = e1000_sim::packets::rings::Request::default();
    let packet = guests.sources[0].prepare().expect("a free slot");
    guests.sources[0].describe(&packet, &mut request);
    let engine = &mut guests.packet_loop.engine;
    engine.submit(0, 0, &request);
    assert_eq!(engine.transmit(1), Ok(1));
    let lever = lever(system, Ring::Transmit);
    let (tail, count) = (lever.doorbell().load(Ordering::Acquire), lever.place.count);
    let last = (tail + count - 1) % count;
    let victim = system.machine().sizes().guest(GUESTS).start;
    lever.write(last, 0, victim);

    let card = &mut guests.packet_loop.card;
    card.absorb_writes(false).expect("registers are fine");
    card.send();
    let sent = &card.sent;
    assert_eq!((sent.packets(), sent.corrupted, sent.strangers), (1, 0, 0));
    let dma = abort_of(guests).dma().expect("a ring");
    assert_eq!((dma.fault, dma.index), (runtime::DMA_CHANGED, last));
    assert_eq!(dma.address, victim);
}

/// The card's own registers for the rings are the hypervisor's while it has them, also for
/// dom0.
fn the_rings_registers_are_not_dom0s_meanwhile(system: &System<'_>, guests: &mut Guests<'_>) {
    let copies = system.machine().sizes().hypervisor();
    let mut device = system.mailbox().device();
    let seen = device.driver_ring(Ring::Receive);
    let real = |register| device.peek(register);
    assert!(copies.contains(&u64::from(real(Register::Rdbal))));
    assert!(!copies.contains(&seen.base));
    let refused = [
        (Register::Rdbal, 0x1000),
        (Register::Rdbah, 1),
        (Register::Rdlen, 0x1_0000),
        (Register::Rdh, 7),
        (Register::Tdbal, 0x1000),
        (Register::Tdlen, 0x1_0000),
        (Register::Tdh, 7),
        // Buffers of 16 KiB; a reset.
        (
            Register::Rctl,
            device.peek(Register::Rctl) | 1 << 25 | 1 << 16,
        ),
        (Register::Ctrl, 1 << 26),
    ];
    for (count, (register, value)) in (1..).zip(refused) {
        let before = device.peek(register);
        device.mmio_write(register.offset(), value);
        assert_eq!(device.peek(register), before, "{register:?}");
        assert_eq!(device.refused_writes(), count, "{register:?}");
    }
    assert_eq!(device.driver_ring(Ring::Receive), seen);
    let base = device.mmio_read(Register::Rdbal.offset());
    assert_eq!(u64::from(base), seen.base & 0xffff_ffff);
    drop(device);
    let round = guests
        .run(PacketDirection::Receive, PACKETS)
        .expect("packets go");
    assert_eq!((round.lost, round.corrupted), (0, 0));
}
