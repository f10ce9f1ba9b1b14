#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Loads a network driver and uses every feature by which a kernel reads or patches its
# code: traffic, ethtool, tracing, probes, static branches, unload.
. /common.sh
. /traffic.sh

module=$(option module)
interface=eth0

load() {
    insmod "/modules/$module.ko" $2
    step "$1" $?
    ip link set eth0 up
    step "$1-up" $?
    ip addr add 10.0.2.15/24 dev eth0
    carrier
    step "$1-carrier" $?
}

[ -f /modules/mii.ko ] && insmod /modules/mii.ko
load load debug=1
no_loss ping 5

# The kernel's use of the module's tables: no taint but that of a missing signature and,
# for one built out of tree, of that; its types unchanged, its init sections freed.
taint=$(cat /proc/sys/kernel/tainted)
[ $((taint & ~8192)) = "$(option taint)" ]
step taint $? "$taint"
types=$(cat /sys/kernel/btf/"$module" 2>/dev/null | wc -c)
[ "$types" = "$(option btf)" ]
step types $? "$types bytes"
[ "$(cat /sys/module/"$module"/initsize)" = 0 ] &&
    ! grep -q "init_module.*\[$module\]" /proc/kallsyms
step init-freed $?

# 32 MiB each way.
download download /tmp/data
nc $host "$up" </tmp/data
step upload $?
rm -f /tmp/data

# Queries, settings.
bytes=$(cat /sys/class/net/eth0/statistics/rx_bytes)
[ "$bytes" -gt 33554432 ]
step statistics $? "rx_bytes $bytes"
for query in "" -i -d; do
    ethtool $query eth0 >/tmp/query 2>&1
    step "ethtool$query" $? "$(head -n 2 /tmp/query | tail -n 1)"
done
ethtool -S eth0 >/tmp/query 2>&1
step ethtool-S $? "$(wc -l </tmp/query) lines"
parameter=$(option parameter)
if [ -n "$parameter" ]; then
    value=$(cat /sys/module/"$module"/parameters/"$parameter")
    step parameter $? "$parameter=$value"
    echo 77 >/sys/module/"$module"/parameters/"$parameter"
    [ "$(cat /sys/module/"$module"/parameters/"$parameter")" = 77 ]
    step parameter-written $?
    echo "$value" >/sys/module/"$module"/parameters/"$parameter"
fi
if [ "$(option ring)" = yes ]; then
    ethtool -G eth0 rx 512 tx 1024
    step ring $?
    ethtool -g eth0 | sed '1,/^Current/d' >/tmp/query
    [ "$(grep -c -e '^RX:[^0-9]*512$' -e '^TX:[^0-9]*1024$' /tmp/query)" = 2 ]
    step ring-size $?
    carrier
    no_loss ring-ping 2
fi
ip link set eth0 mtu 3000
step mtu $?
carrier
# QEMU's user network takes 1500 bytes at most, whatever the driver can.
no_loss mtu-ping 2 1400
ip link set eth0 mtu 1500
step mtu-back $?
carrier
ip link set eth0 down
step link-down $?
ip link set eth0 up
step link-up $?
carrier
no_loss link-ping 2

# Function tracing of all of the driver's functions.
option filter >$tracing/set_ftrace_filter
step ftrace-filter $? "$(wc -l <$tracing/set_ftrace_filter) functions"
echo function >$tracing/current_tracer
no_loss ftrace-ping 3
echo 0 >$tracing/tracing_on
show ftrace $tracing/trace
echo nop >$tracing/current_tracer
echo 1 >$tracing/tracing_on

# Stack traces from routines that the driver calls: its frames are in them.
echo dma_map_page_attrs >$tracing/set_ftrace_filter
for receive in napi_gro_receive gro_receive_skb; do
    echo $receive >>$tracing/set_ftrace_filter 2>/dev/null
done
echo 1 >$tracing/options/func_stack_trace
echo function >$tracing/current_tracer
no_loss stacks-ping 2
echo 0 >$tracing/tracing_on
show stacks $tracing/trace
echo nop >$tracing/current_tracer
echo 0 >$tracing/options/func_stack_trace
echo >$tracing/set_ftrace_filter
echo 1 >$tracing/tracing_on

# Probes in the middle of sequences, where words are pushed, each with a stack
# trace. Optimised probes have no unwind tables of their own.
echo 0 >/proc/sys/debug/kprobes-optimization
while read -r name place; do
    echo "p:$name $place" >>$tracing/kprobe_events
    step "probe-$name" $? "$place"
    echo stacktrace >$tracing/events/kprobes/"$name"/trigger
    echo 1 >$tracing/events/kprobes/"$name"/enable
done </probes
ip link set eth0 down
ip link set eth0 up
carrier
no_loss probes-ping 2
ethtool eth0 >/dev/null
ethtool -S eth0 >/dev/null
ethtool -d eth0 >/dev/null
echo 0 >$tracing/tracing_on
show probes $tracing/trace
while read -r name place; do
    echo 0 >$tracing/events/kprobes/"$name"/enable
    echo '!stacktrace' >$tracing/events/kprobes/"$name"/trigger
done </probes
echo >$tracing/kprobe_events
step probes-gone $?
echo 1 >$tracing/tracing_on

# Probes on the entry and the return of a function.
function=$(option function)
echo "p:entry $function" >$tracing/kprobe_events
echo "r:return $function" >>$tracing/kprobe_events
echo 1 >$tracing/events/kprobes/enable
no_loss kprobe-ping 2
echo 0 >$tracing/events/kprobes/enable
hits=$(awk '$2 > 0' $tracing/kprobe_profile | wc -l)
[ "$hits" = 2 ]
step kprobe $? "$function: $(awk '{ printf "%s %s ", $1, $2 }' $tracing/kprobe_profile)"
echo >$tracing/kprobe_events

# Stack traces from the timer's interrupt, wherever the driver is then: spills,
# slow paths, all of it. The host checks those with the driver in them. Where the timer
# finds it is chance: traffic goes on until enough of them are there.
own=$(option prefix)
stacks_of_driver() {
    awk -v own="$own" '
        /^ => / { stack = stack $0 "\n"; if (index($2, own) == 1 || $2 ~ /^twin_/) inside = 1; next }
        { if (inside) printf "%s-\n", stack; stack = ""; inside = 0 }
        END { if (inside) printf "%s-\n", stack }' $tracing/trace
}
# Five stacks, and one of them interrupted in the driver itself.
enough_stacks() {
    awk -v own="$own" '
        /^-/ { stacks++ }
        interrupt && (index($2, own) == 1 || $2 ~ /^twin_/) { inside++ }
        { interrupt = $2 ~ /^asm_sysvec_/ }
        END { exit !(stacks >= 5 && inside) }' /tmp/stacks
}
echo >$tracing/trace
echo 20000 >$tracing/buffer_size_kb
timer=$tracing/events/irq_vectors/local_timer_entry
echo stacktrace >$timer/trigger
: >/tmp/stacks
rounds=0
until enough_stacks || [ $rounds = 20 ]; do
    rounds=$((rounds + 1))
    echo 1 >$tracing/tracing_on
    download timer-traffic-$rounds /dev/null
    echo 0 >$tracing/tracing_on
    stacks_of_driver >>/tmp/stacks
    echo >$tracing/trace
done
echo '!stacktrace' >$timer/trigger
show timer /tmp/stacks 4000
rm -f /tmp/stacks
echo 1408 >$tracing/buffer_size_kb
echo 1 >$tracing/tracing_on

# Static calls of the kernel, in the module too, switched under traffic: the kernel's
# preemption mode, if it can be changed (from 5.12 on), through all modes that it has.
preempt=/sys/kernel/debug/sched/preempt
if [ -e $preempt ]; then
    mode=$(sed 's/.*(\(.*\)).*/\1/' $preempt)
    modes=$(tr -d '()' <$preempt)
    (download static-call-traffic /dev/null) &
    i=0
    while [ $i -lt 10 ]; do
        i=$((i + 1))
        for each in $modes; do
            echo "$each" >$preempt || step static-calls-"$each" 1
        done
        sleep 0.1
    done
    wait
    echo "$mode" >$preempt
    step static-calls $? "$(cat $preempt)"
else
    step static-calls 0 "this kernel cannot change its preemption mode"
fi

# Static branches toggled under traffic.
control=/sys/kernel/debug/dynamic_debug/control
(download dyndbg-traffic /dev/null) &
i=0
while [ $i -lt 10 ]; do
    i=$((i + 1))
    echo "module $module +p" >$control
    echo "module $module -p" >$control
    sleep 0.1
done
wait
[ "$(grep -c "\[$module\].*=_" $control)" -gt 0 ]
step dyndbg $? "$(grep -c "\[$module\]" $control) places"
echo "module $module +p" >$control
ip link set eth0 down
ip link set eth0 up
echo "module $module -p" >$control
carrier

# Unload, load again.
rmmod "$module"
step unload $?
load reload
no_loss reload-ping 2
rmmod "$module"
step unload-again $?
finish
