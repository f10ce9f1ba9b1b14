//! Upcalls: arguments and results, and failures.

use std::time::Duration;

use e1000_sim::dom0::Failure;
use e1000_sim::hypervisor::upcall::{self, Upcall, UpcallError};
use e1000_sim::memory::driver_stack;
use e1000_sim::transport::mailbox::Counter;
use e1000_sim::transport::rendezvous::{Limits, NoAnswer};

use crate::driver_stack::DriverStack;
use crate::world::{LIMITS, World, value};

fn up(
    world: &World,
    name: &str,
    arguments: [u64; 6],
    stack: &[u64],
    window: std::ops::Range<u64>,
    limits: &Limits,
) -> Result<(u64, u64), UpcallError> {
    let upcall = Upcall {
        function: world.plan.symbol(name).expect("a function"),
        arguments,
        stack,
        window,
    };
    // SAFETY: the window is empty or in the driver stack, which the test mapped
    // and has for itself.
    unsafe { upcall::call(&world.mailbox.get().upcalls[1], &upcall, limits) }
}

#[test]
fn upcalls_pass_eight_arguments_and_two_results() {
    let world = World::new();
    let _dom0 = world.dom0();
    let plain = |name, arguments, stack: &[u64]| {
        up(&world, name, arguments, stack, 0..0, &LIMITS).expect("an answer")
    };
    let (sum, _) = plain("small_add", [1, 2, 3, 4, 5, 6], &[7, 8]);
    assert_eq!(sum, (1..=8).map(|i| i * i).sum::<u64>());
    assert_eq!(plain("small_pair", [3, 4, 0, 0, 0, 0], &[]), (3, 4));
    assert_eq!(plain("small_cpu", [0; 6], &[]).0, 1, "they run as CPU 1");
    assert_eq!(world.mailbox.get().counters.get(Counter::Upcalls), 3);
}

#[test]
fn a_variable_on_the_drivers_stack_goes_by_reference() {
    let world = World::new();
    let stack = DriverStack::new();
    let mut parent = world.dom0();
    let range = driver_stack(1);
    let at = range.end - 64;
    // SAFETY: in the mapped driver stack.
    unsafe { (at as *mut u64).write(1234) };
    let call = |window| {
        let arguments = [at, 5678, 0, 0, 0, 0];
        up(
            &world,
            "small_by_reference",
            arguments,
            &[],
            window,
            &LIMITS,
        )
    };
    let (old, _) = call(range.end - 128..range.end).expect("an answer");
    assert_eq!(old, 1234);
    // SAFETY: as above.
    assert_eq!(unsafe { (at as *const u64).read() }, 5678);
    assert_eq!(
        value(&mut parent, "small_calls", &[]),
        1,
        "commands go on beside it"
    );
    // Only the CPU's own driver stack may cross.
    let mut mine = [0u64; 2];
    let low = mine.as_mut_ptr() as u64;
    match call(low..low + 16) {
        Err(UpcallError::Failed(Failure::Window)) => {}
        other => panic!("{other:?}"),
    }
    drop(stack);
}

#[test]
fn an_upcall_that_oopses_hangs_or_finds_dom0_dead_is_an_error() {
    let world = World::new();
    let mut dom0 = world.dom0();
    let short = Limits {
        time: Duration::from_millis(300),
        ..LIMITS
    };
    let call = |name, limits: &Limits| up(&world, name, [0x7000; 6], &[], 0..0, limits);
    match call("small_wild", &LIMITS) {
        Err(UpcallError::Oops(oops)) => assert_eq!(oops.address, 0x7000),
        other => panic!("{other:?}"),
    }
    assert!(call("small_calls", &LIMITS).is_ok(), "it serves on");
    match call("small_hang", &short) {
        Err(UpcallError::NoAnswer(NoAnswer::Timeout(_))) => {}
        other => panic!("{other:?}"),
    }
    match call("small_calls", &short) {
        Err(UpcallError::NoAnswer(NoAnswer::Busy)) => {}
        other => panic!("{other:?}"),
    }
    assert_eq!(value(&mut dom0, "small_calls", &[]), 2, "CPU 0 goes on");
    dom0.kill();
    match call("small_calls", &LIMITS) {
        Err(UpcallError::NoAnswer(NoAnswer::Dead)) => {}
        other => panic!("{other:?}"),
    }
}
