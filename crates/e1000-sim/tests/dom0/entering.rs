//! Kernel code entered and left: by its end, by a warning, by an oops.

use std::sync::atomic::Ordering;

use e1000_sim::dom0::enter::{self, EnterError};
use e1000_sim::transport::command::Command;
use e1000_sim::transport::mailbox::Counter;

use crate::world::{COUNT_UP, PANIC, World, oops, value};

/// Nothing else advances the clock: e1000's loopback test would hang on a packet that
/// does not come back.
#[test]
fn kernel_code_that_spins_on_the_clock_sees_it_move() {
    let world = World::new();
    let mut dom0 = world.dom0();
    let waited = value(&mut dom0, "small_wait", &[20]);
    assert!((20..30).contains(&waited), "{waited} jiffies");
}

#[test]
fn functions_get_arguments_and_print() {
    let world = World::new();
    let mut dom0 = world.dom0();
    let sum = value(&mut dom0, "small_add", &[1, 1, 1, 1, 1, 1]);
    assert_eq!(sum, 21);
    let answer = dom0.call("small_say", &[]).expect("said");
    assert_eq!(answer.console, "<6> hello\n");
}

#[test]
fn an_oops_names_the_place_and_dom0_goes_on() {
    let world = World::new();
    let mut dom0 = world.dom0();
    let report = oops(&mut dom0, "small_wild", &[0x7000]);
    assert!(
        report.contains("page fault at 0x7000 in small_load+"),
        "{report}"
    );
    assert!(report.contains("\n  small_wild+"), "{report}");
    let report = oops(&mut dom0, "small_wild", &[1 << 63 | 1]);
    assert!(report.contains("general protection fault"), "{report}");
    let report = oops(&mut dom0, "small_nobody", &[]);
    assert!(report.contains("stub of nobodys"), "{report}");
    let report = oops(&mut dom0, "small_jump", &[0x7000]);
    assert!(
        report.contains("page fault at 0x7000 in 0x7000"),
        "{report}"
    );
    assert!(report.contains("small_jump+"), "{report}");
    let report = oops(&mut dom0, "small_overflow", &[0]);
    assert!(report.contains("small_overflow+"), "{report}");
    let error = dom0.call("small_fatal", &[]).expect_err("fatal");
    assert!(error.to_string().contains("oops: the end"), "{error}");
    assert_eq!(world.mailbox.get().counters.get(Counter::Oopses), 6);
    assert_eq!(value(&mut dom0, "small_calls", &[]), 1);
}

#[test]
fn a_warning_goes_on_and_a_bug_does_not() {
    let world = World::new();
    let mut dom0 = world.dom0();
    let answer = dom0.call("small_warn", &[5]).expect("goes on");
    assert_eq!(answer.value, 6);
    assert!(
        answer.console.contains("WARNING in small_warn+"),
        "{}",
        answer.console
    );
    assert!(answer.console.contains("line 77"), "{}", answer.console);
    let report = oops(&mut dom0, "small_bug", &[5]);
    assert!(report.contains("BUG"), "{report}");
}

#[test]
fn kernel_code_is_not_entered_twice() {
    let world = World::new();
    let mut dom0 = world.dom0();
    assert_eq!(value(&mut dom0, "small_nested", &[]), 1);
    assert_eq!(value(&mut dom0, "small_calls", &[]), 1);
    // SAFETY: this thread is no CPU, so nothing is entered.
    let refused = unsafe { enter::enter(0, [0; 6]) };
    assert_eq!(refused, Err(EnterError::NotAttached));
}

#[test]
fn a_host_function_that_is_given_nonsense_is_an_oops() {
    let world = World::new();
    let mut dom0 = world.dom0();
    let report = oops(&mut dom0, "small_print", &[0x7000, 64]);
    assert!(report.contains("page fault at 0x70"), "{report}");
    assert!(report.contains("small_print+"), "{report}");
    let answer = dom0.call("small_say", &[]).expect("said");
    assert_eq!(answer.console, "<6> hello\n", "the console's lock is free");
}

#[test]
fn work_runs_in_dom0() {
    let world = World::new();
    let mut dom0 = world.dom0();
    let work = |number| Command::Work {
        number,
        arguments: [1000, 0, 0, 0, 0],
    };
    let answer = dom0.command("count up", work(COUNT_UP)).expect("counted");
    assert_eq!(answer.value, 1000);
    let at = world
        .plan
        .percpu_symbol("per_cpu_count", 2)
        .expect("percpu");
    let view = world.plan.view(&world.machine);
    assert_eq!(view.word64(at).map(|w| w.load(Ordering::Relaxed)), Some(40));
    let error = dom0.command("panic", work(PANIC)).expect_err("ended");
    let text = error.to_string();
    assert!(text.contains("ended with status 101"), "{text}");
    assert!(text.contains("on purpose"), "{text}");
}
