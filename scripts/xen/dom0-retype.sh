# SPDX-License-Identifier: MIT OR Apache-2.0
# A dom0 that makes page tables of pages which each processor has just written to through the
# window, and maps others in their place, while processes come and go and a guest's transfers go on
# (runtime/tests/xen-faults/xen_retype.c). No processor may reach such a page any more. With two
# processors the fault is made that must show: one that takes no part in dom0's flushes.
. /twin.sh

load_modules
attach_eth0
try 20 xen_retype insmod /xen_retype.ko
run=/sys/module/xen_retype/parameters/run
processors=$(xl info | sed -n 's/^nr_cpus *: //p')

# retype PREFIX ROUNDS: on each processor, none stale.
retype() {
    processor=0
    while [ "$processor" -lt "$processors" ]; do
        try 120 "$1-$processor" sh -c "echo $2 $processor >$run"
        [ "$(cat $run)" = "rounds $2 stale 0 wrong 0" ]
        step "$1-$processor/none-stale" $? "$(cat $run)"
        processor=$((processor + 1))
    done
}

retype quiet 300
if start_guest 1 forever; then
    connected 1
    await_traffic guest1/moving
    (while [ ! -e /tmp/stop ]; do /bin/busybox true; done) &
    retype traffic 300
    : >/tmp/stop
    await_traffic guest1/moving-on
    no_failure
    never_aborted alive
    destroyed 1
fi

# The test can fail: it finds the last processor, if that stays out of dom0's dirty mask.
if [ "$processors" -gt 1 ]; then
    try 120 out sh -c "echo 300 $((processors - 1)) out >$run"
    stale=$(sed 's/.* stale \([0-9]*\) .*/\1/' $run)
    [ "$stale" -gt 0 ]
    step out/stale-found $? "$(cat $run)"
    retype in-again 100
fi
rmmod xen_retype
detach_eth0
unload_modules
