# SPDX-License-Identifier: MIT OR Apache-2.0
# What else happens on a machine while the driver is inside Xen: dom0's memory shrinks and grows,
# processes come and go, a guest dies in mid-transfer, people try what they must not; a guest's
# transfers outlive it. Then two guests talk with each other.
. /twin.sh

load_modules
attach_eth0

# ---- dom0 at work ------------------------------------------------------------------

# has_memory MIB: whether dom0 has that much, within a page or two.
has_memory() {
    mib=$(xl list Domain-0 | awk 'NR == 2 { print $3 }')
    [ $((mib - $1)) -le 1 ] && [ $(($1 - mib)) -le 1 ]
}

if start_guest 1; then
    connected 1
    mark_counts
    await_traffic guest1/moving
    whole=$(xl list Domain-0 | awk 'NR == 2 { print $3 }')
    try 60 balloon/down xl mem-set Domain-0 $((whole - 128))
    await 120 balloon/is-down has_memory $((whole - 128))
    try 60 balloon/up xl mem-set Domain-0 "$whole"
    await 120 balloon/is-up has_memory "$whole"
    # Each has page tables of its own, in which the window must be.
    n=0
    while [ $n -lt 100 ] && /bin/busybox true; do
        n=$((n + 1))
    done
    [ $n = 100 ]
    step processes $? "$n came and went"
    ! ip link set eth0 mtu 1400 2>/dev/null
    step mtu-refused $? "$(cat /sys/class/net/eth0/mtu)"
    ! rmmod e1000 2>/dev/null && ! rmmod twin_hot 2>/dev/null && ! rmmod twin_dom0 2>/dev/null
    step rmmod-refused $? "e1000, twin_hot, twin_dom0"
    ! xen-livepatch revert twin >/dev/null 2>&1
    step revert-refused $? "while it is attached"
    if start_guest 2; then
        connected 2
        kicks=$(status_of kicks-in-dom0)
        await_traffic guest2/moving
        destroyed 2
    fi
    finish_guest 1 600
    judge_counts guest1
fi

# ---- Guest to guest ----------------------------------------------------------------

if start_guest 3 listen && start_guest 4 talk; then
    end_guest 3 600
    end_guest 4 600
    [ "$(steps_of 3 received-from-guest)" = 1 ] && [ "$(steps_of 4 sent-to-guest)" = 1 ]
    step pair/complete $? "guest 4's bytes are guest 3's"
    never_aborted pair/alive
fi

detach_eth0
native after/
unload_modules
