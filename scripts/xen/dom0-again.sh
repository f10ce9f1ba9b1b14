# SPDX-License-Identifier: MIT OR Apache-2.0
# The driver is taken back and given to Xen again ten times, in the middle of a guest's transfers.
# Xen's log has nothing to complain of.
. /twin.sh

load_modules
attach_eth0
xl dmesg -c >/dev/null

if start_guest 1 forever; then
    connected 1
    n=0
    while [ $n -lt 10 ]; do
        await_traffic "again-$n/moving"
        tell 30 "again-$n/detach" detach 1
        tell 30 "again-$n/attach" attach eth0
        n=$((n + 1))
    done
    await_traffic again/moving
    await_transfers again/transfers
    never_aborted again/alive
    destroyed 1
    no_failure
fi
xl dmesg >/tmp/dmesg
grep 'twin:' /tmp/dmesg | grep -v 'twin: attached,\|twin: detached\|twin: driver code at' >/tmp/complaints
[ ! -s /tmp/complaints ]
step log-clean $? "$(grep -c 'twin: attached' /tmp/dmesg) times attached; $(head -n 1 /tmp/complaints)"

detach_eth0
native after/
unload_modules
