# SPDX-License-Identifier: MIT OR Apache-2.0
# The administrator's command: `twin xen` in dom0, with what scripts/xen-install.sh installs.
# Refusals first, and an attachment that is undone; then a guest's traffic, a wild pointer in
# the middle, and back.
. /twin.sh
vif_script=vif-twin

# An insmod that lets nobody go on while /tmp/hold is there, once it has loaded the second module.
mkdir /tmp/bin
cat >/tmp/bin/insmod <<'RUN'
#!/bin/sh
/bin/insmod "$@" || exit
case $1 in
*/twin_hot.ko)
    : >/tmp/held
    while [ -e /tmp/hold ]; do sleep 0.1; done
    ;;
esac
RUN
chmod +x /tmp/bin/insmod

# An xen-livepatch that does the same behind a revert: a detachment in its middle.
cat >/tmp/bin/xen-livepatch <<RUN
#!/bin/sh
$(command -v xen-livepatch) "\$@" || exit
case \$1 in
revert)
    : >/tmp/held
    while [ -e /tmp/hold ]; do sleep 0.1; done
    ;;
esac
RUN
chmod +x /tmp/bin/xen-livepatch

# hold STEP: an attachment in its middle: dom0's modules are loaded, the payload is not.
hold() {
    hold_in "$1" attach
}

# hold_in STEP ACTION: the same of another action.
hold_in() {
    rm -f /tmp/held
    : >/tmp/hold
    PATH=/tmp/bin:$PATH twin xen "$2" eth0 >/tmp/middle 2>&1 &
    attaching=$!
    await 240 "$1/begun" test -e /tmp/held
}

# It goes on, if it can, to its end.
let_go() {
    rm /tmp/hold
    wait $attaching
    status=$?
    cat /tmp/middle
}

native native-before/

# ---- Refusals: nothing is changed ----------------------------------------------------

says 1 check/nothing-installed xen-platform env TWIN_XEN=/nowhere twin xen check eth0
says 1 check/no-interface 'there is no eth7' twin xen check eth7
says 1 attach/no-interface 'there is no eth7' twin xen attach eth7
says 1 attach/no-card 'lo is of no device' twin xen attach lo
mv /twin/kit/tables /twin/tables
says 1 attach/no-table 'there is no table of the build' twin xen attach eth0
mv /twin/tables /twin/kit/tables
ip link set eth0 down
says 1 attach/down 'eth0 is down' twin xen attach eth0
ip link set eth0 up
ip link set eth0 mtu 9000
says 1 attach/mtu 'eth0 has an MTU of 9000' twin xen attach eth0
ip link set eth0 mtu 1500
says 1 detach/nothing 'eth0 is not driven inside Xen' twin xen detach eth0
says 0 status/nothing 'nothing is attached' twin xen status
untouched refused
says 0 check 'eth0 can be driven inside this Xen' twin xen check eth0
says 0 check/json '"works": true' twin xen check eth0 --format json

# What is installed is damaged, or of another kernel. damaged STEP FILE WORDS COMMAND...: that makes it so.
damaged() {
    part=$1 file=$2 reason=$3
    shift 3
    cp "$file" /tmp/whole
    "$@"
    says 1 "damaged/$part" "$reason" twin xen attach eth0
    untouched "damaged/$part"
    cp /tmp/whole "$file"
}

cut_short() {
    head -c "$(($(wc -c <"$1") / 2))" /tmp/whole >"$1"
}

# Behind the release, which the kernel does not look at where symbols have versions (kernel/module/version.c, same_magic).
of_another_kernel() {
    word=$(strings -t d "$1" | sed -n 's/^ *\([0-9]*\) vermagic=.*/\1/p')
    printf 99 | dd of="$1" bs=1 seek=$((word + 10 + ${#release})) conv=notrunc 2>/dev/null
}

release=$(uname -r)
modules=/twin/kit/modules/$release
damaged platform /twin/kit/twin-xen.o 'the file is truncated' cut_short /twin/kit/twin-xen.o
damaged module $modules/twin_dom0.ko '[xen-module' cut_short $modules/twin_dom0.ko
damaged hot $modules/twin_hot.ko 'the file is truncated' cut_short $modules/twin_hot.ko
damaged kernel $modules/twin_hot.ko 'insmod: ' of_another_kernel $modules/twin_hot.ko
driver=/lib/modules/$release/kernel/drivers/net/ethernet/intel/e1000/e1000.ko
damaged driver $driver ' [' cut_short $driver

# No room for the payload.
mkdir /tmp/small
mount -t tmpfs -o size=64k tmpfs /tmp/small
says 2 full 'No space left on device' env TMPDIR=/tmp/small twin xen attach eth0
umount /tmp/small
untouched full

# ---- Attachments that do not come to their end -----------------------------------------

# The kernel refuses it after all was checked and loaded: its own reason, and all is undone.
hold kernel
ip link set eth0 down
let_go
[ "$status" = 1 ] && grep -q "dom0's kernel: eth0 is not up" /tmp/middle
step kernel/refused $? "status $status: $(tail -n 1 /tmp/middle)"
ip link set eth0 up
untouched kernel

# Killed half way: its modules stay. The next one uses them, is refused by the control at its last
# step, and takes its payload out again. What is left `detach` takes away.
hold killed
kill -KILL $attaching
let_go
loaded twin_hot && [ "$status" = 137 ]
step killed/half $? "status $status, $(lsmod | grep -c '^twin_') modules"
if mount --bind /dev/full $twin/attach; then
    says 1 attach/last-step 'No space left on device' twin xen attach eth0
    umount $twin/attach
fi
! in_xen && is interface -
step attach/last-step/undone $? "interface $(status_of interface), $(xen-livepatch list | grep -c '^twin ') payloads"
says 0 detach/half "nothing of twin's is left" twin xen detach eth0
rm -rf /tmp/twin-xen-*
untouched killed

# Ended by the user: the attachment is finished first. Meanwhile nobody else changes anything.
hold ended
says 1 twice/attach 'another `twin xen` is at work' twin xen attach eth0
says 1 twice/detach 'another `twin xen` is at work' twin xen detach eth0
says 0 twice/status "dom0's modules are loaded" twin xen status
kill -TERM $attaching
let_go
[ "$status" = 143 ] && is state 1 && is interface eth0
step ended/whole $? "status $status, state $(status_of state)"
# A detachment that is killed half way: the driver is dom0's, what is left is named, and goes.
hold_in half detach
kill -KILL $attaching
let_go
[ "$status" = 137 ] && is interface - && in_xen
step half/killed $? "status $status, interface $(status_of interface)"
says 1 half/attach 'Xen has a payload `twin` from before' twin xen attach eth0
says 0 half/detach "nothing of twin's is left" twin xen detach eth0
rm -rf /tmp/twin-xen-*
untouched ended

# Without the check of what the driver gives to the card, this time.
says 0 attach/unchecked 'eth0: driven inside Xen' twin xen attach --no-dma-check eth0
status_of stages | grep -q ' dma 0$'
step status/unchecked $? "$(status_of stages)"
says 0 detach/unchecked "nothing of twin's is left" twin xen detach eth0
untouched unchecked

# ---- Attached ----------------------------------------------------------------------------

begin=$(uptime_ms)
says 0 attach 'eth0: driven inside Xen 4.' twin xen attach eth0
echo "@value attach-ms $(($(uptime_ms) - begin))"
says 1 attach/again 'eth0 is driven inside Xen already' twin xen attach eth0
says 1 check/attached 'xen-in-use' twin xen check eth0
says 1 detach/other 'eth0 is; give that' twin xen detach eth1
says 0 status/attached 'eth0: driven inside Xen' twin xen status
says 0 status/stages 'aggregate 45, pace, dma' twin xen status

if start_guest 1; then
    connected 1
    await_traffic guest1/moving
    tell 20 poison poison 'registers 10'
    says 0 status/aborted 'ABORTED, nothing moves by the card: a fault (14) at e1000:e1000_' twin xen status
    # Longer than dom0's watchdog of transmitters waits, which would want the queue's lock.
    sleep 8
    # A parameter is the next attachment's.
    echo 1 >/sys/module/twin_dom0/parameters/bridge
    says 0 status/old-stages 'aggregate 45, pace, dma' twin xen status
    says 0 restart 'eth0: driven inside Xen' twin xen restart eth0
    says 0 status/new-stages 'aggregate 45, bridge (1,000 packets for groups a second), pace, dma' twin xen status
    mark_counts
    says 0 status/guest 'vif1.0' twin xen status
    finish_guest 1 300
    judge_counts guest1
fi

# ---- And back ------------------------------------------------------------------------------

# A guest's interface is still there: the driver goes, dom0's modules stay.
if start_guest 2; then
    pinged 2
    says 0 detach/guest 'shut these guests down' twin xen detach eth0
    ! in_xen && loaded twin_dom0
    step detach/guest/modules-stay $? "$(xen-livepatch list | grep -c '^twin ') payloads"
    # What is put in has its pointers compared: a wild one is named as one, and guests go on.
    says 0 attach/strict 'eth0: driven inside Xen' twin xen attach --strict eth0
    tell 20 strict/poison poison 'registers 10'
    says 0 status/strict 'ABORTED, nothing moves by the card: an address that is not' twin xen status
    says 0 restart/strict 'eth0: driven inside Xen' twin xen restart eth0
    finish_guest 2 300
fi
says 0 detach "nothing of twin's is left" twin xen detach eth0
untouched detached
native native-after/
