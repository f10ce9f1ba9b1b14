//! Each condition on a dom0 that is made up: all hold, and each of them fails alone.

use crate::made_up::{self, BUILD_ID, MadeUp, RELEASE};
use crate::usual;
use xen_host::{Check, Facts, Kit, System, Verdict, checks, works};

fn judged(made: &MadeUp, interface: Option<&str>) -> Vec<Check> {
    let system = System::at(made.root());
    checks(&Facts::read(&system, &Kit::at(made.kit()), interface))
}

/// The codes of those that do not hold, with what was found and what to do.
fn others(checks: &[Check]) -> Vec<(&'static str, Verdict, String)> {
    let others = checks
        .iter()
        .filter(|check| check.verdict != Verdict::Holds);
    others
        .map(|check| {
            let remedy = check.remedy.as_deref().expect("what to do");
            assert!(!remedy.is_empty(), "{}", check.what);
            (
                check.code.as_str(),
                check.verdict,
                format!("{}; {remedy}", check.found),
            )
        })
        .collect()
}

/// One change to a dom0 in which all holds: this condition alone fails, and these words say it.
fn fails(code: &str, words: &str, change: impl FnOnce(&MadeUp)) {
    is(code, Verdict::Fails, words, change);
}

fn is(code: &str, verdict: Verdict, words: &str, change: impl FnOnce(&MadeUp)) {
    let made = usual();
    change(&made);
    let checks = judged(&made, Some("eth0"));
    assert_eq!(works(&checks), verdict != Verdict::Fails, "{code}");
    let others = others(&checks);
    let [(found, judged, said)] = &others[..] else {
        panic!("{code} alone: {others:?}")
    };
    assert_eq!((*found, *judged), (code, verdict), "{said}");
    assert!(said.contains(words), "{code}: {said}");
}

/// Another text in a file of the tree.
fn text<'a>(file: &'a str, text: &'a str) -> impl FnOnce(&MadeUp) + 'a {
    move |made| made.write(&format!("root/{file}"), text)
}

fn without(file: &str) -> impl FnOnce(&MadeUp) {
    let file = file.to_owned();
    move |made| {
        let path = made.path(&file);
        match path.is_dir() {
            true => std::fs::remove_dir_all(path),
            false => std::fs::remove_file(path),
        }
        .expect("it is there");
    }
}

/// A line of `xl info` is another.
fn xl_info(old: &'static str, new: &'static str) -> impl FnOnce(&MadeUp) {
    move |made| {
        let info = String::from_utf8(made.read("root/state/xl-info")).expect("text");
        assert!(info.contains(old));
        made.write("root/state/xl-info", info.replace(old, new));
    }
}

#[test]
fn all_hold() {
    let made = usual();
    let checks = judged(&made, Some("eth0"));
    assert_eq!(others(&checks), []);
    assert_eq!(checks.len(), 16);
    assert_eq!(judged(&made, None).len(), 14);
}

#[test]
fn without_xen_nothing_else_is_said() {
    for (change, code) in [
        ("sys/hypervisor/type", "xen-none"),
        ("sys/hypervisor/guest_type", "xen-dom0"),
        ("proc/xen/capabilities", "xen-dom0"),
    ] {
        let made = usual();
        without(&format!("root/{change}"))(&made);
        let checks = judged(&made, Some("eth7"));
        assert_eq!(checks.len(), 1, "{change}");
        assert_eq!(others(&checks)[0].0, code, "{change}");
    }
    fails(
        "xen-none",
        "runs on kvm",
        text("sys/hypervisor/type", "kvm\n"),
    );
    fails(
        "xen-dom0",
        "dom0 is PVH",
        text("sys/hypervisor/guest_type", "PVH\n"),
    );
}

#[test]
fn without_xenfs_the_features_say_that_it_is_dom0() {
    let made = usual();
    without("root/proc/xen/capabilities")(&made);
    made.write("root/sys/hypervisor/properties/features", "00000b05\n");
    assert_eq!(others(&judged(&made, Some("eth0"))), []);
    made.write("root/sys/hypervisor/properties/features", "00000305\n");
    assert_eq!(others(&judged(&made, Some("eth0")))[0].0, "xen-dom0");
}

#[test]
fn the_machine() {
    let cpuinfo = "flags : fpu bmi1\n";
    fails("xen-processor", "no BMI2", text("proc/cpuinfo", cpuinfo));
    fails("xen-memory", "mem=4G", xl_info("2047", "4096"));
    let log = "(XEN) Xen version 4.17\n(XEN) Enabling Supervisor Shadow Stacks\n";
    fails("xen-cet", "cet=no", text("state/xl-dmesg", log));
}

#[test]
fn what_dom0_cannot_know_is_left_to_xen() {
    let unknown = Verdict::Unknown;
    is("xen-memory", unknown, "3500 MiB", xl_info("2047", "3500"));
    is(
        "xen-memory",
        unknown,
        "total_memory",
        xl_info("total_memory", "other"),
    );
    is(
        "xen-cet",
        unknown,
        "is gone",
        text("state/xl-dmesg", "(XEN) d1 gone\n"),
    );
    // Xen's own limit: the last one counts, and it does not change what is too much.
    let made = usual();
    xl_info("2047", "3500")(&made);
    xl_info("dom0_mem=1024M", "mem=8G mem=4G dom0_mem=1024M")(&made);
    assert_eq!(others(&judged(&made, Some("eth0"))), []);
}

#[test]
fn what_is_installed() {
    let modules = format!("kit/modules/{RELEASE}/twin_hot.ko");
    fails("xen-modules", "but for 6.1.0-56-amd64", without(&modules));
    fails("xen-modules", "none are installed", without("kit/modules"));
    fails("xen-platform", "No such file", without("kit/twin-xen.o"));
    fails("xen-platform", "ELF", |made| {
        made.write("kit/twin-xen.o", "x".repeat(99))
    });
    let table = format!("kit/tables/{BUILD_ID}.table");
    fails(
        "xen-build",
        "there is no table of the build 151b",
        without(&table),
    );
    fails("xen-build", "twin-xen-table 2", |made| {
        made.write(&table, "nothing")
    });
    fails("xen-build", "not 151b373", |made| {
        let text = String::from_utf8(made.read(&table)).expect("text");
        let lines = text.replace("151b", "251b");
        let body = lines.split_once("sha256").expect("the digest").0;
        made.write(&table, payload::sealed(body));
    });
    fails("xen-build", "build_id", xl_info("build_id", "other"));
}

#[test]
fn modules_that_are_loaded_from_another_build() {
    let note = "root/state/note-twin_hot";
    for (bytes, foreign) in [(None, false), (Some("another"), true)] {
        let made = usual();
        let bytes = bytes.map_or(made.read(note), |text| text.as_bytes().to_vec());
        made.write("root/sys/module/twin_hot/initstate", "live\n");
        made.write("root/sys/module/twin_hot/notes/.note.gnu.build-id", bytes);
        let others = others(&judged(&made, Some("eth0")));
        assert_eq!(others.len(), usize::from(foreign), "{others:?}");
        for (code, _, said) in others {
            assert_eq!(code, "xen-modules");
            assert!(
                said.contains("twin_hot loaded from another build"),
                "{said}"
            );
        }
    }
}

#[test]
fn dom0_does_without_the_interface() {
    let four = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
                eth1\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n\
                eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n";
    let zero = "0".repeat(32);
    let six = format!(
        "{zero} 00 {zero} 00 fe80{:028} 00000400 00000001 00000000 00450003     eth1\n\
         {zero} 00 {zero} 00 {zero} ffffffff 00000001 00000000 00200200       lo\n\
         fe80{:028} 40 {zero} 00 {zero} 00000100 00000001 00000000 00000001     eth0\n",
        1, 0
    );
    let made = usual();
    made.write("root/proc/net/route", four);
    made.write("root/proc/net/ipv6_route", &six);
    assert_eq!(others(&judged(&made, Some("eth0"))), []);
    let route = "a default route of dom0's leads through eth0";
    let four = four.replace("eth1", "eth0");
    fails("xen-own-traffic", route, text("proc/net/route", &four));
    let six = six.replace("eth1", "eth0");
    fails("xen-own-traffic", route, text("proc/net/ipv6_route", &six));
    fails("xen-own-traffic", "eth0 is a port of br0", |made| {
        let link = made.path("root/sys/class/net/eth0/master");
        std::os::unix::fs::symlink("../br0", link).expect("a link");
    });
}

#[test]
fn interfaces_that_are_made_of_it() {
    let above = |made: &MadeUp, name: &str| {
        let link = made.path(&format!("root/sys/class/net/eth0/upper_{name}"));
        std::os::unix::fs::symlink(format!("../{name}"), link).expect("a link");
    };
    fails(
        "xen-own-traffic",
        "the packets of eth0.5 go through eth0; ",
        |made| {
            above(made, "eth0.5");
        },
    );
    // The kernel has a link of that kind to the bridge, too.
    fails("xen-own-traffic", "eth0 is a port of br0; ", |made| {
        above(made, "br0");
        let link = made.path("root/sys/class/net/eth0/master");
        std::os::unix::fs::symlink("../br0", link).expect("a link");
    });
}

#[test]
fn another_livepatch_in_xen() {
    let list = |state: &str| {
        format!(
            " ID                                     | status     | metadata\n\
             ----------------------------------------+------------+---------------\n\
             xsa500                                  | {state}    | \n"
        )
    };
    fails(
        "xen-in-use",
        "Xen has the livepatch xsa500, and twin's has to be its first; `xen-livepatch revert xsa500`",
        text("state/list", &list("APPLIED")),
    );
    // One that does nothing is not in the way.
    let made = usual();
    made.write("root/state/list", list("CHECKED"));
    assert_eq!(others(&judged(&made, Some("eth0"))), []);
}

#[test]
fn xens_tools() {
    let tool = "root/usr/lib/xen-4.17/bin/xen-livepatch";
    fails(
        "xen-tools",
        "xen-livepatch: it is not installed",
        without(tool),
    );
    let unpatchable = "Error 38: Function not implemented\n";
    fails(
        "xen-tools",
        "Error 38",
        text("state/fail-list", unpatchable),
    );
}

#[test]
fn the_kernel() {
    let enforced = text("sys/module/module/parameters/sig_enforce", "Y\n");
    fails("xen-signatures", "module.sig_enforce", enforced);
    let locked = text(
        "sys/kernel/security/lockdown",
        "none [integrity] confidentiality\n",
    );
    fails("xen-signatures", "lockdown", locked);
    let zeroes = text("proc/kallsyms", "0000000000000000 T startup_64\n");
    fails("xen-addresses", "zeroes", zeroes);
    let netback = text("sys/module/xen_netback/initstate", "live\n");
    fails("xen-netback", "modprobe -r xen-netback", netback);
    // Not if dom0's module was there first.
    let made = usual();
    for module in ["xen_netback", "twin_dom0"] {
        made.write(&format!("root/sys/module/{module}/initstate"), "live\n");
    }
    assert_eq!(others(&judged(&made, Some("eth0"))), []);
}

#[test]
fn the_driver() {
    fails(
        "xen-driver",
        "not loaded",
        without("root/sys/module/e1000/initstate"),
    );
    fails(
        "xen-driver",
        "no file",
        without(&format!("root/lib/modules/{RELEASE}/modules.dep")),
    );
    let note = "sys/module/e1000/notes/.note.gnu.build-id";
    fails("xen-driver", "another build", text(note, "another"));
    fails(
        "xen-driver",
        "tells builds of it apart",
        without(&format!("root/{note}")),
    );
    let module = format!("root/lib/modules/{RELEASE}/kernel/drivers/e1000.ko");
    fails("xen-driver", "No such file", without(&module));
}

#[test]
fn the_interface() {
    fails(
        "xen-interface",
        "there is no eth0",
        without("root/sys/class/net/eth0"),
    );
    fails(
        "xen-interface",
        "ip link set eth0 up",
        text("sys/class/net/eth0/flags", "0x1002\n"),
    );
    fails("xen-interface", "of the driver igb", |made| {
        made.device("eth0", "igb")
    });
    fails(
        "xen-interface",
        "of no device",
        without("root/sys/class/net/eth0/device"),
    );
    let queue = text("sys/class/net/eth0/queues/tx-1/tx_timeout", "0\n");
    fails("xen-interface", "2 transmit queues", queue);
    let shared = text("sys/kernel/irq/11/actions", "eth0,uhci_hcd:usb1,eth1\n");
    fails("xen-interface", "uhci_hcd:usb1 and eth1", shared);
    let large = text("sys/class/net/eth0/mtu", "9000\n");
    fails("xen-interface", "ip link set eth0 mtu 1500", large);
    let made = usual();
    for outside in ["", ".", "..", "../net/eth0", "eth0/"] {
        let checks = judged(&made, Some(outside));
        assert_eq!(others(&checks)[0].0, "xen-interface", "{outside:?}");
    }
}

#[test]
fn what_is_in_the_way() {
    fails(
        "xen-in-use",
        "twin xen detach",
        text("state/payload", "CHECKED\n"),
    );
    let attached = text("sys/kernel/twin/status", made_up::ATTACHED);
    fails("xen-in-use", "eth0 is driven inside Xen already", attached);
    let other = text("sys/kernel/twin/status", "interface -\n");
    fails("xen-in-use", "no line dropped-egress", other);
}
