# SPDX-License-Identifier: MIT OR Apache-2.0
# The driver inside Xen: natively first, then attached, with guests' traffic, wild pointers,
# taken back and given again, detached, and natively again.
. /twin.sh

native native-before/
load_modules
attach_eth0

# ---- Traffic ---------------------------------------------------------------------

run_guest() {
    start_guest "$1" || return
    connected "$1"
    mark_counts
    finish_guest "$1" 300
    judge_counts "guest$1"
}

run_guest 1
is aborts 0
step no-abort $? "$(status_of aborts) aborts, $(status_of upcalls) upcalls"

# ---- Wild pointers -----------------------------------------------------------------

# Null, user, list poison, Xen's text, Xen's directmap, not canonical.
for value in 10 7fff12345678 dead000000000100 ffff82d040200000 ffff830000001000 1111222233334440; do
    wild $value
done
run_guest 2

# ---- Taken back in the middle --------------------------------------------------------

# Two guests at once. Their connections outlive it: what is lost meanwhile is sent again. An echo
# is not.
if start_guest 3 && start_guest 4; then
    connected 3
    connected 4
    pinged 3
    pinged 4
    await_traffic both/moving
    tell 30 both/detach detach 1
    is interface -
    step both/detached $? "interface $(status_of interface)"
    tell 30 both/attach attach eth0
    finish_guest 3 300
    finish_guest 4 300
    is state 1
    step both/alive $? "state $(status_of state), $(status_of aborts) aborts"
fi

# ---- Detached -----------------------------------------------------------------------

detach_eth0
native native-after/
unload_modules
