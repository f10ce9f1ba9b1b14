# SPDX-License-Identifier: MIT OR Apache-2.0
# A guest starts anew (xl reboot) in its transfers: first one whose packets go through stock netback, so that what is the stock system's
# is known, then one with twin's, with page tables of either kind. Its domain is another one afterwards, and its transfers begin again.
. /twin.sh

# reboots N: guest N is another domain, and has its carrier again.
reboots() {
    old=$(xl domid "guest$1")
    carriers=$(steps_of "$1" carrier)
    try 60 "guest$1/asked" xl reboot "guest$1"
    await 240 "guest$1/another" another "$1" || {
        xl list
        tail -n 40 "/var/log/xen/xl-guest$1.log"
        tail -n 20 "$(console_of "$1")"
        xenstore-ls -f /local/domain/0/backend
    }
    await 240 "guest$1/carrier-again" has_more "$1" carrier "$carriers"
}

another() {
    new=$(xl domid "guest$1") && [ "$new" != "$old" ]
}

# has_more N STEP NUMBER: it succeeded more often in guest N.
has_more() {
    [ "$(steps_of "$1" "$2")" -gt "$3" ]
}

begin_netback
if start_guest 5 forever; then
    connected 5
    pinged 5
    reboots 5
    destroyed 5
fi
ip link set br0 down
brctl delif br0 eth0
brctl delbr br0
await 60 netback/gone rmmod xen-netback

load_modules
attach_eth0
for guest_type in pv pvh; do
    start_guest 1 forever || continue
    connected 1
    pinged 1
    await_traffic "$guest_type/moving"
    reboots 1
    await_traffic "$guest_type/moving-again"
    no_failure
    never_aborted "$guest_type/alive"
    destroyed 1
done
await 60 gone/whole sh -c "! xl list | grep -q null"
detach_eth0
native native-after/
unload_modules
