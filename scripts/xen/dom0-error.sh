# SPDX-License-Identifier: MIT OR Apache-2.0
# The card is reset behind its driver in the middle of a guest's transfers: because the PCI bus has reported an error of it
# (runtime/tests/xen-faults/xen_error.c), and because an administrator asks for it (/sys/bus/pci/devices/*/reset; the card is behind a bridge here, whose
# bus can be). dom0's instance frees the rings for the first, and does not hear of the second. The device is detached
# before, and can be given to Xen again.
. /twin.sh

load_modules
attach_eth0
card=$(readlink -f /sys/class/net/eth0/device)

has_carrier() {
    grep -q 1 /sys/class/net/eth0/carrier
}

# detaches STEP WORDS COMMAND...: the interface is closed, and says why.
detaches() {
    what=$1 words=$2
    shift 2
    dmesg -c >/dev/null
    try 120 "$what/done" "$@"
    is interface - && kernel_said "twin: $words: eth0 is detached"
    step "$what/detached" $? "$(dmesg | sed -n 's/.*twin: //p' | tail -n 1)"
    try 60 "$what/up" ip link set eth0 up
    await 60 "$what/carrier" has_carrier
    native "$what/"
    tell 30 "$what/attach" attach eth0
    await_traffic "$what/moving"
    await_transfers "$what/transfers"
    never_aborted "$what/alive"
}

if start_guest 1 forever; then
    connected 1
    pinged 1
    await_traffic guest1/moving
    # What changes nothing of it.
    try 60 rescan sh -c 'echo 1 >/sys/bus/pci/rescan'
    await_traffic rescan/moving
    detaches error "the card's bus has an error" insmod /xen_error.ko
    rmmod xen_error
    detaches again "the card's bus has an error" insmod /xen_error.ko
    detaches reset 'the card is reset' sh -c "echo 1 >$card/reset"
    # Between what twin hears of a reset and the reset nothing is attached.
    rmmod xen_error
    dmesg -c >/dev/null
    insmod /xen_error.ko asked=1 wait=20 &
    holder=$!
    await 20 asked/begun kernel_said 'xen_error: eth0 waits'
    is interface - && ip link set eth0 up
    step asked/detached $? "interface $(status_of interface)"
    ! sh -c "echo eth0 >$twin/attach" 2>/dev/null && kernel_said 'twin: eth0 is being reset, or taken from its driver: try again'
    step asked/refused $? "interface $(status_of interface), $(dmesg | sed -n 's/.*twin: //p' | tail -n 1)"
    wait $holder
    await 60 asked/carrier has_carrier
    tell 30 asked/attach attach eth0
    await_traffic asked/moving
    no_failure
    destroyed 1
fi
! dmesg | grep -E 'WARNING: |BUG: |Oops|unable to handle'
step dom0-complains-not $? ""
detach_eth0
# An error while nothing is attached: until the driver has the card again it is not given to Xen.
rmmod xen_error
dmesg -c >/dev/null
insmod /xen_error.ko wait=5 &
holder=$!
await 20 between/begun kernel_said 'xen_error: eth0 waits'
! sh -c "echo eth0 >$twin/attach" 2>/dev/null && kernel_said 'twin: eth0 is being reset, after an error of its bus: try again'
step between/refused $? "$(dmesg | sed -n 's/.*twin: //p' | tail -n 1)"
wait $holder
step between/recovered $? ""
native between/
# What dom0's own driver makes of it.
try 60 own/error sh -c 'rmmod xen_error; insmod /xen_error.ko'
native native-after/
unload_modules
