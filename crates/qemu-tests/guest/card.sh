#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Loads the modules that /order names, one after the other, and uses the network
# card that they drive, if the machine has one: traffic both ways, ethtool,
# tracing, down and up, unload, and all of it again.
. /common.sh
. /traffic.sh

modules=$(cat /order)

# Some drivers do not stay loaded without a device.
load() {
    loaded=
    declined=
    for module in $modules; do
        if output=$(insmod "/modules/$module.ko" 2>&1); then
            loaded="$module $loaded"
        else
            case $output in
                *"No such device"*) declined="$declined $module" ;;
                # Permanent; see unload.
                *"File exists"*) ;;
                *)
                    step "$1-$module" 1 "$output"
                    return
                    ;;
            esac
        fi
    done
    step "$1" 0 "$(echo "$loaded" | wc -w) modules; without a device:$declined"
}

# In reverse order; then again for those that were still in use.
unload() {
    for pass in 1 2 3; do
        left=
        for module in $loaded; do
            rmmod "$module" 2>/dev/null || left="$left $module"
        done
        loaded=$left
        [ -z "$left" ] && break
        sleep 1
    done
    # A module without exit is permanent (phylink), and what it uses stays with it.
    stuck=$(for module in $left; do
        awk -v name="$module" '$1 == name && $3 == 0 && !/permanent/ { print $1 }' /proc/modules
    done)
    [ -z "$stuck" ]
    step "$1" $? "stuck: $stuck; permanent, or used by those:$left"
}

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

load load
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
    # All functions of the modules. The filter takes a module's name that begins with
    # a digit for a number.
    for module in $modules; do
        case $module in
            [0-9]*) grep "\[$module\]" $tracing/available_filter_functions | cut -d ' ' -f 1 ;;
            *) echo ":mod:$module" ;;
        esac >>$tracing/set_ftrace_filter
    done
    step ftrace-filter $? "$(wc -l <$tracing/set_ftrace_filter) functions"
    echo function >$tracing/current_tracer
    no_loss ftrace-ping 2
    traced=$(grep -c '<-' $tracing/trace)
    [ "$traced" -gt 2 ]
    step ftrace $? "$traced calls"
    echo nop >$tracing/current_tracer
    echo >$tracing/set_ftrace_filter
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
