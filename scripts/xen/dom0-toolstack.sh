# SPDX-License-Identifier: MIT OR Apache-2.0
# What an administrator may do with Xen's and dom0's own tools in a guest's transfers: debug keys, Xen's
# parameters, pausing, pools of processors, the interface's settings, a bridge. Then the driver is to be given to a
# Xen with next to no memory: it is refused, and all is as it was. Last, dom0's kernel panics with the driver in Xen, and the
# machine starts anew.
. /twin.sh

load_modules
attach_eth0

# goes_on STEP: after that the guest's transfers do.
goes_on() {
    await_traffic "$1/moving"
    is state 1
    step "$1/alive" $? "state $(status_of state), $(status_of refused-writes) writes refused"
}

# Those that do not end the machine, or wait for a debugger.
keys() {
    xl dmesg -c >/dev/null
    xl debug-keys h
    sleep 1
    xl dmesg -c | sed -n "s/.* key '\(.\)' .*/\1/p" | grep -v '[RC%*A]'
}

start_guest 1 forever && connected 1
pinged 1
await_traffic guest1/moving

# ---- Xen ----
for key in $(keys); do
    try 60 "key-$key" xl debug-keys "$key"
    sleep 0.2
    xl dmesg -c >/dev/null
done
goes_on keys

output=$(xenhypfs ls / 2>&1) && echo "$output" | grep -q params
step hypfs $? "$(echo "$output" | tr '\n' ' ')"

try 60 paused xl pause guest1
sleep 3
try 60 unpaused xl unpause guest1
goes_on pause

last=$(($(xl info | sed -n 's/^nr_cpus *: *//p') - 1))
if [ $last -gt 0 ]; then
    # A processor on its way out of the pool may take a guest's that waits, when only that one's affinity is asked
    # (runq_candidate, xen/common/sched/credit2.c), and Xen then panics when the guest is woken there. So none may be there.
    try 60 pool/pinned xl vcpu-pin guest1 all 0 all
    try 60 pool/taken xl cpupool-cpu-remove Pool-0 $last
    goes_on pool
    try 60 pool/given xl cpupool-cpu-add Pool-0 $last
    goes_on pool-again
    try 60 pool/unpinned xl vcpu-pin guest1 all all all
fi

# ---- The interface ----
try 60 promiscuous ip link set eth0 promisc on
try 60 not-promiscuous ip link set eth0 promisc off
try 60 all-multicast ifconfig eth0 allmulti
try 60 not-all-multicast ifconfig eth0 -allmulti
address=$(cat /sys/class/net/eth0/address)
try 60 address ip link set eth0 address 52:54:00:12:34:99
try 60 address-again ip link set eth0 address "$address"
try 60 queue-length ip link set eth0 qlen 77
try 60 own-address ip addr add 10.0.2.9/24 dev eth0
try 60 own-address-gone ip addr del 10.0.2.9/24 dev eth0
try 60 registers sh -c 'ethtool -d eth0 >/dev/null'
try 60 eeprom sh -c 'ethtool -e eth0 >/dev/null'
try 60 identify ethtool -p eth0 1
modprobe bridge
try 60 bridge brctl addbr br0
try 60 bridge/in brctl addif br0 eth0
try 60 bridge/up ip link set br0 up
goes_on bridge
try 60 bridge/out brctl delif br0 eth0
ip link set br0 down
try 60 bridge/gone brctl delbr br0
irq=$(cat /sys/class/net/eth0/device/irq)
try 60 affinity sh -c "echo 1 >/proc/irq/$irq/smp_affinity"
goes_on interface

# ---- A Xen without memory ----
free_mib() {
    xl info | sed -n 's/^free_memory *: *//p'
}

# fill: a guest that does not run has nearly all of it.
fill() {
    left=0
    while [ $left -lt 40 ]; do
        guest_config 9 rest
        sed -i "s/^memory = .*/memory = $(($(free_mib) - left))/; s/^vif = .*/vif = []/" /tmp/guest9.cfg
        timeout "$(limit 60)" xl create -p /tmp/guest9.cfg >/dev/null 2>&1 && return
        left=$((left + 1))
    done
    return 1
}

tell 30 little/detach detach 1
fill
step little/filled $? "$(free_mib) MiB are free"
dmesg -c >/dev/null
! echo eth0 >$twin/attach && dmesg | grep -q 'twin: Xen refuses eth0: -12'
step little/refused $? "$(dmesg | grep 'twin: ' | head -n 1)"
is interface - && is state 0
step little/nothing-attached $? "interface $(status_of interface), state $(status_of state)"
try 60 little/freed xl destroy guest9
await 60 little/carrier grep -q 1 /sys/class/net/eth0/carrier
tell 30 little/attach attach eth0
goes_on little

# ---- Without xenstored, which nobody can start again ----
try 20 xenstored-gone sh -c 'kill $(cat /run/xenstored.pid)'
goes_on xenstored
tell 30 xenstored/detach detach 1
tell 30 xenstored/attach attach eth0
goes_on xenstored-again

no_failure
never_aborted alive
! dmesg | grep -E 'WARNING: |BUG: |Oops|unable to handle'
step dom0-complains-not $? ""

# ---- A panic of dom0's ----
echo "@console Hardware Dom0 crashed"
echo @done
sync
sleep 1
echo c >/proc/sysrq-trigger
