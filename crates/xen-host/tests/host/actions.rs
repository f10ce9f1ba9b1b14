//! Attachments on a dom0 that is made up: each step fails once, and everything is as it was.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use crate::made_up::{self, MadeUp};
use crate::usual;
use xen_host::{CardCheck, Failed, Kit, Status, System, Why, attach, detach, restart};

/// Makes a payload, as far as `xen-livepatch` of this dom0 looks at it.
fn payload(made: &MadeUp) -> Result<PathBuf, String> {
    made.write("twin.livepatch", "a payload");
    Ok(made.path("twin.livepatch"))
}

fn attached(made: &MadeUp) -> Result<PathBuf, Failed<String>> {
    let (system, kit) = (System::at(made.root()), Kit::at(made.kit()));
    attach(&system, &kit, "eth0", CardCheck::AsSet, || payload(made))
}

fn steps(made: &MadeUp) -> String {
    String::from_utf8(made.read("root/state/steps")).expect("text")
}

/// What went wrong.
fn why(failed: &Failed<String>) -> String {
    match &failed.why {
        Why::Step(refusal) => refusal.to_string(),
        Why::Made(why) => why.clone(),
    }
}

#[test]
fn attached_and_detached_nothing_is_left() {
    let made = usual();
    let system = System::at(made.root());
    let before = made.picture();
    attached(&made).expect("it is attached");
    let status = Status::read(&system).expect("a status").expect("modules");
    assert!(status.drives("eth0") && !status.drives("eth1"));
    let xen = status.xen.expect("an instance");
    assert_eq!((xen.transmitted, xen.last_abort), (2006, None));
    restart(&system, "eth0").expect("restarted");
    detach(&system, "eth0").expect("detached");
    assert_eq!(made.picture(), before);
    let all = format!(
        "load {}\nrevert twin\nunload twin\n",
        made.path("twin.livepatch").display()
    );
    assert_eq!(steps(&made), all);
    let again = detach(&system, "eth0").expect_err("nothing is there");
    assert_eq!(again.code.as_str(), "xen-not-attached");
}

/// A step that fails: with these words, after which all is as it was.
fn undone(file: &str, text: &str, words: &str) {
    let made = usual();
    made.write(&format!("root/state/{file}"), text);
    let before = made.picture();
    let failed = attached(&made).expect_err(file);
    assert!(why(&failed).contains(words), "{file}: {}", why(&failed));
    assert_eq!(failed.left, None, "{file}");
    assert_eq!(made.picture(), before, "{file}");
}

/// The modules are loaded by then.
#[test]
fn a_defect_while_the_payload_is_made_leaves_nothing() {
    let made = usual();
    let before = made.picture();
    let (system, kit) = (System::at(made.root()), Kit::at(made.kit()));
    let make = || -> Result<PathBuf, String> { panic!("a defect of our own") };
    let attach = AssertUnwindSafe(|| attach(&system, &kit, "eth0", CardCheck::AsSet, make));
    assert!(catch_unwind(attach).is_err());
    assert_eq!(made.picture(), before);
}

#[test]
fn whatever_step_fails_all_is_undone() {
    let kernel = "3,9,9,-;twin: per-CPU data of this kernel lies beyond 256 KiB\n";
    undone(
        "fail-twin_dom0",
        kernel,
        "Invalid module format (per-CPU data of",
    );
    undone("fail-twin_hot", "", "insmod: insmod: ERROR");
    let xen = "(XEN) twin: not applied: CET is on: start Xen with cet=no\n";
    undone("fail-load", xen, "Xen says: twin: not applied: CET is on");
    let kernel = "3,7,7,-;twin: Xen refuses eth0: -22 no memory for packets\n\
                  3,8,8,-;twin: eth0 is not attached: -22\n";
    undone(
        "fail-attach",
        kernel,
        "dom0's kernel: Xen refuses eth0: -22 no memory for packets (No",
    );
    undone(
        "status-attached",
        made_up::ATTACHED.replace("state 1", "state 2").as_str(),
        "does not say",
    );
}

#[test]
fn a_payload_that_cannot_be_made_is_no_payload() {
    let made = usual();
    let before = made.picture();
    let (system, kit) = (System::at(made.root()), Kit::at(made.kit()));
    let none = || Err::<PathBuf, _>("no address".to_owned());
    let failed = attach(&system, &kit, "eth0", CardCheck::AsSet, none).expect_err("no payload");
    assert_eq!((why(&failed).as_str(), &failed.left), ("no address", &None));
    assert_eq!(made.picture(), before);
}

#[test]
fn modules_that_were_there_before_stay() {
    let made = usual();
    let (system, kit) = (System::at(made.root()), Kit::at(made.kit()));
    made.write("root/state/fail-load", "");
    let dom0 = kit.module(made_up::RELEASE, "twin_dom0");
    system.run("insmod", &[&dom0]).expect("loaded");
    let before = made.picture();
    attached(&made).expect_err("refused");
    assert_eq!(made.picture(), before);
}

const CARD_CHECK: &str = "root/sys/module/twin_dom0/parameters/dma";

fn unchecked(made: &MadeUp) -> Result<PathBuf, Failed<String>> {
    let (system, kit) = (System::at(made.root()), Kit::at(made.kit()));
    attach(&system, &kit, "eth0", CardCheck::Off, || payload(made))
}

#[test]
fn what_the_driver_gives_to_the_card_is_checked_unless_it_is_not_wanted() {
    let made = usual();
    attached(&made).expect("it is attached");
    assert_eq!(made.read(CARD_CHECK), b"1\n");
    detach(&System::at(made.root()), "eth0").expect("detached");
    unchecked(&made).expect("it is attached");
    assert_eq!(made.read(CARD_CHECK), b"0\n");
    detach(&System::at(made.root()), "eth0").expect("detached");
}

#[test]
fn the_check_is_as_it_was_after_an_attachment_that_failed() {
    for (before, fails) in [("1", "load"), ("0", "attach"), ("1", "dma"), ("0", "dma")] {
        let made = usual();
        let dom0 = Kit::at(made.kit()).module(made_up::RELEASE, "twin_dom0");
        let system = System::at(made.root());
        system.run("insmod", &[&dom0]).expect("loaded");
        made.write(CARD_CHECK, format!("{before}\n"));
        made.write(&format!("root/state/fail-{fails}"), "");
        let picture = made.picture();
        let failed = unchecked(&made).expect_err("refused");
        assert_eq!(failed.left, None, "{fails}");
        assert_eq!(made.picture(), picture, "{fails}");
    }
}

#[test]
fn a_module_of_another_build_is_not_used() {
    let made = usual();
    made.write("root/state/note-twin_hot", "another");
    let before = made.picture();
    let failed = attached(&made).expect_err("another build");
    assert!(
        why(&failed).contains("twin_hot is loaded from another build"),
        "{}",
        why(&failed)
    );
    assert_eq!(made.picture(), before);
}

#[test]
fn a_step_that_came_too_late_is_tried_again() {
    let made = usual();
    for step in ["load", "revert"] {
        made.write(&format!("root/state/late-{step}"), "");
    }
    attached(&made).expect("the second time");
    detach(&System::at(made.root()), "eth0").expect("the second time");
    assert!(!made.path("root/state/payload").exists());
}

#[test]
fn what_cannot_be_undone_is_said() {
    let made = usual();
    made.write("root/state/fail-attach", "");
    made.write("root/state/fail-rmmod", "");
    let failed = attached(&made).expect_err("refused");
    let left = failed.left.as_ref().expect("a module").to_string();
    assert!(left.contains("Module twin_hot is in use"), "{left}");
    assert!(!made.path("root/state/payload").exists());
}

#[test]
fn half_a_payload_is_taken_out_or_said_to_be_left() {
    let made = usual();
    let before = made.picture();
    let change = |name: &str| made.write(&format!("root/state/{name}"), "");
    let back = |name: &str| std::fs::remove_file(made.path(&format!("root/state/{name}")));
    change("fail-load");
    change("half-load");
    assert_eq!(attached(&made).expect_err("refused").left, None);
    change("fail-unload");
    let left = attached(&made).expect_err("refused").left;
    let left = left.expect("the payload").to_string();
    assert!(left.contains("`xen-livepatch unload`"), "{left}");
    for name in ["fail-load", "half-load", "fail-unload"] {
        back(name).expect("it is there");
    }
    detach(&System::at(made.root()), "eth0").expect("cleared up");
    assert_eq!(made.picture(), before);
}

#[test]
fn a_payload_below_another_is_not_waited_for() {
    let made = usual();
    let system = System::at(made.root());
    attached(&made).expect("attached");
    let line = "(XEN) livepatch: twin: can't unload. Top is other\n";
    made.write("root/state/busy-revert", line);
    let refusal = detach(&system, "eth0").expect_err("it is below");
    assert!(refusal.to_string().contains("Top is other"), "{refusal}");
    let log = system.text("state/xl-dmesg").expect("a log");
    assert_eq!(log.matches(line).count(), 1, "one try");
    std::fs::remove_file(made.path("root/state/busy-revert")).expect("it is there");
    detach(&system, "eth0").expect("cleared up");
}

#[test]
fn what_a_killed_attachment_left_is_taken_away() {
    let made = usual();
    let (system, kit) = (System::at(made.root()), Kit::at(made.kit()));
    let before = made.picture();
    let dom0 = kit.module(made_up::RELEASE, "twin_dom0");
    system.run("insmod", &[&dom0]).expect("loaded");
    made.write("root/state/payload", "CHECKED\n");
    assert!(!detach(&system, "eth0").expect("cleared up").was_attached);
    assert_eq!(made.picture(), before);
}

#[test]
fn a_payload_that_xen_cannot_be_asked_about_is_not_called_gone() {
    let made = usual();
    let system = System::at(made.root());
    let before = made.picture();
    attached(&made).expect("attached");
    made.write("root/state/fail-list", "Error 13: Permission denied\n");
    let refusal = detach(&system, "eth0").expect_err("it may be there");
    assert_eq!(refusal.code.as_str(), "xen-livepatch", "{refusal}");
    assert!(
        refusal.to_string().contains("Permission denied"),
        "{refusal}"
    );
    let status = Status::read(&system).expect("a status").expect("modules");
    assert_eq!(status.interface, None);
    detach(&system, "eth0").expect_err("still");
    std::fs::remove_file(made.path("root/state/fail-list")).expect("it is there");
    detach(&system, "eth0").expect("the rest");
    assert_eq!(made.picture(), before);
}

#[test]
fn another_interface_is_not_detached() {
    let made = usual();
    attached(&made).expect("attached");
    let before = made.picture();
    let system = System::at(made.root());
    for refusal in [
        detach(&system, "eth1").err(),
        restart(&system, "eth1").err(),
    ] {
        let refusal = refusal.expect("another").to_string();
        assert!(refusal.contains("eth0 is; give that"), "{refusal}");
    }
    assert_eq!(made.picture(), before);
}

#[test]
fn modules_stay_for_guests() {
    let made = usual();
    attached(&made).expect("attached");
    made.write(
        "root/sys/bus/xen-backend/drivers/twin-vif/vif-1-0/there",
        "",
    );
    let system = System::at(made.root());
    let left = detach(&system, "eth0").expect("detached");
    assert!(left.was_attached);
    assert_eq!(left.interfaces, ["vif-1-0"]);
    assert!(made.path("root/sys/module/twin_dom0").exists());
    assert!(!made.path("root/state/payload").exists());
    // And the driver may come back.
    attached(&made).expect("attached again");
}

#[test]
fn a_restart_that_fails_gives_the_interface_back() {
    let made = usual();
    let system = System::at(made.root());
    let before = made.picture();
    attached(&made).expect("attached");
    made.write(
        "root/state/fail-restart",
        "3,9,9,-;twin: eth0 does not come to rest\n",
    );
    let refusal = restart(&system, "eth0")
        .expect_err("still attached")
        .to_string();
    assert!(refusal.contains("eth0 does not come to rest"), "{refusal}");
    assert!(made.path("root/state/payload").exists());
    made.write("root/state/lost", "");
    let refusal = restart(&system, "eth0").expect_err("detached").to_string();
    assert!(refusal.contains("eth0 is dom0's again"), "{refusal}");
    for change in ["fail-restart", "lost"] {
        std::fs::remove_file(made.path(&format!("root/state/{change}"))).expect("it is there");
    }
    assert_eq!(made.picture(), before);
}

#[test]
fn one_at_a_time() {
    let made = usual();
    let system = System::at(made.root());
    let first = system.exclusive().expect("the first");
    let refusal = system.exclusive().expect_err("the second");
    assert_eq!(refusal.code.as_str(), "xen-busy");
    drop(first);
    system.exclusive().expect("after it");
}

/// Or anybody could hold it.
#[test]
fn the_lock_is_the_owners_alone() {
    let made = usual();
    let lock = made.path("root/run/twin-xen.lock");
    let mode = || {
        std::fs::metadata(&lock)
            .expect("a lock")
            .permissions()
            .mode()
            & 0o777
    };
    let system = System::at(made.root());
    drop(system.exclusive().expect("nobody has it"));
    assert_eq!(mode(), 0o600);
    std::fs::set_permissions(&lock, Permissions::from_mode(0o644)).expect("as before");
    drop(system.exclusive().expect("nobody has it"));
    assert_eq!(mode(), 0o600);
}
