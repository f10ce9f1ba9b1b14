//! A dom0 that is made up: a tree of the files that `twin xen` reads, and programs that do to
//! that tree what dom0's own would do to the kernel and to Xen.
//!
//! ```text
//! root/                 what is read; programs in usr/sbin; `kernel` answers controls
//! root/state/           what the programs keep; fail-STEP makes a step fail, with its text,
//!                       busy-STEP as one that came too late;
//!                       list is what Xen has of others' livepatches; half-load leaves a payload all the same;
//!                       new-MODULE takes its file's place before it is loaded; a pipe `wait` makes insmod wait for its end
//! kit/                  what is installed for twin
//! ```
//!
//! The programs are scripts that find the root in $ROOT.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

pub const RELEASE: &str = "6.1.0-56-amd64";
pub const BUILD_ID: &str = "151b373fd64b321593bf987fd923cd10dabadac4";

const XL: &str = r#"case $1 in
info) cat "$ROOT/state/xl-info" ;;
dmesg) cat "$ROOT/state/xl-dmesg" ;;
esac"#;

/// Keeps the payload's state in a file. A step with a reason to fail leaves a line in Xen's log.
const XEN_LIVEPATCH: &str = r#"payload=$ROOT/state/payload
if [ "$1" = list ]; then
    [ ! -e "$ROOT/state/fail-list" ] || { cat "$ROOT/state/fail-list" >&2; exit 1; }
    [ ! -e "$ROOT/state/list" ] || { cat "$ROOT/state/list"; exit 0; }
    [ -e "$payload" ] || { echo 'Nothing to list'; exit 0; }
    echo ' ID                                     | status     | metadata'
    echo '----------------------------------------+------------+---------------'
    echo "twin                                    | $(cat "$payload")    | "
    exit 0
fi
fail=$ROOT/state/fail-$1
[ ! -e "$ROOT/state/late-$1" ] || { rm "$ROOT/state/late-$1"; echo 'Error 16: Device or resource busy' >&2; exit 1; }
[ ! -e "$ROOT/state/busy-$1" ] || { cat "$ROOT/state/busy-$1" >>"$ROOT/state/xl-dmesg"; echo 'Error 16: Device or resource busy' >&2; exit 1; }
[ ! -e "$ROOT/state/half-$1" ] || echo CHECKED >"$payload"
[ ! -e "$fail" ] || { cat "$fail" >>"$ROOT/state/xl-dmesg"; echo 'Error 19: No such device' >&2; exit 1; }
echo "$*" >>"$ROOT/state/steps"
case $1 in
load)
    [ ! -e "$payload" ] || { echo 'Error 17: File exists' >&2; exit 1; }
    [ "${2##*/}" = twin.livepatch ] && [ -s "$2" ] || { echo 'Error 22: Invalid argument' >&2; exit 1; }
    echo APPLIED >"$payload" ;;
apply) echo APPLIED >"$payload" ;;
revert) echo CHECKED >"$payload" ;;
unload) rm "$payload" ;;
esac"#;

const INSMOD: &str = r#"name=${1##*/} name=${name%.ko}
[ ! -e "$ROOT/state/fail-$name" ] || {
    cat "$ROOT/state/fail-$name" >>"$ROOT/dev/kmsg"
    echo "insmod: ERROR: could not insert module $1: Invalid module format" >&2
    exit 1
}
[ ! -p "$ROOT/state/wait" ] || cat "$ROOT/state/wait"
[ ! -e "$ROOT/state/new-$name" ] || cp "$ROOT/state/new-$name" "$1"
mkdir -p "$ROOT/sys/module/$name/notes" "$ROOT/sys/module/$name/sections"
echo live >"$ROOT/sys/module/$name/initstate"
echo 0xffffffffc0500000 >"$ROOT/sys/module/$name/sections/.text"
cp "$ROOT/state/note-$name" "$ROOT/sys/module/$name/notes/.note.gnu.build-id"
[ "$name" = twin_dom0 ] || exit 0
mkdir "$ROOT/sys/kernel/twin" "$ROOT/sys/module/$name/parameters"
echo 1 >"$ROOT/sys/module/$name/parameters/dma"
echo 0x0000000000028000 >"$ROOT/sys/kernel/twin/hot_percpu"
cp "$ROOT/state/status-idle" "$ROOT/sys/kernel/twin/status""#;

const RMMOD: &str = r#"[ ! -e "$ROOT/state/fail-rmmod" ] || { echo "rmmod: ERROR: Module $1 is in use" >&2; exit 1; }
rm -r "$ROOT/sys/module/$1"
[ "$1" != twin_dom0 ] || rm -r "$ROOT/sys/kernel/twin""#;

/// Answers the controls of `twin_dom0`.
const KERNEL: &str = r#"control=${1##*/}
fail=$ROOT/state/fail-$control
[ ! -e "$fail" ] || { cat "$fail" >>"$ROOT/dev/kmsg"; [ ! -e "$ROOT/state/lost" ] || cp "$ROOT/state/status-idle" "$ROOT/sys/kernel/twin/status"; exit 19; }
case $control in
attach | restart) cp "$ROOT/state/status-attached" "$ROOT/sys/kernel/twin/status" ;;
detach) cp "$ROOT/state/status-idle" "$ROOT/sys/kernel/twin/status" ;;
dma) echo "$2" >"$ROOT/$1" ;;
esac"#;

const XL_INFO: &str = "nr_cpus                : 16\nmax_cpu_id             : 15\n\
    total_memory           : 2047\nxen_version            : 4.17.7\n\
    xen_commandline        : dom0_mem=1024M,max:1024M\n\
    build_id               : 151b373fd64b321593bf987fd923cd10dabadac4\n";
const XL_DMESG: &str = "(XEN) Xen version 4.17.7 (Debian 4.17.7)\n(XEN) System RAM: 2047MB\n";
const IDLE: &str = "interface -\ndropped-egress 0\nkicks-in-dom0 0\noffload 0\npayload -38\n";
/// As `runtime/dom0/main.c` writes it.
pub const ATTACHED: &str = "interface eth0\ndropped-egress 3\nkicks-in-dom0 1\noffload 0\npayload 0\nstate 1\n\
    stages aggregate 20 bridge 0 storm 1000 notify 0 pace 1 dma 1\nlocal 0\nspoofed 0\nstorm 0\n\
    doorbells 0\ndescriptors 0\nwritten-back 0\nheld-pages 1536\nrefused-writes 0\n\
    interrupts 1990\nentries 4321\nimports 17\naborts 0\nentries-by-processor 4000 321 0 0\n\
    polls 9\nrescheduled 0\ntransmitted 2006\ncompleted 2006\nreceived 3308\nunwanted 12\naggregates 20\nmerged 300\nbusy 0\n\
    upcalls 2\ndirty 1\nlate-aliases 0\nabort-kind 0\nabort-reason 0\nabort-address 0\n\
    abort-rip 0\nabort-entry 0\nabort-what -\nabort-at -\nabort-entered -\nabort-import -\nabort-card -\n\
    vif1.0 kicks 4 notified 5 sent 2006 132396 received 3296 4989144 refused 0 full 2\n";

pub struct MadeUp {
    folder: tempfile::TempDir,
}

impl MadeUp {
    /// A dom0 with an e1000, in which all is as it must be. The three modules are objects with
    /// these texts, and each has a build-id.
    pub fn with_modules(driver: &str, dom0: &str, hot: &str) -> MadeUp {
        let made = MadeUp {
            folder: tempfile::tempdir().expect("a temporary directory"),
        };
        made.system();
        made.programs();
        let e1000 = format!("root/lib/modules/{RELEASE}/kernel/drivers/e1000.ko");
        made.module(&e1000, "e1000", driver);
        for (name, text) in [("twin_dom0", dom0), ("twin_hot", hot)] {
            made.module(&format!("kit/modules/{RELEASE}/{name}.ko"), name, text);
        }
        let note = made.read("root/state/note-e1000");
        made.write("root/sys/module/e1000/notes/.note.gnu.build-id", note);
        let table = payload::sealed(&format!(
            "twin-xen-table 2\nversion 4.17.7\nbuild-id {BUILD_ID}\ninit 1 2\n\
             symbol 0xffff82d040200000 T printk\n"
        ));
        made.write(&format!("kit/tables/{BUILD_ID}.table"), table);
        made
    }

    fn system(&self) {
        for (file, text) in [
            ("sys/hypervisor/type", "xen\n"),
            ("sys/hypervisor/guest_type", "PV\n"),
            ("sys/hypervisor/version/major", "4\n"),
            ("sys/hypervisor/version/minor", "17\n"),
            ("proc/xen/capabilities", "control_d\n"),
            (
                "proc/cpuinfo",
                "processor\t: 0\nflags\t\t: fpu sse2 bmi1 bmi2\n",
            ),
            ("proc/sys/kernel/osrelease", "6.1.0-56-amd64\n"),
            (
                "proc/kallsyms",
                "0000000000000000 A fixed_percpu_data\nffffffff81a00000 T napi_schedule\n",
            ),
            ("sys/module/e1000/initstate", "live\n"),
            ("sys/module/e1000/sections/.text", "0xffffffffc0400000\n"),
            ("sys/module/module/parameters/sig_enforce", "N\n"),
            (
                "sys/kernel/security/lockdown",
                "[none] integrity confidentiality\n",
            ),
            ("sys/class/net/eth0/flags", "0x1003\n"),
            ("sys/class/net/eth0/mtu", "1500\n"),
            ("sys/class/net/eth0/queues/tx-0/tx_timeout", "0\n"),
            ("sys/class/net/eth0/queues/rx-0/rps_cpus", "0\n"),
            ("sys/class/net/lo/flags", "0x9\n"),
            ("sys/kernel/irq/11/actions", "eth0\n"),
            ("sys/kernel/mm/there", ""),
            ("run/there", ""),
            ("dev/kmsg", "6,1,1,-;e1000: eth0 NIC Link is Up\n"),
            ("state/xl-info", XL_INFO),
            ("state/xl-dmesg", XL_DMESG),
            ("state/status-idle", IDLE),
            ("state/status-attached", ATTACHED),
        ] {
            self.write(&format!("root/{file}"), text);
        }
        self.write(
            &format!("root/lib/modules/{RELEASE}/modules.dep"),
            "kernel/fs/ext4.ko: kernel/lib/crc16.ko\nkernel/drivers/e1000.ko:\n",
        );
        self.device("eth0", "e1000");
    }

    fn programs(&self) {
        for (program, text) in [
            ("root/usr/sbin/xl", XL),
            ("root/usr/lib/xen-4.17/bin/xen-livepatch", XEN_LIVEPATCH),
            ("root/sbin/insmod", INSMOD),
            ("root/sbin/rmmod", RMMOD),
            ("root/kernel", KERNEL),
        ] {
            self.write(program, format!("#!/bin/sh\n{text}\n"));
            let executable = fs::Permissions::from_mode(0o755);
            fs::set_permissions(self.path(program), executable).expect("a program");
        }
    }

    /// A module's file, with the note that the kernel would show of it.
    fn module(&self, file: &str, name: &str, text: &str) {
        let digest = name
            .bytes()
            .map(|byte| format!("{byte},"))
            .collect::<String>();
        let note = format!(
            "\n.section .note.gnu.build-id,\"a\",@note\n.long 4,20,3\n.asciz \"GNU\"\n\
             1: .byte {}\n.skip 20-(.-1b)\n.previous\n",
            digest.trim_end_matches(',')
        );
        let bytes = filetests::assemble(format!("{text}{note}"), &["--64"]);
        let object = elf_loader::read(&bytes).expect("an object");
        let id = object.section_named(".note.gnu.build-id").expect("a note");
        self.write(&format!("root/state/note-{name}"), &object.section(id).data);
        self.write(file, &bytes);
    }

    /// An interface of a device with this driver.
    pub fn device(&self, interface: &str, driver: &str) {
        let device = self.path(&format!("root/sys/class/net/{interface}/device"));
        fs::create_dir_all(&device).expect("a directory");
        fs::write(device.join("irq"), "11\n").expect("a file");
        let link = device.join("driver");
        let _ = fs::remove_file(&link);
        std::os::unix::fs::symlink(format!("../../drivers/{driver}"), link).expect("a link");
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn root(&self) -> PathBuf {
        self.path("root")
    }

    pub fn kit(&self) -> PathBuf {
        self.path("kit")
    }

    pub fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(&path, bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
    }

    pub fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Everything of the kernel's and of Xen's that can change: to be the same again.
    pub fn picture(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let mut all = BTreeMap::new();
        for folder in ["root/sys", "root/state"] {
            files(&self.path(folder), &mut all);
        }
        for log in ["steps", "xl-dmesg"] {
            all.remove(&self.path(&format!("root/state/{log}")));
        }
        all
    }
}

/// Files with their bytes; folders, too, without any.
fn files(folder: &Path, all: &mut BTreeMap<PathBuf, Vec<u8>>) {
    all.insert(folder.to_owned(), Vec::new());
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        match path.is_dir() {
            true => files(&path, all),
            false => drop(all.insert(path.clone(), fs::read(&path).unwrap_or_default())),
        }
    }
}
