//! The clock stops the driver wherever it is, and the report has the locks that it held.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use e1000_sim::engines::twin::TwinEngine;
use e1000_sim::hypervisor::instance::{DriverAbort, Stopped};
use e1000_sim::hypervisor::time_limit;
use e1000_sim::memory::{DIRECT_MAP, Sizes};
use e1000_sim::packets::packet_loop::{Engine, Stop};
use e1000_sim::packets::rings::Request;
use e1000_sim::packets::round::sources;
use e1000_sim::system::System;
use e1000_sim::traffic::source::Shape;
use e1000_sim::transport::rendezvous::Limits;
use process_lab::program::Scheme;

#[path = "system.rs"]
mod system;

type Test = fn(&System<'_>, &mut TwinEngine<'_>);

/// All tests.
pub fn run(scheme: Scheme) {
    let tests: [(&str, Test); 4] = [
        (
            "a lock that nobody frees",
            a_hot_routine_that_waits_is_stopped,
        ),
        ("a long string instruction", a_string_instruction_is_stopped),
        ("the driver's lock", the_drivers_lock_is_reported),
        ("the queue's lock", the_queues_lock_is_reported),
    ];
    system::each_alone(scheme, limits, &tests, with_engine);
}

fn limits() -> Limits {
    Limits::of_seconds(30)
}

fn with_engine(system: &System<'_>, test: Test) {
    let mut engine = system.twin(limits()).expect("an instance");
    let limit = engine.instance.limit_time(Duration::from_millis(20));
    limit.expect("a clock");
    test(system, &mut engine);
}

fn word(system: &System<'_>, at: u64) -> u64 {
    let mut bytes = [0; 8];
    system.memory().read(at, &mut bytes).expect("dom0's memory");
    u64::from_le_bytes(bytes)
}

/// The offset of a kernel structure's field, as kernel.o has it.
fn offset(system: &System<'_>, name: &str) -> u64 {
    let plan = &system.blueprint().plan;
    let fields = e1000_sim::image::fields::fields(plan, &system.memory());
    fields.expect("kernel.o's table")[name].0
}

fn transmit(system: &System<'_>, engine: &mut TwinEngine<'_>) -> DriverAbort {
    let mut source = sources(system.machine(), 1, Shape::Frames(1000)).remove(0);
    let mut request = Request::default();
    let packet = source.prepare().expect("a free slot");
    source.describe(&packet, &mut request);
    engine.submit(0, 0, &request);
    assert!(matches!(engine.transmit(1), Err(Stop::Driver(_))));
    match engine.take_stopped() {
        Some(Stopped::Aborted(report)) => report,
        other => panic!("not aborted: {other:?}"),
    }
}

/// The transmit queue's lock is another's: `_raw_spin_lock` spins until the clock ends it.
fn a_hot_routine_that_waits_is_stopped(system: &System<'_>, engine: &mut TwinEngine<'_>) {
    let queue = word(
        system,
        system.info.net_device + offset(system, "net_device._tx"),
    );
    let lock = queue + offset(system, "netdev_queue._xmit_lock");
    system
        .memory()
        .write(lock, &1u32.to_le_bytes())
        .expect("the lock");
    let report = transmit(system, engine);
    assert!(report.is_time_limit(), "{report}");
    assert!(report.place.contains("_raw_spin_lock"), "{report}");
    assert_eq!(report.locks, [], "it holds none: it waits");
}

/// Sends the clock's ticks to the calling thread for as long as `work` takes, so that they come
/// in the middle of it however fast the machine is.
fn under_ticks<T>(work: impl FnOnce() -> T) -> T {
    let done = AtomicBool::new(false);
    // SAFETY: plain system calls.
    let (process, thread) = unsafe { (libc::getpid(), libc::gettid()) };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::Acquire) {
                // SAFETY: the thread is alive, and handles the signal.
                unsafe { libc::syscall(libc::SYS_tgkill, process, thread, time_limit::signal()) };
                std::thread::sleep(Duration::from_micros(50));
            }
        });
        let result = work();
        done.store(true, Ordering::Release);
        result
    })
}

/// One byte of dom0's unused memory copied over the rest of it, in one `rep movs`: the clock
/// comes in the middle.
fn a_string_instruction_is_stopped(_: &System<'_>, engine: &mut TwinEngine<'_>) {
    const UNUSED: u64 = 24 << 20;
    let from = DIRECT_MAP + UNUSED;
    let length = Sizes::default().dom0 - UNUSED - 1;
    for _ in 0..1000 {
        let call = |engine: &mut TwinEngine<'_>| {
            (engine.instance).call("memcpy", &[from + 1, from, length])
        };
        match under_ticks(|| call(engine)) {
            // The other thread had no processor meanwhile.
            Ok(_) => {}
            Err(Stopped::Aborted(report)) => {
                assert!(report.is_time_limit(), "{report}");
                assert!(report.place.contains("memcpy"), "{report}");
                return;
            }
            Err(other) => panic!("{other}"),
        }
    }
    panic!("no tick comes while {length} bytes are copied");
}

/// `e1000_update_stats` takes the driver's own lock, and reads registers: these are gone.
fn the_drivers_lock_is_reported(system: &System<'_>, engine: &mut TwinEngine<'_>) {
    let adapter = system.info.netdev_priv;
    let registers = (adapter..adapter + 0x9b0).step_by(8);
    let bar = e1000_sim::memory::BAR;
    let mut places = registers.filter(|at| word(system, *at) == bar);
    let hw_addr = places.next().expect("the adapter knows its registers");
    let nowhere = 0x5555_5555_5555_0000_u64;
    system
        .memory()
        .write(hw_addr, &nowhere.to_le_bytes())
        .expect("the adapter");
    let report = match engine.instance.call("e1000_update_stats", &[adapter]) {
        Err(Stopped::Aborted(report)) => report,
        other => panic!("not aborted: {other:?}"),
    };
    let [lock] = &report.locks[..] else {
        panic!("one lock: {report}");
    };
    assert!(
        (adapter..adapter + 0x9b0).contains(&lock.address),
        "{report}"
    );
    assert_eq!(lock.name, None);
    assert!(lock.by.starts_with("e1000_update_stats+"), "{report}");
    assert_eq!(word(system, lock.address) & 0xff, 1, "dom0 finds it taken");
    assert!(report.to_string().contains("; locks held: "), "{report}");
}

/// The device's operations are nowhere: an abort inside of `hot_transmit`, which holds the
/// queue's lock.
fn the_queues_lock_is_reported(system: &System<'_>, engine: &mut TwinEngine<'_>) {
    let queue = word(
        system,
        system.info.net_device + offset(system, "net_device._tx"),
    );
    let ops = system.info.net_device + offset(system, "net_device.netdev_ops");
    system
        .memory()
        .write(ops, &8u64.to_le_bytes())
        .expect("the device");
    let report = transmit(system, engine);
    let held = report
        .locks
        .iter()
        .find(|lock| lock.name == Some("netdev_queue._xmit_lock"));
    let held = held.unwrap_or_else(|| panic!("not reported: {report}"));
    assert_eq!(
        held.address,
        queue + offset(system, "netdev_queue._xmit_lock")
    );
    assert_eq!(held.by, "hot_transmit");
}
