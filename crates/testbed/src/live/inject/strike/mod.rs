//! A kind and a seed become words changed in dom0's memory.

use std::ops::Range;

use super::anatomy::{Anatomy, DESCRIPTOR, Ring};
use super::fault::{Kind, Struck, wild_address, wild_index};
use crate::live::card;
use crate::live::image::Module;
use crate::live::memory::{BAR, EXCHANGE};
use crate::live::payload;
use crate::live::rings::SHARED_SIZE;
use crate::nic::Register;
use crate::random::Random;

/// Where forged tables of functions are: behind what commands use.
const FORGED: u64 = EXCHANGE.end - 0x1000;
/// Bytes of a transmit buffer's entry, and of a receive buffer's.
const TX_BUFFER: u64 = 40;
const RX_BUFFER: u64 = 16;

/// One fault to be.
pub struct Striker<'a, 'r> {
    /// The driver's data.
    pub anatomy: &'r Anatomy<'a>,
    /// Where the choices come from.
    pub random: &'r mut Random,
    /// The `sk_buff` that is being received, inside of a poll.
    pub receiving: Option<u64>,
    /// An address of the hypervisor's own heap.
    pub own: u64,
}

impl Striker<'_, '_> {
    /// Strikes. `None` if there is nothing of that kind just now; kinds of the
    /// stack are [`super::stack`]'s.
    pub fn strike(&mut self, kind: Kind) -> Option<Struck> {
        match kind {
            Kind::AdapterPointer => self.adapter_pointer(),
            Kind::RingPointer => self.ring_pointer(),
            Kind::BufferPointer => self.buffer_pointer(),
            Kind::SkBuff => self.sk_buff(),
            Kind::DevicePointer => self.device_pointer(),
            Kind::RingIndex => self.ring_index(),
            Kind::RingAddress => self.ring_address(),
            Kind::FunctionNowhere | Kind::FunctionMiddle | Kind::FunctionForbidden => {
                let target = self.bad_function(kind)?;
                self.function_pointer(target)
            }
            Kind::DmaAddress => self.dma_address(),
            Kind::Interface => self.interface(),
            Kind::HeldLock => self.held_lock(),
            Kind::BitFlip => self.bit_flip(),
            Kind::StackWord | Kind::StackReturn | Kind::StackCanary => None,
        }
    }

    fn one_of<T: Clone>(&mut self, all: &[T]) -> Option<T> {
        let count = all.len() as u64;
        (count > 0).then(|| all[self.random.below(count) as usize].clone())
    }

    fn wild(&mut self) -> u64 {
        let ram = self.anatomy.plan.space().sizes().dom0;
        wild_address(self.random, ram, self.own)
    }

    fn put(&self, what: String, at: u64, size: u64, after: u64) -> Option<Struck> {
        let mut old = [0; 8];
        let view = &self.anatomy.view;
        view.read(at, &mut old[..size as usize])?;
        view.write(at, &after.to_le_bytes()[..size as usize])?;
        Some(Struck {
            what,
            at,
            size,
            before: u64::from_le_bytes(old),
            after,
        })
    }

    fn ring(&mut self) -> Ring {
        let rings = [&self.anatomy.tx, &self.anatomy.rx];
        rings[self.random.below(2) as usize].clone()
    }

    fn adapter_pointer(&mut self) -> Option<Struck> {
        let anatomy = self.anatomy;
        let adapter = anatomy.adapter.clone();
        let places = anatomy.words(adapter.clone(), |word| anatomy.is_data(word));
        // Half of the time one that packets come by: most are lists and timers.
        let busy = [anatomy.tx.at, anatomy.rx.at, anatomy.info.net_device];
        let busy = anatomy.words(adapter.clone(), |word| busy.contains(&word));
        let at = match self.random.one_in(2) {
            true => self.one_of(&busy)?,
            false => self.one_of(&places)?,
        };
        let value = self.wild();
        self.put(format!("adapter+{:#x}", at - adapter.start), at, 8, value)
    }

    fn ring_pointer(&mut self) -> Option<Struck> {
        let ring = self.ring();
        let at = self.one_of(&[ring.at, ring.buffers_at])?;
        let value = self.wild();
        self.put(
            format!("{} ring+{:#x}", ring.name, at - ring.at),
            at,
            8,
            value,
        )
    }

    /// A pointer near where the driver is working; the transmit ring may have
    /// none just now.
    fn buffer_pointer(&mut self) -> Option<Struck> {
        let ring = self.ring();
        let struck = self.buffer_pointer_of(&ring);
        struck.or_else(|| self.buffer_pointer_of(&self.anatomy.rx))
    }

    fn buffer_pointer_of(&mut self, ring: &Ring) -> Option<Struck> {
        let anatomy = self.anatomy;
        let each = match ring.name {
            "tx" => TX_BUFFER,
            _ => RX_BUFFER,
        };
        let array = ring.buffer_array(each);
        let places = anatomy.words(array.clone(), |word| anatomy.is_data(word));
        let near = self.near(ring, &array, each, &places);
        let at = self.one_of(&near).or_else(|| self.one_of(&places))?;
        let value = self.wild();
        let what = format!("{} buffers+{:#x}", ring.name, at - array.start);
        self.put(what, at, 8, value)
    }

    /// Of the places, those that the next packets come by.
    fn near(&self, ring: &Ring, array: &Range<u64>, each: u64, places: &[u64]) -> Vec<u64> {
        const NEXT: u64 = 16;
        let clean = self.anatomy.word(ring.at + 24).unwrap_or(0) >> 32;
        let number = |at: &u64| (at - array.start) / each;
        let ahead = |at: &u64| (number(at) + ring.count - clean % ring.count) % ring.count;
        let near = places.iter().copied();
        near.filter(|at| ahead(at) < NEXT).collect()
    }

    fn a_sk_buff(&mut self) -> Option<u64> {
        match self.receiving {
            Some(buffer) => Some(buffer),
            None => {
                let sending = self.anatomy.sending();
                self.one_of(&sending)
            }
        }
    }

    fn sk_buff(&mut self) -> Option<Struck> {
        const FIELDS: [&str; 10] = [
            "next", "prev", "dev", "data", "head", "len", "data_len", "tail", "end", "users",
        ];
        let buffer = self.a_sk_buff()?;
        let field = self.one_of(&FIELDS)?;
        let (offset, size) = self.anatomy.field(&format!("sk_buff.{field}"));
        let value = match size {
            8 => self.wild(),
            _ => wild_index(self.random, 2048),
        };
        self.put(format!("sk_buff.{field}"), buffer + offset, size, value)
    }

    fn device_pointer(&mut self) -> Option<Struck> {
        const FIELDS: [&str; 8] = [
            "net_device.netdev_ops",
            "net_device._tx",
            "net_device.dev_addr",
            "net_device.num_tx_queues",
            "napi_struct.dev",
            "napi_struct.poll_list",
            "napi_struct.weight",
            "netdev_queue.dev",
        ];
        let name = self.one_of(&FIELDS)?;
        let at = self.structure(name)? + self.anatomy.field(name).0;
        let size = self.anatomy.field(name).1.min(8);
        let value = match size {
            8 => self.wild(),
            _ => wild_index(self.random, 64),
        };
        self.put(name.to_owned(), at, size, value)
    }

    /// Where the structure of a field is.
    fn structure(&self, field: &str) -> Option<u64> {
        let info = &self.anatomy.info;
        match field.split('.').next() {
            Some("net_device") => Some(info.net_device),
            Some("napi_struct") => Some(info.napi),
            _ => self.anatomy.queue(),
        }
    }

    fn ring_index(&mut self) -> Option<Struck> {
        let ring = self.ring();
        let places: Vec<u64> = ring.indices().collect();
        let at = self.one_of(&places)?;
        let value = wild_index(self.random, ring.count);
        self.put(
            format!("{} ring+{:#x}", ring.name, at - ring.at),
            at,
            4,
            value,
        )
    }

    /// Where the driver has it, or where the card has it from the driver.
    fn ring_address(&mut self) -> Option<Struck> {
        let ring = self.ring();
        if self.random.one_in(2) {
            return Some(self.base_register(&ring));
        }
        let (offset, size) = self.one_of(&[(0, 8), (8, 8), (16, 4)])?;
        let at = ring.at + offset;
        let value = match size {
            8 => self.wild(),
            _ => wild_index(self.random, ring.count * DESCRIPTOR),
        };
        self.put(format!("{} ring+{offset:#x}", ring.name), at, size, value)
    }

    /// The card is told a wrong base, as by a driver whose ring has one when it
    /// sets the card up.
    fn base_register(&mut self, ring: &Ring) -> Struck {
        let (low, high) = match ring.name {
            "tx" => (Register::Tdbal, Register::Tdbah),
            _ => (Register::Rdbal, Register::Rdbah),
        };
        let total = self.anatomy.plan.space().sizes().total();
        let value = match self.random.below(3) {
            0 => self.random.below(total),
            1 => total + self.random.below(total),
            _ => self.wild(),
        };
        let mut device = self.anatomy.mailbox.device();
        let before = u64::from(device.peek(low)) | u64::from(device.peek(high)) << 32;
        device.mmio_write(low.offset(), value as u32);
        device.mmio_write(high.offset(), (value >> 32) as u32);
        device.show_constants(card::registers(self.anatomy.machine));
        Struck {
            what: format!("the card's {low:?}"),
            at: BAR + u64::from(low.offset()),
            size: 8,
            before,
            after: value,
        }
    }

    fn bad_function(&mut self, kind: Kind) -> Option<u64> {
        let plan = self.anatomy.plan;
        let code = plan.code(Module::Driver)?;
        Some(match kind {
            Kind::FunctionNowhere => self.wild(),
            Kind::FunctionMiddle => loop {
                let at = code.start + self.random.below(code.end - code.start);
                if plan.function_at(at).is_none() {
                    break at;
                }
            },
            _ => {
                let forbidden = [
                    // The hypervisor's code, by its own addresses.
                    payload::DRIVER + self.random.below(0x4000),
                    payload::HOT + self.random.below(0x1000),
                    crate::runtime::entry("twin_stlb_call")?,
                    // dom0's host, which no driver calls.
                    crate::live::memory::FAR + self.random.below(256),
                    // Data.
                    self.anatomy.info.net_device,
                    // A function of another kind.
                    plan.symbol("kernel_info")?,
                    plan.symbol("hot_setup")?,
                ];
                self.one_of(&forbidden)?
            }
        })
    }

    /// In the adapter, the napi, or by a forged `net_device_ops`.
    fn function_pointer(&mut self, target: u64) -> Option<Struck> {
        let mut places: Vec<(String, u64)> = self
            .anatomy
            .function_pointers()
            .into_iter()
            .map(|at| {
                (
                    format!("adapter+{:#x}", at - self.anatomy.adapter.start),
                    at,
                )
            })
            .collect();
        let poll = self.anatomy.info.napi + self.anatomy.field("napi_struct.poll").0;
        places.push(("napi_struct.poll".to_owned(), poll));
        let forged = places.len() as u64;
        if self.random.below(forged + 1) == forged {
            return self.forged_operations(target);
        }
        let (what, at) = self.one_of(&places)?;
        self.put(what, at, 8, target)
    }

    fn forged_operations(&mut self, target: u64) -> Option<Struck> {
        let size = self.anatomy.field("net_device_ops").1;
        for at in (FORGED..FORGED + size).step_by(8) {
            self.anatomy.view.write(at, &target.to_le_bytes())?;
        }
        let at = self.anatomy.info.net_device + self.anatomy.field("net_device.netdev_ops").0;
        self.put(
            format!("net_device.netdev_ops, all {target:#x}"),
            at,
            8,
            FORGED,
        )
    }

    /// The bus address in a descriptor that the card looks at next: one that is
    /// being sent, if any is, or one to receive into.
    fn dma_address(&mut self) -> Option<Struck> {
        let sizes = self.anatomy.plan.space().sizes();
        let heap = self.anatomy.plan.space().heap();
        let outside = [
            self.random.below(heap.start - 2048),
            sizes.total() + self.random.below(1 << 20),
            u64::MAX - self.random.below(4096),
            self.random.word() | 1 << 40,
            // A guest's memory: the card may read it, not write it.
            sizes.guest(3).start + self.random.below(sizes.guest - 4096),
        ];
        let (ring, waiting) = self.waiting();
        let choices = if ring.name == "tx" { 4 } else { 5 };
        let value = outside[self.random.below(choices) as usize];
        let clean = self.anatomy.word(ring.at + 24)? >> 32;
        let index = (clean + self.random.below(waiting)) % ring.count;
        let at = ring.descriptors + index * DESCRIPTOR;
        self.put(format!("{} descriptor {index}", ring.name), at, 8, value)
    }

    /// A ring and how many descriptors the card comes by soon.
    fn waiting(&mut self) -> (Ring, u64) {
        const NEXT: u64 = 8;
        let tx = &self.anatomy.tx;
        let indices = self.anatomy.word(tx.at + 24).unwrap_or(0);
        let (used, clean) = (indices & 0xffff_ffff, indices >> 32);
        if used != clean {
            (tx.clone(), (used + tx.count - clean) % tx.count)
        } else {
            (self.anatomy.rx.clone(), NEXT)
        }
    }

    /// In `struct hot_shared` of the hypervisor's CPU (guest.h), or what it
    /// points to.
    fn interface(&mut self) -> Option<Struck> {
        const REQUEST: u64 = 512;
        let anatomy = self.anatomy;
        let shared = anatomy.plan.symbol("hot_shared")? + SHARED_SIZE;
        let requests = anatomy.word(shared)?;
        let done = anatomy.word(shared + 8)?;
        let (request, entry) = (self.random.below(8), self.random.below(32));
        let request = requests + request * REQUEST;
        let places = [
            ("hot_shared.requests", shared, 8),
            ("hot_shared.tx_done", shared + 8, 8),
            ("hot_shared.release", shared + 16, 8),
            ("hot_shared.tx_done_produce", shared + 64, 4),
            ("hot_shared.tx_done_consume", shared + 128, 4),
            ("hot_shared.tx_sent", shared + 192, 4),
            ("request.cookie", request, 8),
            ("request.header_length", request + 12, 4),
            ("request.result", request + 28, 4),
            ("request.fragment.address", request + 160, 8),
            ("request.fragment.length", request + 168, 4),
            ("done.cookie", done + entry * 16, 8),
            ("done.guest", done + entry * 16 + 8, 4),
        ];
        let (what, at, size) = self.one_of(&places)?;
        let value = match size {
            8 => self.wild(),
            _ => wild_index(self.random, 1024),
        };
        self.put(what.to_owned(), at, size, value)
    }

    fn held_lock(&mut self) -> Option<Struck> {
        const SCHEDULED: u64 = 1;
        let anatomy = self.anatomy;
        let queue = anatomy.queue()?;
        let field = |name: &str| anatomy.field(name).0;
        let shared = anatomy.plan.symbol("hot_shared")?;
        let pools = anatomy.plan.symbol("hot_pools")?;
        // struct hot_shared.tx_done_lock (guest.h), of the hypervisor's CPU.
        let done = shared + SHARED_SIZE + 68;
        let napi = anatomy.info.napi + field("napi_struct.state");
        let state = anatomy.word(napi)?;
        let held = [
            (
                "netdev_queue._xmit_lock",
                queue + field("netdev_queue._xmit_lock"),
                4,
                1,
            ),
            (
                "netdev_queue.state",
                queue + field("netdev_queue.state"),
                8,
                3,
            ),
            ("napi_struct.state", napi, 8, state | SCHEDULED),
            ("hot_shared.tx_done_lock", done, 4, 1),
            ("hot_pools, first word of a pool", pools, 4, 1),
        ];
        let (what, at, size, value) = self.one_of(&held)?;
        self.put(what.to_owned(), at, size, value)
    }

    fn bit_flip(&mut self) -> Option<Struck> {
        let anatomy = self.anatomy;
        let info = &anatomy.info;
        let sized = |at: u64, structure: &str| at..at + anatomy.field(structure).1;
        let mut ranges = vec![
            ("adapter", anatomy.adapter.clone()),
            ("adapter", anatomy.adapter.clone()),
            ("tx ring", anatomy.tx.at..anatomy.tx.at + 48),
            ("rx ring", anatomy.rx.at..anatomy.rx.at + 56),
            ("tx buffers", anatomy.tx.buffer_array(TX_BUFFER)),
            ("rx buffers", anatomy.rx.buffer_array(RX_BUFFER)),
            ("tx descriptors", descriptors(&anatomy.tx)),
            ("rx descriptors", descriptors(&anatomy.rx)),
            ("net_device", sized(info.net_device, "net_device")),
            ("napi_struct", sized(info.napi, "napi_struct")),
        ];
        if let Some(buffer) = self.a_sk_buff() {
            ranges.push(("sk_buff", sized(buffer, "sk_buff")));
            ranges.push(("sk_buff", sized(buffer, "sk_buff")));
        }
        let (name, range) = self.one_of(&ranges)?;
        let at = range.start + self.random.below(range.end - range.start);
        let mut byte = [0];
        anatomy.view.read(at, &mut byte)?;
        let flipped = u64::from(byte[0] ^ 1 << self.random.below(8));
        self.put(format!("{name}+{:#x}", at - range.start), at, 1, flipped)
    }
}

fn descriptors(ring: &Ring) -> Range<u64> {
    ring.descriptors..ring.descriptors + ring.count * DESCRIPTOR
}
