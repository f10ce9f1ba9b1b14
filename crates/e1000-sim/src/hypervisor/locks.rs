//! Locks that a CPU holds by their own word: those of the hot routines, and the transmit
//! queue's, whose holder the network core notes. They lie in dom0's memory, so what they
//! say is dom0's word; locks that the driver takes are noted by the runtime
//! (`twin_note_lock`).

use elf_loader::Object;

use super::instance::Lock;
use crate::image::{KernelPlan, Module, fields};
use crate::memory::CPUS;
use crate::memory::view::View;
use crate::packets::rings::{QUEUE_OWNER, SHARED_SIZE};

/// `struct hot_shared.tx_done_lock` (guest.h).
const TX_DONE_LOCK: u64 = 68;
/// `HOT_POOLS` (runtime/hot/internal.h).
const POOLS: u64 = 3;

/// The locks that `cpu` holds, in the order in which code takes them. Memory that is not as
/// expected has none.
pub(super) fn held(
    plan: &KernelPlan<'_>,
    memory: &View<'_>,
    net_device: u64,
    cpu: usize,
) -> Vec<Lock> {
    let queue = queue_lock(plan, memory, net_device, cpu as u32);
    let done = plan.symbol("hot_shared").into_iter().flat_map(|shared| {
        let at = move |cpu| shared + cpu as u64 * SHARED_SIZE + TX_DONE_LOCK;
        (0..CPUS).map(move |cpu| ("hot_shared.tx_done_lock", at(cpu), "hot_tx_complete"))
    });
    let pools = pools(plan).into_iter();
    let pools = pools.map(|at| ("hot_pool.lock", at, "hot_pool_refill or hot_pool_flush"));
    // A word of ours: the holder's CPU and 1 (hot_lock()).
    let ours = done.chain(pools);
    let ours = ours.filter(|(_, at, _)| word(memory, *at) == Some(cpu as u32 + 1));
    let ours = ours.map(|(name, address, by)| Lock {
        name: Some(name),
        address,
        by: by.to_owned(),
    });
    queue.into_iter().chain(ours).collect()
}

/// `netdev_queue._xmit_lock`, which `hot_transmit` takes.
fn queue_lock(plan: &KernelPlan<'_>, memory: &View<'_>, net_device: u64, cpu: u32) -> Option<Lock> {
    let fields = fields::fields(plan, memory)?;
    let offset = |name: &str| fields.get(name).map(|(offset, _)| *offset);
    let mut queue = [0; 8];
    memory.read(
        net_device.wrapping_add(offset("net_device._tx")?),
        &mut queue,
    )?;
    let queue = u64::from_le_bytes(queue);
    let lock = queue.wrapping_add(offset("netdev_queue._xmit_lock")?);
    let owner = queue.wrapping_add(offset("netdev_queue.xmit_lock_owner")?);
    let ours = word(memory, lock)? & 0xff != 0 && word(memory, owner)? == QUEUE_OWNER + cpu;
    ours.then(|| Lock {
        name: Some("netdev_queue._xmit_lock"),
        address: lock,
        by: "hot_transmit".to_owned(),
    })
}

/// dom0 addresses of the pools' locks, which are their first words.
fn pools(plan: &KernelPlan<'_>) -> Vec<u64> {
    let size = plan.image(Module::Hot).map(|hot| size(&hot.object));
    match (plan.symbol("hot_pools"), size) {
        (Some(start), Some(size)) => (0..POOLS).map(|i| start + i * size / POOLS).collect(),
        _ => Vec::new(),
    }
}

fn size(hot: &Object<'_>) -> u64 {
    let mut symbols = hot.symbols();
    let found = symbols.find(|(_, symbol)| symbol.name == "hot_pools");
    found.map_or(0, |(_, symbol)| symbol.size)
}

fn word(memory: &View<'_>, at: u64) -> Option<u32> {
    let mut bytes = [0; 4];
    memory.read(at, &mut bytes)?;
    Some(u32::from_le_bytes(bytes))
}
