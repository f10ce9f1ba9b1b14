#!/bin/sh
# Boots Debian's stock Xen, dom0 and a guest under QEMU's emulation, moves the guest's
# packets, and judges what the scripts inside report (scripts/xen/lines.sh).
#
#   scripts/xen.sh [SCENARIO[:PROCESSORS]...]
#
# A scenario is a script scripts/xen/dom0-SCENARIO.sh:
#   baseline   through dom0's stock netback, bridge and e1000: the comparison
#   modules    dom0's modules of runtime/dom0, without anything inside Xen
#   attach     the driver inside Xen: guests, wild pointers, and back
#   faults     hand-written driver code inside Xen that faults in every way
#   again      taken back and given again ten times, in a guest's transfers
#   busy       the same while dom0 has other work, guests die, and talk with each other
#   retype     a dom0 that makes page tables of pages that the window shows
#   offload    a card that neither segments nor gathers nor computes checksums: it is done for it
#   spoof      a guest that sends with others' sources and floods everybody, beside another one
#   dma        a driver that gives pages to the card which are not for it
#   changes    rings, MTU and speed changed in mid-transfer, the carrier lost, the interface set down
#   campaign   many faults in the driver's data, in a guest's transfers
#   large      64 MiB each way by two guests at once
#   save       a guest is saved and restored in its transfers
#   command    the same as attach by `twin xen`: refusals, undone attachments, guests, back
#   upcalls    driver code calls dom0's kernel; a dom0 that does not answer
#   processors offline and online again while the driver is in Xen; it needs two
#   stuck      a card that completes nothing any more: a detachment that dom0 gives up, then a
#              forced one
#   pvh        guests with hardware paging
#   frontend   guests' interfaces that come and go
#   two        more cards of the driver, dom0's own, and one on the same interrupt line
#   reset      the driver's watchdog in dom0 wants to reset the card
#   xenstore   a guest that writes anything to its part of xenstore
#   livepatches  another livepatch before twin's and after it, and what `xen-livepatch` refuses meanwhile
#   toolstack  debug keys, pools, the interface's settings, a Xen without memory; and a panic of dom0's
#   neighbours tracers, VLANs and the like on the interface, its threads, its name, its namespace
#   handover   given to Xen and taken back while dom0's other processor writes to the card; the
#              modules' memory, the longest name, deferred polls
#   down       the card removed, dom0 put to sleep, and shut down, in a guest's transfers
#   migrate    a guest is moved to another pool, is saved and goes on, is moved to another domain
#   reboot     a guest starts anew, with stock netback and with twin's
#   error      the card's bus has an error, and the card is reset behind its driver
#   sample     attach in short: one guest, one wild pointer in mid-transfer
#   count      instructions a packet, by dom0 and by the driver inside Xen; one processor
#   rows       the same of TCP beside the papers' figures: large packets and frames, segments merged and not,
#              a byte there and one back; one processor
#   arrivals   the same of frames that come one by one
# Without arguments all but sample: processors, stuck, pvh, frontend, two, reset, xenstore, livepatches, toolstack,
# neighbours, handover, migrate, reboot, error and down with two processors, campaign, save, count, rows and arrivals with one, the others with one and
# with two.
#
# Needs target/stock, target/xen (scripts/xen-packages.sh, xen-modules.sh, xen-payload.sh, and
# xen-install.sh for `command`, `livepatches` and `spoof`) and, without privileges, QEMU and busybox (scripts/setup.sh). For
# Debian 13's, target/stock-6.12 and target/xen-trixie (scripts/xen/release.sh).
# Leaves target/xen/run/SCENARIO-PROCESSORS/: console.log (Xen and dom0), results.log (the
# lines), the initramfs. The last line is
#   xen: N scenarios, M steps, K failed
# and the status is 0 only if every scenario came to its end and no step failed.
#
#   TWIN_XEN_RELEASE  of Debian, which Xen and dom0 are of: bookworm (default) or trixie
#   TWIN_XEN_HYPERVISOR  another build of Xen, of the release's version: its package. All else is the release's, and
#                   the payload knows that build by its table alone (scripts/xen-table.sh)
#   TWIN_XEN_DOM0   how many processors dom0 has, in words for Xen's command line (default: one, the
#                   first, of its own)
#   TWIN_XEN_GUEST_CPUS  processors that guests run on, in words for xl (default: the last one)
#   TWIN_XEN_GUEST  release of the guests' kernel (default: the same)
#   TWIN_XEN_MIB    MiB that a guest moves each way, twice over one connection (default 8); in
#                   large once, and 64
#   TWIN_XEN_FAULTS faults of `campaign` (default 500)
#   TWIN_XEN_LIMIT  seconds that a scenario may take (default 1800; campaign, whose 500 faults take most of that, 7200)
#   TWIN_XEN_FRAMES frames that `count` sends and receives of each size, and `arrivals` receives; segments of `rows` (default 2000)
#   TWIN_XEN_GUESTS guests that are connected while `count` counts one's frames (default 1, at most 8)
#   TWIN_XEN_STAGES parameters of twin_dom0.ko, separated by commas, and last `offload`, with which the card
#                   neither segments nor gathers nor computes checksums: bridge=1,notify=16,offload
#                   (not in count, rows, arrivals, spoof, livepatches and command)
#   TWIN_XEN_PATIENCE  how many times longer every wait inside may take (default 1)
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)
parts=$root/scripts/xen
. "$parts/release.sh"
guest=${TWIN_XEN_GUEST:-$xen_release}
patience=${TWIN_XEN_PATIENCE:-1}
dom0_processors=${TWIN_XEN_DOM0:-dom0_max_vcpus=1 dom0_vcpus_pin}
frames=${TWIN_XEN_FRAMES:-2000}
guests=${TWIN_XEN_GUESTS:-1}

die() {
    printf 'xen.sh: %s\n' "$*" >&2
    exit 1
}

. "$parts/programs.sh"
. "$parts/count.sh"
. "$parts/wire.sh"
. "$parts/livepatch.sh"

# ---- Initramfs -----------------------------------------------------------------

# archive FOLDER: an initramfs of it, uncompressed.
archive() {
    (cd "$1" && find . | sort | busybox cpio -o -H newc 2>/dev/null)
}

# A folder with a shell and the scripts that all systems have.
system() {
    mkdir -p "$1/bin" "$1/proc" "$1/sys" "$1/dev" "$1/tmp" "$1/run"
    cp "$xen/root/${xen_merged}bin/busybox" "$1/bin/busybox"
    "$1/bin/busybox" --list | while read -r applet; do
        [ "$applet" = busybox ] || ln -s busybox "$1/bin/$applet"
    done
    cp "$parts/lines.sh" "$parts/traffic.sh" "$1/"
}

guest_system() {
    system "$1"
    cp "$parts/guest-init" "$1/init"
    cp "$guest_stock/modules/kernel/drivers/net/xen-netfront.ko" "$1/"
}

# modules_of FOLDER: dom0's modules with what they depend on, where modprobe finds them.
dom0_modules='
drivers/xen/xen-privcmd drivers/xen/xen-evtchn drivers/xen/xen-gntdev drivers/xen/xen-gntalloc
drivers/xen/xenfs/xenfs drivers/net/xen-netback/xen-netback
drivers/net/ethernet/intel/e1000/e1000 net/bridge/bridge net/802/stp net/llc/llc
drivers/net/netconsole fs/configfs/configfs net/core/pktgen
net/8021q/8021q net/802/garp net/802/mrp drivers/net/macvlan drivers/net/ipvlan/ipvlan
drivers/net/bonding/bonding net/tls/tls drivers/xen/xen-pciback/xen-pciback
'
modules_of() {
    tree=$1/lib/modules/$release
    for module in $dom0_modules; do
        mkdir -p "$tree/kernel/${module%/*}"
        cp "$modules/kernel/$module.ko" "$tree/kernel/$module.ko"
    done
    cp "$modules/modules.order" "$modules/modules.builtin" "$modules/modules.builtin.modinfo" "$tree/"
    depmod -b "$1" "$release"
}

# Debian's programs in their own places, libraries all in one folder.
dom0_system() {
    system "$1"
    for command in insmod modprobe lsmod rmmod depmod modinfo; do
        ln -sf kmod "$1/bin/$command"
    done
    for path in $dom0_programs; do
        mkdir -p "$1/${path%/*}"
        cp -L "$xen/root/$path" "$1/$path"
    done
    [ -e "$1/bin/kmod" ] || mv "$1/usr/bin/kmod" "$1/bin/"
    for command in read write ls list; do
        ln -s xenstore "$1/usr/bin/xenstore-$command"
    done
    mkdir -p "$1/lib64" "$1/lib/x86_64-linux-gnu"
    for path in $(libraries "$xen/root"); do
        case $path in
        # Where every program looks for its loader (psABI, 5.2.1).
        */ld-linux-x86-64.so.2) cp -L "$xen/root/$path" "$1/lib64/" ;;
        *) cp -L "$xen/root/$path" "$1/lib/x86_64-linux-gnu/" ;;
        esac
    done
    modules_of "$1"
    mkdir -p "$1/etc/xen/scripts" "$1/var/lib/xen" "$1/var/lib/xenstored" "$1/var/lock" \
        "$1/var/log/xen/console" "$1/run/xen" "$1/run/xenstored" "$1/run/lock" "$1/boot"
    ln -s ../run "$1/var/run"
    : >"$1/etc/xen/xl.conf"
    cp "$parts/vif-script" "$1/etc/xen/scripts/"
    cp "$parts/dom0-init" "$1/init"
    cp "$parts/dom0-common.sh" "$parts/twin.sh" "$parts/counting.sh" "$1/"
}

# ---- One scenario --------------------------------------------------------------

# add_modules FOLDER [MODULE]: dom0's modules, and that one.
add_modules() {
    folder=$1
    shift
    for made in twin_dom0.ko twin_hot.ko "$@"; do
        [ -e "$xen/dom0/$made" ] || die "no $xen/dom0/$made: run make xen, or scripts/xen-modules.sh"
        cp "$xen/dom0/$made" "$folder/"
    done
}

# add_payload FOLDER PLATFORM: what the host needs to make the livepatch when dom0 has told
# its addresses.
add_payload() {
    cp "$parts/make-payload" "$1/"
    cp "$table" "$1/xen.table"
    for made in twin "$2.o" e1000.twin.o twin_hot.twin.o; do
        [ -e "$xen/payload/$made" ] || die "no $xen/payload/$made: run make xen, or scripts/xen-payload.sh"
        cp -L "$xen/payload/$made" "$1/$made"
    done
    [ "$2" = platform ] || mv "$1/$2.o" "$1/platform.o"
}

# add_command FOLDER: `twin` as it is, with this system's libraries, which may be newer than
# dom0's, and what it needs installed.
add_command() {
    [ -d "$xen/kit" ] || die "no $xen/kit: run make xen, or scripts/xen-install.sh $xen/kit --headers $xen_stock/headers --xen $xen/xen.deb"
    mkdir -p "$1/twin/lib"
    strip -o "$1/twin/twin" "$xen/payload/twin"
    ldd "$xen/payload/twin" | sed -n 's|.*[[:space:]]\(/[^ ]*\) (.*|\1|p' | while read -r library; do
        cp -L "$library" "$1/twin/lib/"
    done
    cp -r "$xen/kit" "$1/twin/kit"
    [ -z "$other" ] || cp "$table" "$1/twin/kit/tables/"
    cp "$xen/kit/vif-twin" "$1/etc/xen/scripts/"
    cat >"$1/bin/twin" <<'RUN'
#!/bin/sh
export TWIN_XEN="${TWIN_XEN:-/twin/kit}"
exec /twin/lib/ld-linux-x86-64.so.2 --library-path /twin/lib /twin/twin "$@"
RUN
    chmod +x "$1/bin/twin"
}

# More cards, each on a network of its own: one on the interrupt line of the first, whose slot is 2 (QEMU
# gives lines to slots by turns), and one that is not.
cards() {
    echo "-netdev user,id=same,net=10.0.3.0/24 -device e1000,netdev=same,addr=6"
    own_card ''
}

# own_card OPTIONS: the latter alone, with more of what its network has.
own_card() {
    echo "-netdev user,id=own,net=10.0.4.0/24$1 -device e1000,netdev=own,addr=8"
}

# behind_bridge FOLDER: where the first card is when its bus can be reset.
behind_bridge() {
    echo '-device pci-bridge,id=bridge,chassis_nr=1,addr=4' >"$1/bridge"
    echo bus=bridge,addr=2 >"$1/place"
}

# data_mib SCENARIO: what the host has to send. `count` and `rows` count segments of 1,460 bytes, and one
# byte before the first.
data_mib() {
    wanted=$((frames * 1460 / 1048576 + 1))
    case $1 in
    count | rows) [ $wanted -gt "$mib" ] || wanted=$mib ;;
    *) wanted=$mib ;;
    esac
    echo $wanted
}

# prepare SCENARIO FOLDER: everything that QEMU and the host's end need.
prepare() {
    rm -rf "$2"
    mkdir -p "$2"
    head -c "$(($(data_mib "$1") * 1048576))" /dev/urandom >"$2/data"
    cp "$parts/peer.sh" "$2/"
    guest_system "$2/guest"
    case $1 in
    count | rows) add_counting "$2" ;;
    arrivals) add_arrivals "$2" ;;
    spoof) add_wire "$2" ;;
    two) cards >"$2/options" ;;
    error) behind_bridge "$2" ;;
    reset)
        # Words of `options` have no spaces.
        printf '#!/bin/sh\nexec sh peer.sh link\n' >"$2/link"
        chmod +x "$2/link"
        own_card ',guestfwd=tcp:10.0.4.100:7006-cmd:./link' >"$2/options"
        ;;
    esac
    dom0_system "$2/dom0"
    archive "$2/guest" >"$2/dom0/boot/guest.cpio"
    ln "$guest_xen/vmlinux" "$2/dom0/boot/vmlinux"
    cp "$parts/dom0-$1.sh" "$2/dom0/scenario.sh"
    case $1 in
    baseline) ;;
    dma)
        add_modules "$2/dom0" xen_held.ko
        add_payload "$2" platform
        ;;
    attach | again | busy | changes | offload | large | save | sample | count | rows | arrivals | upcalls | processors | pvh | down | migrate | reboot | two | frontend | reset | xenstore | toolstack)
        add_modules "$2/dom0"
        add_payload "$2" platform
        ;;
    command) add_command "$2/dom0" ;;
    livepatches)
        add_command "$2/dom0"
        add_livepatch "$2/dom0" other
        ;;
    spoof)
        add_modules "$2/dom0"
        add_payload "$2" platform
        add_command "$2/dom0"
        ;;
    neighbours)
        add_modules "$2/dom0" xen_direct.ko
        ${CC:-cc} -O2 -static -o "$2/dom0/bin/fexit" "$parts/dom0-fexit.c"
        add_payload "$2" platform
        ;;
    stuck)
        add_modules "$2/dom0" xen_watchdog.ko
        add_payload "$2" platform
        ;;
    error)
        add_modules "$2/dom0" xen_error.ko
        add_payload "$2" platform
        ;;
    handover)
        add_modules "$2/dom0" xen_writer.ko
        add_payload "$2" platform
        ;;
    faults | retype | campaign)
        add_modules "$2/dom0" xen_faults.ko xen_retype.ko
        add_payload "$2" platform-test
        ;;
    *) add_modules "$2/dom0" ;;
    esac
    archive "$2/dom0" >"$2/dom0.cpio"
    rm -rf "$2/dom0" "$2/guest"
}

# boot FOLDER PROCESSORS: from start to power-off; 124 if it does not come to that in time.
# dom0 has the first processor, the guest the last. QEMU starts peer.sh in the folder for
# each connection to 10.0.2.100.
boot() (
    cd "$1"
    mkfifo monitor.in monitor.out
    sum=$(sha256sum <data | cut -d ' ' -f 1)
    # QEMU takes commas for itself.
    words="twin.sum=$sum twin.rounds=$rounds twin.faults=${TWIN_XEN_FAULTS:-500} twin.patience=$patience twin.guest_memory=$((guests > 3 ? 224 : 256)) twin.guest_cpus=${TWIN_XEN_GUEST_CPUS:-$(($2 - 1))} twin.frames=$frames twin.guests=$guests twin.stages=$(echo "${TWIN_XEN_STAGES:-}" | tr , +)"
    # shellcheck disable=SC2046
    timeout -k 5 "$limit" qemu-system-x86_64 -accel tcg -cpu "$processor_model" -smp "$2" \
        -m $((guests > 3 ? 3072 : 2048)) -nodefaults -no-reboot -display none \
        -chardev pipe,id=monitor,path=monitor -mon chardev=monitor,mode=readline \
        -serial file:console.log -serial file:results.log \
        -netdev "user,id=network,guestfwd=tcp:10.0.2.100:7001-cmd:sh peer.sh down,guestfwd=tcp:10.0.2.100:7002-cmd:sh peer.sh up,guestfwd=tcp:10.0.2.100:7003-cmd:sh peer.sh payload,guestfwd=tcp:10.0.2.100:7004-cmd:sh peer.sh frames,guestfwd=tcp:10.0.2.100:7006-cmd:sh peer.sh link,guestfwd=tcp:10.0.2.100:7007-cmd:sh peer.sh arrivals,guestfwd=tcp:10.0.2.100:7008-cmd:sh peer.sh answer" \
        $(cat bridge 2>/dev/null) -device "e1000,netdev=network,id=card,$(cat place 2>/dev/null || echo addr=2)" \
        $(cat options 2>/dev/null) \
        -kernel "$hypervisor" \
        -append "console=com1 com1=115200,8n1 dom0_mem=1024M,max:1024M $dom0_has loglvl=all guest_loglvl=all" \
        -initrd "$xen/vmlinux console=hvc0 panic=-1 $words,dom0.cpio" \
        </dev/null >qemu.log 2>&1
)

# judge NAME FOLDER STATUS: prints each step, adds to the counts.
steps=0 failed=0 scenarios=0
judge() {
    scenarios=$((scenarios + 1))
    lines=$2/lines
    # Two writers may share a line: no failure is lost in one.
    tr -d '\r' <"$2/results.log" 2>/dev/null | sed 's/@fail /\n&/g' |
        grep '^@' >"$lines" || true
    sed -n "s|^@ok |  ok    $1: |p; s|^@fail |  FAIL  $1: |p; s|^@value |  value $1: |p" "$lines"
    good=$(grep -c '^@ok ' "$lines" || true)
    bad=$(grep -c '^@fail ' "$lines" || true)
    if [ "$3" = 124 ]; then
        echo "  FAIL  $1: no end within $limit s; see $2/console.log and results.log"
        bad=$((bad + 1))
    elif ! grep -q '^@done' "$lines"; then
        echo "  FAIL  $1: QEMU ended ($3) before dom0's script did; see $2/console.log, results.log and qemu.log"
        bad=$((bad + 1))
    elif [ "$bad" != 0 ]; then
        echo "  see $2/console.log and results.log"
    fi
    # A script that is wrong skips steps: that is no success.
    if grep -aE ': not found|syntax error|: line [0-9]+:' "$2/results.log" 2>/dev/null; then
        echo "  FAIL  $1: the lines above are in results.log"
        bad=$((bad + 1))
    fi
    # What a guest says of itself comes by the filter of dom0-common.sh: without it, no failure would either.
    for created in $(sed -n 's|^@ok \(guest[0-9]*\)/create .*|\1|p' "$lines" | sort -u); do
        grep -qE "$created/(netfront|interface|up|carrier|ping) " "$lines" || {
            echo "  FAIL  $1: no line of $created's own; see $2/results.log"
            bad=$((bad + 1))
        }
    done
    # What is said when no script runs any more.
    while read -r _ words; do
        grep -qaF "$words" "$2/console.log" || {
            echo "  FAIL  $1: $2/console.log has no line: $words"
            bad=$((bad + 1))
        }
    done <<END
$(grep '^@console ' "$lines" || true)
END
    # Xen's own complaints, whatever the scripts think.
    if grep -aE 'Panic on CPU|\(XEN\) Xen (BUG|WARN)|kernel BUG at|Oops:' "$2/console.log" 2>/dev/null; then
        echo "  FAIL  $1: the lines above are in console.log"
        bad=$((bad + 1))
    fi
    steps=$((steps + good + bad)) failed=$((failed + bad))
}

# limit_of SCENARIO: seconds that it may take.
limit_of() {
    case $1 in
    campaign) echo "${TWIN_XEN_LIMIT:-7200}" ;;
    *) echo "${TWIN_XEN_LIMIT:-1800}" ;;
    esac
}

scenario() {
    name=${1%:*} processors=${1#*:}
    [ "$processors" != "$1" ] || processors=1
    [ -e "$parts/dom0-$name.sh" ] && [ "$name" != common ] && [ "$name" != init ] ||
        die "no scenario $name: there is $(scenarios_of)"
    case $processors in [1-8]) ;; *) die "$1: 1 to 8 processors" ;; esac
    limit=$(limit_of "$name")
    mib=${TWIN_XEN_MIB:-8} rounds=2
    [ "$name" != large ] || mib=${TWIN_XEN_MIB:-64} rounds=1
    # abm goes with bmi1: QEMU 10 asks CPUID for the one where it decodes the other's
    # instruction (tzcnt and lzcnt), so that a Xen that patches in tzcnt, as 4.17.7 does, would
    # run bsf, and loop when it next looks for a free page. No real processor has bmi1 alone.
    processor_model=qemu64,+abm,+bmi1,+bmi2
    # Guests with hardware paging need SVM, which the emulator has.
    case $name in
    pvh | migrate | reboot) processor_model=$processor_model,+svm,+npt ;;
    esac
    dom0_has=$dom0_processors
    [ "$name" != handover ] || dom0_has='dom0_max_vcpus=2 dom0_vcpus_pin'
    run=$xen/run/$name-$processors
    [ "$guest" = "$xen_release" ] || run=$run-$guest
    [ "$guests" = 1 ] || run=$run-guests-$guests
    run=$run$other
    echo "xen: $name, $processors processor(s), $mib MiB; $built, dom0's kernel $release, guests' ${guest_modules##*/}"
    prepare "$name" "$run"
    status=0
    boot "$run" "$processors" || status=$?
    case $name in
    count) report_counts "$run" >>"$run/results.log" ;;
    rows) report_rows "$run" >>"$run/results.log" ;;
    arrivals) report_arrivals "$run" >>"$run/results.log" ;;
    spoof) report_wire "$run" >>"$run/results.log" ;;
    esac
    judge "$name-$processors" "$run" "$status"
    [ ! -e "$run/table" ] || cat "$run/table"
}

# ---- The hypervisor ------------------------------------------------------------------------

# The release's own.
own_hypervisor() {
    hypervisor=$xen/xen table=$xen/payload/xen.table built=$(cat "$xen/VERSION") other=
}

# other_hypervisor PACKAGE.deb: with the tools of the release, which are of its version.
other_hypervisor() {
    built=$(dpkg-deb -W --showformat='${Package} ${Version}' "$1") || die "$1 is no package"
    case $built in
    xen-hypervisor-$xen_version-amd64\ *) ;;
    *) die "$1 is of $built, and not of xen-hypervisor-$xen_version-amd64, whose tools $xen_release has" ;;
    esac
    made=$(sh "$root/scripts/xen-table.sh" "$1") || die "no table of $1 (above)"
    name=${made##*/}
    table=$root/target/xen-tables/$name other=-${name%.table}
    hypervisor=$xen/run/xen$other
    mkdir -p "$xen/run"
    dpkg-deb --fsys-tarfile "$1" | tar -xO "./boot/xen-$xen_version-amd64.gz" | gzip -dc >"$hypervisor" ||
        die "$1 has no /boot/xen-$xen_version-amd64.gz"
}

scenarios_of() {
    echo baseline modules attach again command faults retype busy spoof dma changes offload upcalls processors stuck pvh frontend two reset xenstore livepatches toolstack neighbours handover migrate reboot error down campaign large save sample count rows arrivals
}

main() {
    # depmod is in a folder that only the PATH of root has.
    PATH=$PATH:/usr/sbin:/sbin
    for tool in qemu-system-x86_64 busybox depmod sha256sum timeout readelf strip ldd; do
        command -v "$tool" >/dev/null || die "no $tool: run scripts/setup.sh"
    done
    [ -s "$xen/VERSION" ] || die "no $xen/VERSION: run make xen, or scripts/xen-packages.sh"
    own_hypervisor
    [ -z "${TWIN_XEN_HYPERVISOR:-}" ] || other_hypervisor "$TWIN_XEN_HYPERVISOR"
    modules=$(CDPATH='' cd -P -- "$xen_stock/modules" && pwd -P) || die "no $xen_stock/modules: run make stock${xen_kernel:+ KERNEL=$xen_kernel}"
    release=${modules##*/}
    # Of another release the guests have the kernel alone.
    guest_stock=$(TWIN_XEN_RELEASE=$guest && . "$parts/release.sh" && echo "$xen_stock")
    guest_xen=$(TWIN_XEN_RELEASE=$guest && . "$parts/release.sh" && echo "$xen")
    guest_modules=$(CDPATH='' cd -P -- "$guest_stock/modules" && pwd -P) || die "no $guest_stock/modules: run make stock"
    [ -s "$guest_xen/vmlinux" ] || die "no $guest_xen/vmlinux: TWIN_XEN_RELEASE=$guest scripts/xen-packages.sh"
    if [ $# = 0 ]; then
        for name in baseline modules attach again command faults retype busy spoof dma changes offload upcalls; do
            set -- "$@" "$name:1" "$name:2"
        done
        set -- "$@" processors:2 stuck:2 pvh:2 frontend:2 two:2 reset:2 xenstore:2 livepatches:2 toolstack:2 neighbours:2 handover:2 migrate:2 reboot:2 error:2 down:2 campaign:1 large:1 large:2 save:1 count:1 rows:1 arrivals:1
    fi
    for one; do
        scenario "$one"
    done
    echo "xen: $scenarios scenarios, $steps steps, $failed failed"
    [ "$failed" = 0 ]
}

main "$@"; exit
