#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Loads the modules that /order names, one after the other, and uses them: as /exercise
# says, if there is one; and the network card that they drive, if the machine has one: traffic
# both ways, ethtool, tracing, down and up. Then unload, and all of it again.
. /common.sh
. /traffic.sh
. /loading.sh

modules=$(cat /order)

# The card's interface; a bus may take its time to find it.
found() {
    i=0
    while [ $i -lt 100 ]; do
        i=$((i + 1))
        interface=$(ls /sys/class/net | grep -v '^lo$' | head -n 1)
        [ -n "$interface" ] && return
        sleep 0.1
    done
    return 1
}

start() {
    found
    step "$1-interface" $? "$interface"
    ip link set "$interface" up
    step "$1-up" $?
    ip addr add 10.0.2.15/24 dev "$interface"
    carrier
    step "$1-carrier" $?
}

# Places of functions in the tracer's list, which its filter takes for names: those that awk's
# condition $1 selects, by name and module in $1 and $2.
select_functions() {
    awk "BEGIN {
            while ((getline name <\"/order\") > 0) own[\"[\" name \"]\"]
            while ((getline name <\"/imports\") > 0) imported[name]
        }
        $1 { print NR }" $tracing/available_filter_functions >/tmp/selected
    cat /tmp/selected >$tracing/set_ftrace_filter
    step "$2" $? "$(wc -l </tmp/selected) functions"
}

quiet_tracer() {
    echo nop >$tracing/current_tracer
    echo >$tracing/set_ftrace_filter
    echo >$tracing/trace
    echo 1 >$tracing/tracing_on
}

# All functions of the modules: the host reads which were called.
trace_functions() {
    select_functions '($2 in own)' ftrace-filter
    echo function >$tracing/current_tracer
    no_loss ftrace-ping 2
    echo 0 >$tracing/tracing_on
    awk '$NF ~ /^<-/ { print $(NF - 1) }' $tracing/trace | sort -u >/tmp/traced
    show ftrace /tmp/traced
    quiet_tracer
}

# The different stacks of a trace that have a function of the modules in them.
show_stacks() {
    awk 'BEGIN {
            while ((getline name <"/functions") > 0) own[name]
        }
        function print_new() {
            if (through && !(stack in seen)) {
                seen[stack]
                printf "%s-\n", stack
            }
            stack = ""
            through = 0
        }
        /^ => / {
            stack = stack $0 "\n"
            if ($2 in own) through = 1
            next
        }
        { print_new() }
        END { print_new() }' $tracing/trace >/tmp/stacks
    show "$1" /tmp/stacks 6000
    rm -f /tmp/stacks
}

# Stack traces from each of these functions, and from those of the kernel that they call.
trace_stacks() {
    select_functions '($2 in own) || (NF == 1 && $1 in imported)' stacks-filter
    echo 1 >$tracing/options/func_stack_trace
    echo function >$tracing/current_tracer
    ip link set "$interface" down
    ip link set "$interface" up
    carrier
    no_loss stacks-ping 2
    ethtool -d "$interface" >/tmp/query 2>&1
    echo 0 >$tracing/tracing_on
    # A new tracer empties the trace.
    show_stacks stacks
    echo nop >$tracing/current_tracer
    echo 0 >$tracing/options/func_stack_trace
    quiet_tracer
}

# Stack traces from the timer's interrupt, wherever the modules are then.
trace_timer() {
    timer=$tracing/events/irq_vectors/local_timer_entry
    echo stacktrace >$timer/trigger
    download timer-traffic /dev/null
    nc $host "$up" </tmp/data
    echo '!stacktrace' >$timer/trigger
    echo 0 >$tracing/tracing_on
    show_stacks timer
    quiet_tracer
}

load load
[ ! -e /exercise ] || . /exercise
if [ "$(option card)" = yes ]; then
    start load
    no_loss ping 3
    download download /tmp/data
    nc $host "$up" </tmp/data
    step upload $?
    bytes=$(cat /sys/class/net/"$interface"/statistics/rx_bytes)
    [ "$bytes" -gt "$(option bytes)" ]
    step statistics $? "rx_bytes $bytes"
    try ethtool-i ethtool -i "$interface"
    # Not every driver has statistics or registers to tell.
    ethtool -S "$interface" >/tmp/query 2>&1
    ethtool -d "$interface" >/tmp/query 2>&1
    ip link set "$interface" down
    step link-down $?
    ip link set "$interface" up
    step link-up $?
    carrier
    no_loss link-ping 2
    trace_functions
    trace_stacks
    trace_timer
    ip link set "$interface" down
fi
unload unload
load reload
if [ "$(option card)" = yes ]; then
    start reload
    no_loss reload-ping 2
    ip link set "$interface" down
fi
unload unload-again
finish
