//! The stable codes of checks and refusals, and their explanations, printed by `twin explain
//! CODE` and collected in `docs/troubleshooting.md`.

use twin_abi::explanation::{Example, Explanation};

twin_abi::listed! {
    /// The stable code of a check, or of a reason why something was not done.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub enum XenCode {
        /// The system does not run on Xen.
        NoXen => "xen-none",
        /// It is not dom0, or another kind of it.
        NoDom0 => "xen-dom0",
        /// Xen's tools are missing, or Xen cannot be patched.
        Tools => "xen-tools",
        /// There is no table of this build of Xen.
        Build => "xen-build",
        /// The processor lacks an instruction.
        Processor => "xen-processor",
        /// There is memory that the card may not reach.
        Memory => "xen-memory",
        /// Xen uses CET.
        Cet => "xen-cet",
        /// The platform's object is not installed.
        Platform => "xen-platform",
        /// dom0's modules are not installed for its kernel.
        Modules => "xen-modules",
        /// The kernel demands signatures.
        Signatures => "xen-signatures",
        /// The kernel's addresses are hidden.
        Addresses => "xen-addresses",
        /// Another backend has the guests' interfaces.
        Netback => "xen-netback",
        /// The driver is not loaded, or its file is another.
        Driver => "xen-driver",
        /// The interface cannot be used.
        Interface => "xen-interface",
        /// dom0's own packets go through the interface.
        OwnTraffic => "xen-own-traffic",
        /// Something is attached already.
        InUse => "xen-in-use",
        /// Nothing is attached, or another interface.
        NotAttached => "xen-not-attached",
        /// The status cannot be read.
        State => "xen-status",
        /// A module could not be loaded or unloaded.
        Module => "xen-module",
        /// Xen refused a step with the payload.
        Livepatch => "xen-livepatch",
        /// dom0's kernel refused a step.
        Kernel => "xen-kernel",
        /// Something could not be undone.
        HalfDone => "xen-half-done",
        /// Another `twin xen` is at work.
        Busy => "xen-busy",
    }
}

impl XenCode {
    /// What it means, why it matters, what to do, an example.
    pub fn explanation(self) -> Explanation {
        let (meaning, why, remedy, example) = text(self);
        Explanation {
            meaning,
            why,
            remedy,
            example: Example::Text(example),
        }
    }
}

type Text = (&'static str, &'static str, &'static str, &'static str);

fn text(code: XenCode) -> Text {
    match code {
        XenCode::NoXen => (
            "The system does not run on Xen.",
            "The driver is put into Xen by its livepatch loader, from dom0.",
            "Install Xen (`apt install xen-system-amd64`), and choose it when the machine starts. `cat /sys/hypervisor/type` then says `xen`.",
            "$ twin xen check\ntwin: this system runs on no hypervisor that it knows of ...",
        ),
        XenCode::NoDom0 => (
            "The system is a guest of Xen's, or a dom0 that is not paravirtual.",
            "dom0 has the driver's data, and its page tables are what Xen shows the driver. Of a PVH dom0 they are not Xen's.",
            "Run `twin xen` in dom0, as root, with xenfs mounted on /proc/xen. Start Xen without `dom0=pvh`.",
            "$ cat /sys/hypervisor/guest_type\nPVH",
        ),
        XenCode::Tools => (
            "`xl` or `xen-livepatch` is missing or fails.",
            "The payload is loaded by `xen-livepatch`; `xl` tells what the machine has.",
            "Install xen-utils of the Xen that runs; Debian's xen-system-amd64 brings it. A Xen that was built without CONFIG_LIVEPATCH cannot be used.",
            "$ xen-livepatch list\nError 38: Function not implemented",
        ),
        XenCode::Build => (
            "There is no table of the hypervisor that runs, by its build-id.",
            "Each build has its structures and functions elsewhere. A number of another build would be a wrong address inside Xen.",
            "Run scripts/xen-install.sh again: it makes a table of the hypervisor in /boot. After an update of Xen start the machine anew first, so that the one in /boot is the one that runs.",
            "$ xl info | grep build_id\nbuild_id               : 151b373fd64b321593bf987fd923cd10dabadac4",
        ),
        XenCode::Processor => (
            "The processor has no BMI2.",
            "The scheme `window` cuts addresses with `pext`.",
            "Use a machine with BMI2: Intel since Haswell, AMD since Excavator.",
            "$ grep -c bmi2 /proc/cpuinfo\n0",
        ),
        XenCode::Memory => (
            "The machine has memory above 4 GiB.",
            "The cards of this driver get 32-bit addresses here; a packet above would have to be copied, which is not done.",
            "Start Xen with `mem=4G`: it then does not use what is above.",
            "$ xl info | grep total_memory\ntotal_memory           : 32604",
        ),
        XenCode::Cet => (
            "Xen has turned shadow stacks or branch tracking on.",
            "An abort leaves the driver's stack at once, which a shadow stack takes for an attack.",
            "Start Xen with `cet=no`.",
            "$ xl dmesg | grep Enabling\n(XEN) Enabling Supervisor Shadow Stacks",
        ),
        XenCode::Platform => (
            "The runtime's object for Xen, twin-xen.o, is not installed or is damaged.",
            "It is what the driver runs on inside Xen.",
            "Run scripts/xen-install.sh in twin's source, or name the directory with --kit or $TWIN_XEN.",
            "$ ls /usr/local/lib/twin/xen\nmodules  tables  twin-xen.o  vif-twin",
        ),
        XenCode::Modules => (
            "dom0's modules are not installed for the kernel that runs.",
            "A module fits one kernel.",
            "Install the headers of the kernel that runs (`apt install linux-headers-$(uname -r)`), and run scripts/xen-install.sh again.",
            "$ ls /usr/local/lib/twin/xen/modules\n6.1.0-55-amd64",
        ),
        XenCode::Signatures => (
            "The kernel loads only modules that are signed by a key it knows.",
            "dom0's modules are built on your machine, and not signed.",
            "Turn secure boot off, or start the kernel without `module.sig_enforce` and `lockdown=`.",
            "$ cat /sys/kernel/security/lockdown\nnone [integrity] confidentiality",
        ),
        XenCode::Addresses => (
            "/proc/kallsyms does not show the kernel's addresses.",
            "The payload has them as constants.",
            "Run `twin xen` as root. If root sees zeroes too: `sysctl kernel.kptr_restrict=1`.",
            "$ head -n 1 /proc/kallsyms\n0000000000000000 T startup_64",
        ),
        XenCode::Netback => (
            "xen-netback was loaded before dom0's module of twin's.",
            "Of the two backends the one that is loaded first has the guests' interfaces, and their packets then go through dom0.",
            "Shut down guests that have interfaces, `modprobe -r xen-netback`, and attach before they are started again. udev loads it when a guest's interface appears: `blacklist xen-netback` in /etc/modprobe.d keeps it away.",
            "$ ls /sys/bus/xen-backend/drivers\nvbd  vif",
        ),
        XenCode::Driver => (
            "The driver e1000 is not loaded as a module, or the file in /lib/modules is not what is loaded.",
            "The file is what is rewritten, and the module's data is what the rewritten code uses: both have to be of one build.",
            "`modprobe e1000`. After an update of the kernel's package start the machine anew.",
            "$ ls /sys/module/e1000/notes/.note.gnu.build-id",
        ),
        XenCode::Interface => (
            "The interface is not there, is another driver's, is down, has several queues or an MTU above 1,500 bytes, or shares the interrupt of its card with another device.",
            "One card of the driver e1000 is served. All its interrupts go to Xen: those of a device on the same line would, too.",
            "Give an interface of e1000's, and set it up: `ip link set eth0 up mtu 1500`. For an interrupt of its own put the card into another slot, or unload the other device's driver.",
            "$ basename $(readlink /sys/class/net/eth0/device/driver)\ne1000",
        ),
        XenCode::OwnTraffic => (
            "dom0's own packets go through the interface: it is a port of a bridge or a bond, a default route of dom0's leads through it, or another interface is made of it, as that of a VLAN.",
            "While its driver is in Xen, dom0's packets to it are dropped. You may be logged in by it.",
            "Give dom0 another way, then take this one away: `ip route del default dev eth0`, `ip link set eth0 nomaster`, `ip link del eth0.5`. Guests on the bridge need another interface, or a `vif` of twin's.",
            "$ ip route show default\ndefault via 192.0.2.1 dev eth0",
        ),
        XenCode::InUse => (
            "An interface is attached, or a payload of an earlier attachment is in Xen, or another livepatch is.",
            "One driver runs inside Xen at a time, and a payload is good for one start of dom0's modules. It is made for Xen as it was built, so no other livepatch may be applied before it; Xen refuses it then.",
            "`twin xen status` shows which it is; `twin xen detach DEV` clears up. Another livepatch has to be reverted, with `xen-livepatch revert NAME`; a fix of Xen's own is worth more than a driver in it.",
            "$ xen-livepatch list\ntwin                                    | APPLIED",
        ),
        XenCode::NotAttached => (
            "The interface is not driven inside Xen.",
            "Detaching another one would be a surprise.",
            "`twin xen status` shows which one is.",
            "$ twin xen detach eth1",
        ),
        XenCode::State => (
            "The status of dom0's modules cannot be read, or has not the lines of this release.",
            "What is not understood is not shown as something else.",
            "Run as root. Modules and `twin` must be of one release: detach with the one that attached.",
            "$ cat /sys/kernel/twin/status",
        ),
        XenCode::Module => (
            "A module of twin's could not be loaded or unloaded.",
            "The message has the kernel's reason.",
            "For `Invalid module format` build them for this kernel, with scripts/xen-install.sh. A module in use is let go when the guests that use it have ended.",
            "$ insmod twin_dom0.ko\ninsmod: ERROR: could not insert module twin_dom0.ko: Invalid module format",
        ),
        XenCode::Livepatch => (
            "Xen refused the payload, or did not let it go.",
            "The message has Xen's own reason, from its log.",
            "Do what the reason says. `Error 16` after many tries: Xen's processors were too busy to stop for 30 ms; try again when there is less to do.",
            "(XEN) twin: not applied: CET is on: start Xen with cet=no",
        ),
        XenCode::Kernel => (
            "dom0's kernel refused to attach, detach or restart.",
            "The message has the reason from the kernel's log.",
            "Do what the reason says. An attachment that failed has been undone.",
            "twin: Xen refuses eth0: -19 the interrupt's handler is no function of the payload's driver",
        ),
        XenCode::HalfDone => (
            "An attachment failed, and a step of it could not be undone.",
            "This message says what is left, the next one why the attachment failed.",
            "`twin xen detach DEV` tries to clear up again. If that fails too, start the machine anew.",
            "rmmod: ERROR: Module twin_dom0 is in use; it stays loaded",
        ),
        XenCode::Busy => (
            "Another `twin xen` is changing this system.",
            "Two at once would undo each other's steps.",
            "Wait until it has ended.",
            "$ twin xen attach eth0 & twin xen attach eth0",
        ),
    }
}
