//! The card without drivers: turns and vectors.

use e1000_sim::contexts::ContextId;
use e1000_sim::contexts::card::Card;
use e1000_sim::contexts::layout::Layout;
use e1000_sim::contexts::vectors::{Consumer, ENTRIES};
use e1000_sim::memory::Machine;
use e1000_sim::nic::{Register, Wire};
use e1000_sim::transport::mailbox::{Mailbox, SharedPages};

/// TCTL.EN; CTRL.SLU; EOP, RS.
const ENABLE: u32 = 1 << 1;
const LINK: u32 = 1 << 6;
const FRAME: u64 = 0x0900_0000;
const DESCRIPTORS: u64 = 256;

struct Contexts {
    layout: Layout,
    machines: Vec<Machine>,
    mailboxes: Vec<SharedPages<Mailbox>>,
}

impl Contexts {
    fn new(count: usize) -> Contexts {
        let layout = Layout::new(count);
        let machines = layout.machines().expect("memory");
        let mailboxes = (0..count).map(|_| Mailbox::new().expect("memory"));
        Contexts {
            mailboxes: mailboxes.collect(),
            layout,
            machines,
        }
    }

    fn card(&self) -> Card<'_> {
        let mut card = Card::new(self.layout.vectors());
        for (number, (mailbox, machine)) in self.mailboxes.iter().zip(&self.machines).enumerate() {
            let mac = [2, 0, 0, 0, 0, number as u8];
            mailbox.get().power_on(mac);
            card.add(mailbox.get(), machine, mac);
        }
        card
    }

    fn write(&self, id: usize, register: Register, value: u32) {
        let mut device = self.mailboxes[id].get().device();
        device.mmio_write(register.offset(), value);
    }

    /// Hands over frames of a length, up to a full ring.
    fn hand_over(&self, id: usize, length: u64) {
        let machine = &self.machines[id];
        let (ring, data) = (machine.sizes().base, machine.sizes().base + 0x1_0000);
        for index in 0..DESCRIPTORS {
            let at = ring + index * 16;
            let words = [data, FRAME | length].map(u64::to_le_bytes);
            machine.write(at, words.as_flattened()).expect("memory");
        }
        self.write(id, Register::Ctrl, LINK);
        self.write(id, Register::Tdbal, ring as u32);
        self.write(id, Register::Tdlen, DESCRIPTORS as u32 * 16);
        self.write(id, Register::Tctl, ENABLE);
        self.write(id, Register::Tdt, DESCRIPTORS as u32 - 1);
    }
}

struct Nowhere;

impl Wire for Nowhere {
    fn transmit(&mut self, _: &[u8]) {}
}

/// By bytes, whatever the frames' sizes; a context that comes late has saved nothing up.
#[test]
fn turns_are_fair_by_bytes() {
    let contexts = Contexts::new(3);
    let mut card = contexts.card();
    contexts.hand_over(0, 1514);
    contexts.hand_over(1, 300);
    card.serve(40_000, &mut Nowhere);
    contexts.hand_over(2, 9000);
    let before = [0, 1].map(|id| card.sent(ContextId(id)).bytes);
    assert!(before[0].abs_diff(before[1]) <= 2 * 1514, "{before:?}");
    card.serve(90_000, &mut Nowhere);
    let after = [0, 1, 2].map(|id| card.sent(ContextId(id)).bytes);
    let shares = [after[0] - before[0], after[1] - before[1], after[2]];
    assert!(
        shares.iter().all(|bytes| bytes.abs_diff(30_000) <= 9000),
        "{shares:?}"
    );
    // Nobody else has anything: the last one gets the cable.
    card.serve(u64::MAX, &mut Nowhere);
    assert_eq!(card.sent(ContextId(0)).frames, DESCRIPTORS as u32 - 1);
}

/// While the hypervisor takes no vector, the card keeps what it has no room for: each context
/// that has news is named, and the interrupt comes.
#[test]
fn a_full_ring_of_vectors_loses_nothing() {
    const COUNT: usize = 32;
    let contexts = Contexts::new(COUNT);
    let mut card = contexts.card();
    let vectors = contexts.layout.vectors();
    let hypervisor = Consumer::new(&contexts.machines[0], vectors).expect("memory");
    let raise = |id: usize| {
        contexts.write(id, Register::Ims, 1);
        contexts.write(id, Register::Ics, 1);
    };
    for id in 0..COUNT {
        raise(id);
        assert_eq!(card.update(), id < ENTRIES as usize, "{id}");
    }
    assert_eq!(card.full(), COUNT as u64 - u64::from(ENTRIES));
    assert_eq!(hypervisor.drain(), (1 << ENTRIES) - 1);
    assert!(card.update(), "what was kept comes with the next interrupt");
    assert_eq!(hypervisor.drain(), 0xffff_0000);
    assert!(!card.update());
    assert_eq!(hypervisor.drain(), 0);
    // A line that fell and rose between two looks is news again.
    contexts.write(7, Register::Icr, u32::MAX);
    raise(7);
    assert!(card.update());
    assert_eq!(hypervisor.drain(), 1 << 7);
    assert_eq!(card.interrupts, u64::from(ENTRIES) + 2);
}
