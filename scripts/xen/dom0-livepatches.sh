# SPDX-License-Identifier: MIT OR Apache-2.0
# Other livepatches in Xen: one that is applied first is named by `twin xen check`, and nothing is changed; one
# that is put above twin's stays there, and its removal is what a detachment waits for. In a guest's transfers
# people try by hand what would take twin's code away under a driver.
. /twin.sh
vif_script=vif-twin
other=/other.livepatch

is_other() {
    xen-livepatch list | grep -q "^other .*$1"
}

# refused STEP COMMAND...: Xen does not do it, and the driver is there.
refused() {
    name=$1
    shift
    ! output=$(timeout "$(limit 60)" "$@" 2>&1) && in_xen && is state 1
    step "refused/$name" $? "$(echo "$output" | tail -n 1)"
}

native before/

# ---- Before twin's -------------------------------------------------------------------
patiently before/loaded xen-livepatch load $other
is_other APPLIED
step before/applied $? "$(xen-livepatch list | grep '^other')"
says 1 before/check "Xen has the livepatch other, and twin's has to be its first" twin xen check eth0
says 1 before/attach 'Xen has the livepatch other' twin xen attach eth0
untouched before
patiently before/reverted xen-livepatch revert other
try 60 before/unloaded xen-livepatch unload other
# One that is there, and not applied, is not in the way.
try 60 before/uploaded xen-livepatch upload other $other
says 0 before/check-again 'eth0 can be driven inside this Xen' twin xen check eth0
says 0 attach 'eth0: driven inside Xen 4.' twin xen attach eth0

# ---- After it ------------------------------------------------------------------------
if start_guest 1 forever; then
    connected 1
    await_traffic guest1/moving
    refused unload xen-livepatch unload twin
    try 60 again/applied xen-livepatch apply twin
    refused revert xen-livepatch revert twin
    refused replace xen-livepatch replace other
    refused above xen-livepatch apply other
    await_traffic refused/moving
    patiently above/applied xen-livepatch apply other --nodeps
    await_traffic above/moving
    refused below xen-livepatch revert twin
    says 0 above/restart 'eth0: driven inside Xen' twin xen restart eth0
    await_traffic above/restarted
    await_transfers above/transfers
    no_failure
    never_aborted alive
    destroyed 1
fi

# The driver is taken back, and twin's payload stays for as long as the other is above it.
says 1 above/detach 'Top is other' twin xen detach eth0
is interface - && in_xen
step above/detached $? "interface $(status_of interface), $(xen-livepatch list | grep -c '^twin ') payloads"
patiently above/reverted xen-livepatch revert other
try 60 above/unloaded xen-livepatch unload other
says 0 detach "nothing of twin's is left" twin xen detach eth0
untouched detached
native after/
