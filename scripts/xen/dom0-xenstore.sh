# SPDX-License-Identifier: MIT OR Apache-2.0
# What a guest may write to its own part of xenstore, which dom0's module reads: states, references of rings,
# event channels and features that are missing, nonsense or another's. Here dom0 writes it, in the name of a guest
# that rests. The interface is refused, or served as it says; dom0 keeps no port and no page of it; another guest's
# transfers go on, and with what was there before the interface is served again. Then that one gets more interfaces than Xen serves.
. /twin.sh

load_modules
attach_eth0

state_of() {
    xenstore-read "$backend/state"
}

# Interfaces of guest 2 that Xen serves.
served() {
    grep -c "^vif$id\." $twin/status
}

# Ports of dom0's that are bound to guests' interfaces.
ports() {
    grep -c twin-vif /proc/interrupts
}

is_state() {
    [ "$(state_of)" = "$1" ]
}

# frontend KEY VALUE: of the guest's; without a value it is not there.
frontend() {
    if [ $# = 1 ]; then
        xenstore rm "$front/$1"
    else
        # A value may begin like an option.
        xenstore-write -- "$front/$1" "$2"
    fi
}

# begins: as a kernel that starts. The backend lets go of what there was.
begins() {
    frontend state 1
    await 60 "$1/waited-for" is_state 2
}

# claims STEP KEY [VALUE]: the guest's frontend begins anew with that, and is ready. `before` is what was there.
claims() {
    told=$1 key=$2
    shift
    before=$(xenstore-read "$front/$key" 2>/dev/null)
    begins "$told"
    frontend "$@"
    frontend state 4
}

# keeps STEP INTERFACES: those are served, and of dom0's ports there is one more.
keeps() {
    [ "$(served)" = "$2" ] && [ "$(ports)" = $(($2 + 1)) ]
    step "$1" $? "$(served) served, $(ports) ports; $(xenstore-read "/local/domain/0/error/backend/vif/$id/0/error" 2>/dev/null)"
}

# restores: what was there before.
restores() {
    if [ -n "$before" ]; then frontend "$key" "$before"; else frontend "$key"; fi
}

# refused STEP KEY [VALUE]: nothing is served, and nothing is kept. The guest's own frontend, when it sees that, closes
# once, and is not heard of again.
closes=6
refused() {
    claims "$@"
    await 60 "$told/refused" is_state $closes
    closes=5
    keeps "$told/nothing-kept" 0
    restores
}

# taken STEP KEY [VALUE]: it is served all the same.
taken() {
    claims "$@"
    await 60 "$told/connected" is_state 4
    keeps "$told/served" 1
    restores
}

start_guest 1 forever && connected 1
await_traffic guest1/moving

if start_guest 2 rest; then
    connected 2
    id=$(xl domid guest2)
    backend=/local/domain/0/backend/vif/$id/0 front=/local/domain/$id/device/vif/0

    ring=$(xenstore-read "$front/rx-ring-ref")
    for value in 4294967295 -1 ''; do
        refused "ring-$value" tx-ring-ref "$value"
    done
    refused ring-missing rx-ring-ref
    # Granted to dom0, and no ring: both rings in one page, and the console's, are the guest's own affair.
    taken ring-same tx-ring-ref "$ring"
    taken ring-console tx-ring-ref 0
    for value in 0 1 4294967295; do
        refused "port-$value" event-channel "$value"
    done
    refused port-missing event-channel
    refused copy-not request-rx-copy 0
    taken features feature-gso-tcpv4 nonsense
    taken queues multi-queue-num-queues 4

    # States of every kind, one soon after the other; the last one is that of a frontend that is there.
    for value in 7 8 9 99 -1 3 5 4 2 1 6 1 3; do
        frontend state "$value"
        sleep 0.3
    done
    await 60 states/served is_state 4
    # Of a guest that is gone, and dom0's device is, too.
    frontend state 0
    await 60 state-0/gone sh -c "! test -e /sys/bus/xen-backend/devices/vif-$id-0"
    keeps state-0/nothing-kept 0

    await_transfers others/transfers
    destroyed 2
fi
# One of whose pages dom0 has mapped would be there without a name.
await 60 gone/whole sh -c "! xl list | grep -q null"

# ---- A limit that nobody would keep ----
try 60 limited/given xl network-attach guest1 mac=00:16:3e:00:02:00 rate=1Mb/s script=$vif_script
await 60 limited/refused kernel_said 'no limit is kept of what an interface sends: take rate out of its vif line'
step limited/named $? "$(dmesg | grep 'no limit is kept' | tail -n 1)"

# ---- More interfaces than Xen serves ----
has() {
    [ "$(grep -c "^vif$1\." $twin/status)" = "$2" ]
}
one=$(xl domid guest1)
for n in 1 2 3 4 5 6 7; do
    try 60 "many/give-$n" xl network-attach guest1 mac=00:16:3e:00:02:0$n script=$vif_script
done
await 120 many/served has "$one" 8
try 60 many/give-ninth xl network-attach guest1 mac=00:16:3e:00:02:08 script=$vif_script
await 120 many/refused sh -c "xenstore-ls /local/domain/0/error | grep -q 'it serves 8 already'"
await_transfers many/transfers

# ---- xenstore does not answer, and an interface is refused again ----
store=$(cat /run/xenstored.pid)
kill -STOP "$store"
tell 60 silent/restart restart 1
try 20 silent/others ip link set lo down
try 20 silent/loopback ip link set lo up
await_traffic silent/moving
kill -CONT "$store"
await_transfers silent/transfers

no_failure
never_aborted alive
destroyed 1
! dmesg | grep -E 'WARNING: |BUG: |Oops|unable to handle'
step dom0-complains-not $? ""
detach_eth0
native native-after/
unload_modules
