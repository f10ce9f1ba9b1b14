//! A dom0 that hangs or dies.

use std::time::Duration;

use e1000_sim::transport::rendezvous::Limits;

use crate::world::{LIMITS, World, value};

#[test]
fn a_hanging_dom0_is_noticed_and_a_new_one_serves() {
    let world = World::new();
    let mut dom0 = world.dom0();
    dom0.set_limits(Limits {
        time: Duration::from_millis(300),
        ..LIMITS
    });
    let error = dom0.call("small_hang", &[]).expect_err("hangs");
    assert!(
        error.to_string().contains("no answer within 300ms"),
        "{error}"
    );
    let error = dom0.call("small_calls", &[]).expect_err("busy");
    assert!(error.to_string().contains("still busy"), "{error}");
    drop(dom0);
    let mut dom0 = world.dom0();
    assert_eq!(
        value(&mut dom0, "small_calls", &[]),
        1,
        "its data is new as well"
    );
}

#[test]
fn a_dead_dom0_is_noticed_before_the_limit() {
    let world = World::new();
    let mut dom0 = world.dom0();
    dom0.set_limits(Limits {
        time: Duration::from_secs(600),
        ..LIMITS
    });
    dom0.kill();
    let error = dom0.call("small_calls", &[]).expect_err("dead");
    assert!(error.to_string().contains("died of signal 9"), "{error}");
}

#[test]
fn a_dom0_that_ends_in_a_command_is_noticed() {
    let world = World::new();
    let dom0 = world.dom0();
    dom0.exit();
}
