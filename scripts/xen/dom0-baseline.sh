# SPDX-License-Identifier: MIT OR Apache-2.0
# The comparison: the guest's packets through stock netback, bridge and e1000 of dom0.
must 60 netback modprobe xen-netback
must 60 bridge modprobe bridge
brctl addbr br0
brctl addif br0 eth0
ip link set br0 up
ip link set eth0 up
await 60 carrier grep -q 1 /sys/class/net/eth0/carrier

before=$(card_interrupts)
start_guest 1 && finish_guest 1 600
echo "@value card-interrupts $(($(card_interrupts) - before))"
[ "$(card_interrupts)" -gt "$before" ]
step interrupts-in-dom0 $? "the card's, counted in /proc/interrupts"
