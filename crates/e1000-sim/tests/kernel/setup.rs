//! A dom0 that runs the shim, with or without the driver, and its memory.

use std::sync::{Mutex, PoisonError};

use e1000_sim::dom0::host;
use e1000_sim::dom0::interface::{Counters, Plain};
use e1000_sim::dom0::{CommandError, Dom0};
use e1000_sim::image::files::Files;
use e1000_sim::image::{KernelPlan, Missing};
use e1000_sim::memory::{Machine, Sizes};
use e1000_sim::transport::mailbox::Mailbox;
use e1000_sim::transport::rendezvous::Limits;

pub const MAC: [u8; 6] = [0x52, 0x54, 0, 0x12, 0x34, 0x56];
pub const MILLISECOND: u64 = 1_000_000;
pub const SECOND: u64 = 1000 * MILLISECOND;

pub type Tested = Result<(), CommandError>;

/// Runs `test` with a dom0 that has power and nothing booted. One at a time:
/// the process forks, and should have no other busy threads then.
pub fn with_dom0(test: impl FnOnce(&mut Dom0<'_, '_>) -> Tested) {
    static ALONE: Mutex<()> = Mutex::new(());
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let files = Files::find().unwrap_or_else(|error| panic!("{error}"));
    let plan = KernelPlan::new(
        Sizes::default(),
        &files.modules(),
        &host::address,
        Missing::Refuse,
    )
    .unwrap_or_else(|error| panic!("{error}"));
    let machine = Machine::new(plan.space().sizes()).expect("memory");
    let mailbox = Mailbox::new().expect("memory");
    mailbox.get().power_on(MAC);
    let limits = Limits::of_seconds(60);
    let mut dom0 = Dom0::start(&plan, &machine, mailbox.get(), limits).expect("dom0");
    if let Err(error) = test(&mut dom0) {
        panic!("{error}\n{}", mailbox.get().console.since(0));
    }
    if std::env::var_os("TWIN_LOG").is_some() {
        println!("{}", mailbox.get().console.since(0));
    }
}

/// As `with_dom0`, with the driver loaded, open and the link up.
pub fn with_link(test: impl FnOnce(&mut Dom0<'_, '_>) -> Tested) {
    with_dom0(|dom0| {
        dom0.boot()?;
        dom0.load("")?;
        dom0.open()?;
        dom0.link_wait(10 * SECOND)?;
        test(dom0)
    });
}

/// A structure at a dom0 address.
pub fn peek<T: Plain>(dom0: &Dom0<'_, '_>, address: u64) -> T {
    let mut bytes = vec![0; size_of::<T>()];
    read(dom0, address, &mut bytes);
    // SAFETY: any bytes are a value.
    unsafe { bytes.as_ptr().cast::<T>().read_unaligned() }
}

pub fn read(dom0: &Dom0<'_, '_>, address: u64, bytes: &mut [u8]) {
    let machine = dom0
        .plan()
        .space()
        .machine_address(address)
        .expect("dom0's");
    dom0.machine().read(machine, bytes).expect("memory");
}

pub fn write(dom0: &Dom0<'_, '_>, address: u64, bytes: &[u8]) {
    let machine = dom0
        .plan()
        .space()
        .machine_address(address)
        .expect("dom0's");
    dom0.machine().write(machine, bytes).expect("memory");
}

pub fn word(dom0: &Dom0<'_, '_>, address: u64) -> u64 {
    let mut bytes = [0; 8];
    read(dom0, address, &mut bytes);
    u64::from_le_bytes(bytes)
}

pub fn counters(dom0: &mut Dom0<'_, '_>) -> Result<Counters, CommandError> {
    let info = dom0.info()?;
    Ok(peek(dom0, info.counters))
}

pub fn heap_is_sound(dom0: &mut Dom0<'_, '_>) -> Tested {
    assert_eq!(dom0.call("kernel_check_heap", &[])?.value, 0);
    Ok(())
}
