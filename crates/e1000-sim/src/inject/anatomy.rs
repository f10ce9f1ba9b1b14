//! Finds the driver's structures. Kernel structures: a table that kernel.o carries
//! (`kernel_fields`, the compiler's offsets). The driver's own structures are in
//! no header and the module has no debug information, so they are found by their
//! contents:
//!
//! | what | how it is recognised |
//! |---|---|
//! | `e1000_adapter` | `netdev_priv()`; its size is what `e1000_probe` allocates |
//! | a ring | the adapter points to it; it begins with the descriptors' address and, as bus address, what the card has in TDBA or RDBA |
//! | a ring's indices | the words between the descriptor count and the buffers' pointer |
//! | a ring's buffers | the other pointer of the ring |
//! | a function pointer | a word that is the address of a function of e1000.ko |
//! | an `sk_buff` | a pointer in the buffers to something whose `dev` is the device |

use std::collections::HashMap;
use std::ops::Range;

use process_lab::e1000::{ADAPTER_SIZE, TX_BUFFER};

use crate::dom0::interface::Info;
use crate::image::{KernelPlan, Module, fields};
use crate::memory::Machine;
use crate::memory::view::View;
use crate::nic;
use crate::transport::mailbox::Mailbox;

/// Bytes of a ring's structure that are searched.
const RING: u64 = 64;
/// Bytes of a descriptor (manual, 3.2.3 and 3.3.3).
pub const DESCRIPTOR: u64 = 16;

/// A ring of the driver's.
#[derive(Clone, Debug)]
pub struct Ring {
    /// `tx` or `rx`.
    pub name: &'static str,
    /// dom0 address of its structure.
    pub at: u64,
    /// dom0 address of the descriptors.
    pub descriptors: u64,
    /// How many there are.
    pub count: u64,
    /// dom0 address of the driver's buffer array.
    pub buffers: u64,
    /// The word of the ring that holds that address.
    pub buffers_at: u64,
}

impl Ring {
    /// dom0 addresses of its structure.
    pub fn structure(&self) -> Range<u64> {
        self.at..self.at + RING
    }

    /// dom0 addresses of the indices' 32-bit words.
    pub fn indices(&self) -> impl Iterator<Item = u64> + use<> {
        // After descriptors (8), bus address (8), size (4).
        (self.at + 20..self.buffers_at).step_by(4)
    }

    /// dom0 addresses of the buffer array.
    pub fn buffer_array(&self, bytes_each: u64) -> Range<u64> {
        self.buffers..self.buffers + self.count * bytes_each
    }
}

/// The driver's data.
pub struct Anatomy<'a> {
    /// dom0's objects.
    pub plan: &'a KernelPlan<'a>,
    /// dom0's memory.
    pub view: View<'a>,
    pub machine: &'a Machine,
    /// The card.
    pub mailbox: &'a Mailbox,
    /// The driver as dom0 described it.
    pub info: Info,
    /// dom0 addresses of the adapter.
    pub adapter: Range<u64>,
    /// The transmit ring.
    pub tx: Ring,
    /// The receive ring.
    pub rx: Ring,
    fields: HashMap<String, (u64, u64)>,
}

impl<'a> Anatomy<'a> {
    /// Searches the driver's memory. `None` if it is not as expected: another
    /// driver, or one that is not open.
    pub fn find(
        plan: &'a KernelPlan<'a>,
        machine: &'a Machine,
        mailbox: &'a Mailbox,
        info: Info,
    ) -> Option<Anatomy<'a>> {
        let view = plan.view(machine);
        let fields = fields::fields(plan, &view)?;
        let adapter = info.netdev_priv..info.netdev_priv + ADAPTER_SIZE;
        let rings = [("tx", nic::Ring::Transmit), ("rx", nic::Ring::Receive)];
        let [tx, rx] = rings.map(|(name, ring)| {
            let base = mailbox.device().driver_ring(ring).base;
            find_ring(&view, &adapter, name, base)
        });
        Some(Anatomy {
            plan,
            view,
            machine,
            mailbox,
            info,
            adapter,
            tx: tx?,
            rx: rx?,
            fields,
        })
    }

    /// Offset and size of a kernel structure's field.
    ///
    /// # Panics
    /// If layout.c does not list it.
    pub fn field(&self, name: &str) -> (u64, u64) {
        let field = self.fields.get(name);
        *field.unwrap_or_else(|| panic!("kernel/layout.c lists no {name}"))
    }

    /// The word at a dom0 address.
    pub fn word(&self, at: u64) -> Option<u64> {
        word(&self.view, at)
    }

    /// Whether a word is an address of dom0's memory other than code.
    pub fn is_data(&self, word: u64) -> bool {
        self.plan.space().machine_address(word).is_some() && !self.plan.is_code(word)
    }

    /// dom0 addresses of the words in `range` for which `is` is true.
    pub fn words(&self, range: Range<u64>, is: impl Fn(u64) -> bool) -> Vec<u64> {
        let places = (range.start.next_multiple_of(8)..range.end).step_by(8);
        places
            .filter(|at| self.word(*at).is_some_and(&is))
            .collect()
    }

    /// dom0 addresses of words of the adapter that point to functions of the
    /// driver's.
    pub fn function_pointers(&self) -> Vec<u64> {
        self.words(self.adapter.clone(), |word| {
            let function = self.plan.function_at(word);
            function.is_some_and(|(module, _)| module == Module::Driver)
        })
    }

    /// The `sk_buff`s that wait for transmission.
    pub fn sending(&self) -> Vec<u64> {
        let (dev, _) = self.field("sk_buff.dev");
        let array = self.tx.buffer_array(TX_BUFFER);
        let is_ours = |word: u64| {
            self.is_data(word)
                && word.is_multiple_of(8)
                && self.word(word + dev) == Some(self.info.net_device)
        };
        let places = self.words(array, is_ours);
        places.iter().filter_map(|at| self.word(*at)).collect()
    }

    /// The first transmit queue.
    pub fn queue(&self) -> Option<u64> {
        self.word(self.info.net_device + self.field("net_device._tx").0)
    }
}

fn word(view: &View<'_>, at: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    view.read(at, &mut bytes)?;
    Some(u64::from_le_bytes(bytes))
}

/// The ring whose descriptors are at bus address `base`.
fn find_ring(view: &View<'_>, adapter: &Range<u64>, name: &'static str, base: u64) -> Option<Ring> {
    let pointers = (adapter.start..adapter.end).step_by(8);
    let at = pointers
        .filter_map(|at| word(view, at))
        .find(|at| at.is_multiple_of(8) && word(view, at + 8) == Some(base) && base != 0)?;
    let sizes = word(view, at + 16)?;
    let (bytes, count) = (sizes & 0xffff_ffff, sizes >> 32);
    if bytes != count * DESCRIPTOR {
        return None;
    }
    let is_pointer = |at: &u64| word(view, *at).is_some_and(|w| view.pointer(w, 8).is_some());
    let buffers_at = (at + 24..at + RING).step_by(8).find(is_pointer)?;
    Some(Ring {
        name,
        at,
        descriptors: word(view, at)?,
        count,
        buffers: word(view, buffers_at)?,
        buffers_at,
    })
}
