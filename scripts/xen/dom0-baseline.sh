# SPDX-License-Identifier: MIT OR Apache-2.0
# The comparison: the guest's packets through stock netback, bridge and e1000 of dom0.
begin_netback

before=$(card_interrupts)
start_guest 1 && finish_guest 1 600
echo "@value card-interrupts $(($(card_interrupts) - before))"
[ "$(card_interrupts)" -gt "$before" ]
step interrupts-in-dom0 $? "the card's, counted in /proc/interrupts"
