//! Pointers to functions, and functions that must not be called by them.

use super::Striker;
use crate::hypervisor::payload;
use crate::image::Module;
use crate::inject::fault::{FaultKind, Struck};
use crate::memory::EXCHANGE;

/// Where forged tables of functions are: after the memory that commands use.
const FORGED: u64 = EXCHANGE.end - 0x1000;

impl Striker<'_, '_> {
    pub(super) fn bad_function(&mut self, kind: FaultKind) -> Option<u64> {
        let plan = self.anatomy.plan;
        let code = plan.code(Module::Driver)?;
        Some(match kind {
            FaultKind::FunctionNowhere => self.wild(),
            FaultKind::FunctionMiddle => loop {
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
                    process_lab::runtime::entry("twin_stlb_call")?,
                    // dom0's host, which no driver calls.
                    crate::memory::FAR + self.random.below(256),
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

    /// In the adapter, the napi, or through a forged `net_device_ops`.
    pub(super) fn function_pointer(&mut self, target: u64) -> Option<Struck> {
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
}
