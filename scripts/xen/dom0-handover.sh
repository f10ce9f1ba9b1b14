# SPDX-License-Identifier: MIT OR Apache-2.0
# The driver given to Xen and taken back, again and again, without a guest. dom0 has two virtual
# processors: on the other one the card's registers are written all the time
# (runtime/tests/xen-faults/xen_writer.c), while the pages that have them become read-only and writable
# again, and it stands for some seconds at most. Before that: dom0's modules leave no memory behind, an interface's name may have fifteen
# characters, and a poll that dom0 has deferred does not come while Xen has the card. After it that processor goes offline and
# comes online.
. /twin.sh

longest=abcdefghijklmno
queue=/sys/class/net/eth0

# refused NAME: there is no payload. Whether the kernel's log has the interface's whole name.
refused() {
    dmesg -c >/dev/null
    ! sh -c "echo $1 >$twin/attach" 2>/dev/null && dmesg | grep -q "twin: Xen refuses $1: "
}

free_kib() {
    sync
    echo 3 >/proc/sys/vm/drop_caches
    sed -n 's/^MemFree: *\([0-9]*\) kB/\1/p' /proc/meminfo
}

# round: the modules come, have memory for packets, and go. What they had is in `pools`, in KiB.
round() {
    free=$(free_kib)
    insmod /twin_dom0.ko && insmod /twin_hot.ko && refused eth0 || return
    pools=$((free - $(free_kib)))
    rmmod twin_hot && rmmod twin_dom0
}

# The first round also has what the kernel keeps for itself.
memory() {
    round || return
    before=$(free_kib)
    for i in 1 2 3 4; do
        round || return
    done
    left=$((before - $(free_kib)))
    said="$pools KiB for packets; after four more rounds $left KiB less are free"
    [ $pools -gt 4096 ] && [ $left -lt $pools ]
}

name() {
    try 20 "name/$1-down" ip link set "$1" down
    try 20 "name/$2" ip link set "$1" name "$2"
    try 20 "name/$2-up" ip link set "$2" up
}

net_rx() {
    awk '/NET_RX/ { for (i = 2; i <= NF; i++) n += $i; print n }' /proc/softirqs
}

interrupted() {
    [ "$(status_of interrupts)" -gt "$1" ]
}

# deferring NS POLLS: what dom0 does when a poll has found nothing.
deferring() {
    echo "$1" >$queue/gro_flush_timeout
    echo "$2" >$queue/napi_defer_hard_irqs
}

deferred() {
    deferring 20000000000 1000
    timeout "$(limit 5)" ping -c 3 -W 1 $peer >/dev/null
    tell 30 deferred/attach attach eth0
    seen=$(status_of interrupts) polled=$(net_rx)
    tell 5 deferred/link link 1
    await 10 deferred/interrupt-in-xen interrupted "$seen"
    sleep 25
    [ "$(net_rx)" = "$polled" ]
    step deferred/no-poll-in-dom0 $? "$polled, $(net_rx)"
    tell 30 deferred/detach detach 1
    [ "$(cat $queue/gro_flush_timeout) $(cat $queue/napi_defer_hard_irqs)" = '20000000000 1000' ]
    step deferred/as-before $? "$(cat $queue/gro_flush_timeout) $(cat $queue/napi_defer_hard_irqs)"
    deferring 0 0
}

# Without ftrace nothing keeps packets that go around the queue from the driver: it is not attached.
unarmed() {
    echo 0 >/proc/sys/kernel/ftrace_enabled
    dmesg -c >/dev/null
    ! sh -c "echo eth0 >$twin/attach" 2>/dev/null && is interface - && kernel_said 'twin: .*ftrace is turned off'
    step unarmed/refused $? "$(dmesg | grep twin: | head -n 1)"
    echo 1 >/proc/sys/kernel/ftrace_enabled
}

# written: how often the registers were, by now.
written() {
    cat /sys/module/xen_writer/parameters/written
}

writes_on() {
    [ "$(written)" -gt "$1" ]
}

# stood STEP COMMAND...: for how long the other processor did, while the command ran.
pause=/sys/module/xen_writer/parameters/longest
stood() {
    stood=$1
    shift
    echo 0 >$pause
    "$@"
    standing=$(($(cat $pause) / 1000000))
    [ $standing -lt $(($(limit 5) * 1000)) ]
    step "$stood" $? "$standing ms"
}

network eth0 10.0.2.9
ip addr flush dev eth0
memory
step memory $? "$said"
load_modules
unarmed
name eth0 $longest
await 60 name/carrier grep -q 1 /sys/class/net/$longest/carrier
refused $longest
step name/whole $? "$(dmesg | grep 'twin: Xen refuses')"
name $longest eth0
await 60 name/carrier-again grep -q 1 $queue/carrier
attach_eth0
tell 30 first/detach detach 1
await 60 first/carrier-again grep -q 1 $queue/carrier
ip addr add 10.0.2.9/24 dev eth0
deferred
ip addr flush dev eth0
await 60 deferred/carrier grep -q 1 $queue/carrier

try 20 writer insmod /xen_writer.ko
for i in 1 2 3 4; do
    count=$(written)
    await 20 "writer/$i-dom0" writes_on "$count"
    stood "writer/$i-attach-stood" tell 30 "writer/$i-attach" attach eth0
    count=$(written)
    await 20 "writer/$i-xen" writes_on "$count"
    stood "writer/$i-detach-stood" tell 30 "writer/$i-detach" detach 1
done
try 20 writer-away rmmod xen_writer
# dom0's other processor goes offline and comes online again, while Xen has the card and before.
second=/sys/devices/system/cpu/cpu1/online
tell 30 vcpu/attach attach eth0
try 60 vcpu/goes sh -c "echo 0 >$second"
tell 30 vcpu/detach detach 1
tell 30 vcpu/attach-with-one attach eth0
try 60 vcpu/comes sh -c "echo 1 >$second"
tell 5 vcpu/link link 1
tell 30 vcpu/detach-with-two detach 1
is aborts 0
step vcpu/no-abort $? "$(status_of aborts) aborts"
# A busy emulator's lockups are no failure.
! dmesg | grep -q 'unable to handle'
step no-oops $? "$(dmesg | grep 'unable to handle' | head -n 1)"
# The hot routines are forced out while Xen uses their memory.
where() {
    cat /sys/module/twin_hot/sections/.bss
}
was=$(where)
tell 30 forced/attach attach eth0
dmesg -c >/dev/null
try 60 forced/gone rmmod -f twin_hot
is interface - && kernel_said 'twin: the hot routines are unloaded: eth0 is detached'
step forced/detached $? "$(dmesg | sed -n 's/.*twin: //p' | tail -n 1)"
! dmesg | grep 'unable to handle'
step forced/no-oops $? "$(dmesg | grep 'unable to handle' | head -n 1)"
# The payload in Xen has addresses of the hot routines that were there before.
modprobe bonding
try 60 forced/hot-again insmod /twin_hot.ko
rmmod bonding
[ "$(where)" != "$was" ]
step forced/elsewhere $? "$was, $(where)"
network eth0 10.0.2.9
ip addr flush dev eth0
dmesg -c >/dev/null
! sh -c "echo eth0 >$twin/attach" 2>/dev/null && is interface - && kernel_said 'twin: Xen refuses eth0: .*make the payload again'
step forced/stale-payload $? "$(dmesg | sed -n 's/.*twin: //p' | head -n 1)"
patiently forced/revert xen-livepatch revert twin
try 60 forced/unload xen-livepatch unload twin
payload
patiently forced/load xen-livepatch load /tmp/twin.livepatch
# So is the driver; but not the module that has attached it, which the hot routines need.
tell 30 driver/attach attach eth0
dmesg -c >/dev/null
! rmmod -f twin_dom0 2>/dev/null && is interface eth0
step driver/not-the-module $? "interface $(status_of interface)"
try 60 driver/gone rmmod -f e1000
is interface - && kernel_said "twin: the card's driver is unbound: eth0 is detached"
step driver/detached $? "$(dmesg | sed -n 's/.*twin: //p' | tail -n 1)"
! dmesg | grep -E 'unable to handle|WARNING: '
step driver/no-oops $? ""
try 60 driver/back modprobe e1000
try 60 rmmod-hot rmmod twin_hot
patiently revert xen-livepatch revert twin
try 60 unload xen-livepatch unload twin
native after/
