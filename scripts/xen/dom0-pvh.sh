# SPDX-License-Identifier: MIT OR Apache-2.0
# Guests with hardware paging (PVH), one beside a paravirtual one: the window is in page tables of
# Xen's for them, not in their own.
. /twin.sh

xl info | sed -n 's/^virt_caps/@value virt_caps/p'
load_modules
attach_eth0
guest_type=pvh
if start_guest 1; then
    connected 1
    mark_counts
    finish_guest 1 300
    judge_counts guest1
fi
guest_type=pv
start_guest 2 && connected 2
guest_type=pvh
if start_guest 3; then
    connected 3
    finish_guest 2 300
    finish_guest 3 300
    never_aborted both/alive
fi
detach_eth0
native native-after/
unload_modules
