# SPDX-License-Identifier: MIT OR Apache-2.0
# The driver's watchdog, which runs in dom0, wants to reset the card in the middle of a guest's
# transfers: the carrier is lost while packets wait that the card does not send, because dom0 has
# cleared its bus master bit. The device is taken back instead and given again, and the guest's transfers go
# on. dom0 asks for the loss of the carrier by a second card on a network of its own.
. /twin.sh

waits() {
    [ "$(status_of transmitted)" -gt "$(status_of completed)" ]
}

# The status is nobody's for a moment between the two.
attached_anew() {
    [ "$(dmesg | grep -c 'twin: eth0 is driven inside Xen')" = 2 ] && is interface eth0
}

load_modules
hang_after 0
attach_eth0
ip link set eth1 up
ip addr add 10.0.4.9/24 dev eth1
await 60 other/carrier grep -q 1 /sys/class/net/eth1/carrier

if start_guest 1 forever; then
    connected 1
    pinged 1
    await_traffic guest1/moving
    whole=$(command_of)
    set_command $((whole & ~4))
    step stuck/no-bus-master $? "$(command_of), it was $whole"
    await 60 stuck/waiting waits
    try 60 carrier/asked nc 10.0.4.100 7006
    await 120 reset/wanted kernel_said 'twin: eth0 wants a reset: it is taken back from Xen, and given again'
    set_command "$whole"
    step reset/bus-master $? "$(command_of)"
    await 120 reset/given-again attached_anew
    await 60 reset/carrier grep -q 1 /sys/class/net/eth0/carrier
    await_traffic reset/moving
    await_transfers reset/transfers
    no_failure
    never_aborted alive
    destroyed 1
fi

detach_eth0
native native-after/
unload_modules
