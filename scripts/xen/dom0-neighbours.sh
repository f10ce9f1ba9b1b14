# SPDX-License-Identifier: MIT OR Apache-2.0
# What else dom0's kernel may have beside, above and around an interface that is attached, in a guest's transfers: a direct
# call at the driver's function (runtime/tests/xen-faults/xen_direct.c), tracers on, ftrace and kprobes off; a VLAN, a macvlan, an ipvlan, a bond; a thread for its
# polls; another name, another network namespace; and all the while packets by the driver's own function, which are
# dropped. Then an administrator moves processors and sets Xen's power.
. /twin.sh

load_modules
mount -t tracefs tracefs /sys/kernel/tracing
tracing=/sys/kernel/tracing

# drops STEP: what goes around the queue does not reach the driver.
drops() {
    dropped=$(status_of dropped-egress)
    pktgen 20
    [ $(($(status_of dropped-egress) - dropped)) -ge 20 ]
    step "$1/dropped" $? "$(($(status_of dropped-egress) - dropped)) packets, $sent by pktgen"
}

# goes_on STEP: nor does it then, and the guest's transfers go on.
goes_on() {
    drops "$1"
    await_traffic "$1/moving"
    never_aborted "$1/alive"
}

# refuses STEP COMMAND...: whoever it is.
refuses() {
    name=$1
    shift
    ! output=$(timeout "$(limit 60)" "$@" 2>&1)
    step "$name" $? "$(echo "$output" | tail -n 1)"
}

has_carrier() {
    grep -q 1 /sys/class/net/eth0/carrier
}

# Who calls around ftrace's list would call the driver: it is not attached, and nobody comes afterwards.
network eth0 10.0.2.9
ip addr flush dev eth0
try 20 direct/there insmod /xen_direct.ko
refuses direct/refused sh -c "echo eth0 >$twin/attach"
kernel_said 'twin: .*another module has the function'
step direct/said $? "$(dmesg | grep 'twin: ' | head -n 1)"
try 20 direct/gone rmmod xen_direct
# But for BPF programs, which are told: one that is there before, and one that comes.
traced() {
    fexit e1000 e1000_xmit_frame >/tmp/fexit 2>&1 &
    tracer=$!
    await 20 "$1/there" grep -q there /tmp/fexit || cat /tmp/fexit
    try 20 "$1/direct" grep '^e1000_xmit_frame .*D' $tracing/enabled_functions
}
traced fexit
attach_eth0
refuses direct/not-now insmod /xen_direct.ko
drops fexit
kill $tracer
drops fexit-gone
traced fexit-again
drops fexit-again
kill $tracer

start_guest 1 forever && connected 1
pinged 1
goes_on guest1

# ---- Probes and tracers ----
try 20 kprobes/off sh -c 'echo 0 >/sys/kernel/debug/kprobes/enabled'
try 20 kprobes/no-jumps sh -c 'echo 0 >/proc/sys/debug/kprobes-optimization'
refuses ftrace/not-off sh -c 'echo 0 >/proc/sys/kernel/ftrace_enabled'
drops off
try 20 tracing/none sh -c "echo >$tracing/set_ftrace_filter"
for tracer in function function_graph nop; do
    sh -c "echo e1000_xmit_frame >$tracing/set_ftrace_filter" 2>/dev/null
    try 60 "tracing/$tracer" sh -c "echo $tracer >$tracing/current_tracer"
    drops "tracing-$tracer"
done
try 20 kprobes/on sh -c 'echo 1 >/sys/kernel/debug/kprobes/enabled'
try 20 kprobes/probe sh -c "echo 'p:ours e1000_xmit_frame' >$tracing/kprobe_events"
try 20 kprobes/probe-on sh -c "echo 1 >$tracing/events/kprobes/ours/enable"
goes_on probe
try 20 kprobes/probe-off sh -c "echo 0 >$tracing/events/kprobes/ours/enable; echo >$tracing/kprobe_events"

# ---- Above it ----
# above TYPE MODULE [OPTIONS]: an interface of that type on eth0 sends by it: to nobody.
above() {
    try 20 "$1/modules" modprobe "$2"
    # shellcheck disable=SC2086
    try 20 "$1/add" ip link add link eth0 name above type "$1" ${3:-}
    try 20 "$1/up" ip link set above up
    ip addr add 10.0.9.9/24 dev above
    timeout "$(limit 2)" ping -c 2 -W 1 10.0.9.1 >/dev/null
    drops "$1"
    try 20 "$1/gone" ip link del above
}
above vlan 8021q 'id 5'
above macvlan macvlan
above ipvlan ipvlan
try 20 bond/modules modprobe bonding
refuses bond/enslave sh -c 'echo +eth0 >/sys/class/net/bond0/bonding/slaves'
drops bond
try 20 bond/gone rmmod bonding
goes_on above

# ---- Its settings ----
refuses settings/channels ethtool -L eth0 combined 2
ethtool -C eth0 rx-usecs 100
ethtool -E eth0 magic 0x100e8086 offset 0x60 value 0x55
try 20 settings/queue ip link set eth0 qlen 66
try 20 settings/wake ethtool -s eth0 wol d
try 20 settings/power sh -c 'echo auto >/sys/class/net/eth0/device/power/control'
refuses settings/disabled sh -c 'echo 0 >/sys/class/net/eth0/device/enable'
try 20 settings/receive-queue sh -c 'echo 1 >/sys/class/net/eth0/queues/rx-0/rps_cpus'
try 20 settings/timeout sh -c 'echo 20000 >/sys/class/net/eth0/gro_flush_timeout; echo 10 >/sys/class/net/eth0/napi_defer_hard_irqs'
goes_on settings
try 20 settings/thread sh -c 'echo 1 >/sys/class/net/eth0/threaded'
drops threaded
tell 30 threaded/detach detach 1
await 60 threaded/carrier has_carrier
native threaded/
tell 30 threaded/attach attach eth0
goes_on threaded-again

# ---- Its name, and where it is ----
# Kernels before 6.2 rename none that is up.
ip link set eth0 name wire && name=wire || name=eth0
is interface $name
step name/said $? "$(status_of interface)"
[ $name = eth0 ] || ip link set wire name eth0
drops name
unshare -n sleep 1000 &
elsewhere=$!
sleep 1
try 20 elsewhere/moved ip link set eth0 netns $elsewhere
is interface -
step elsewhere/detached $? "interface $(status_of interface)"
refuses elsewhere/refused sh -c "echo eth0 >$twin/attach"
kill $elsewhere
await 60 elsewhere/back test -e /sys/class/net/eth0
try 20 elsewhere/up ip link set eth0 up
await 60 elsewhere/carrier has_carrier
tell 30 elsewhere/attach attach eth0
goes_on elsewhere

# ---- Xen's processors, and power ----
last=$(($(xl info | sed -n 's/^nr_cpus *: *//p') - 1))
try 60 pin/first xl vcpu-pin guest1 0 0
await_traffic pin/moving
try 60 pin/dom0-too xl vcpu-pin --force Domain-0 0 all
await_traffic pin/moving-anywhere
try 60 pin/last xl vcpu-pin guest1 0 $last
await_traffic pin/moving-again
try 60 weight xl sched-credit2 -d guest1 -w 512
xenpm get-cpuidle-states >/dev/null 2>&1
try 60 power sh -c 'xenpm set-max-cstate 0 >/dev/null; xenpm set-max-cstate unlimited >/dev/null'
goes_on power

no_failure
never_aborted alive
destroyed 1
detach_eth0
native after/
# The driver goes before twin's modules, and what is at its function with it.
try 60 reloaded/gone rmmod e1000
try 20 reloaded/no-call sh -c "! grep twin_dom0 $tracing/enabled_functions"
try 20 reloaded/ftrace-off sh -c 'echo 0 >/proc/sys/kernel/ftrace_enabled && echo 1 >/proc/sys/kernel/ftrace_enabled'
try 60 reloaded/back modprobe e1000
native reloaded/
unload_modules
! dmesg | grep -E 'WARNING: |BUG: |Oops|unable to handle'
step dom0-complains-not $? ""
