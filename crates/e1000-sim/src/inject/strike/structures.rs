//! The kernel's structures: socket buffers, the network device, locks, and the
//! interface between guests and hot routines.

use super::Striker;
use crate::inject::fault::{Struck, wild_index};
use crate::packets::rings::SHARED_SIZE;

impl Striker<'_, '_> {
    pub(super) fn a_sk_buff(&mut self) -> Option<u64> {
        match self.receiving {
            Some(buffer) => Some(buffer),
            None => {
                let sending = self.anatomy.sending();
                self.one_of(&sending)
            }
        }
    }

    pub(super) fn sk_buff(&mut self) -> Option<Struck> {
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

    pub(super) fn device_pointer(&mut self) -> Option<Struck> {
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

    /// In `struct hot_shared` of the hypervisor's CPU (guest.h), or in data that it
    /// points to.
    pub(super) fn interface(&mut self) -> Option<Struck> {
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

    pub(super) fn held_lock(&mut self) -> Option<Struck> {
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
}
