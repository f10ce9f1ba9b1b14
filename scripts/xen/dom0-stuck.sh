# SPDX-License-Identifier: MIT OR Apache-2.0
# A card that completes nothing any more, in the middle of a guest's transfers: it may not
# reach memory, because dom0 has cleared its bus master bit (PCI, command register, bit 2). The driver
# does not notice, Xen has packets on their way for ever. dom0 asks for the driver and gives
# up: all stays as it was. Then it insists: the card is stopped, its packets are lost. With a
# card that may reach memory again, dom0's own driver works, and so does the guest with another
# attachment.
. /twin.sh

# Whether packets are on their way and stay there.
hangs() {
    completed=$(status_of completed)
    [ "$(status_of transmitted)" -gt "$completed" ] || return
    sleep 1
    [ "$(status_of completed)" = "$completed" ]
}

load_modules
attach_eth0

if start_guest 1; then
    connected 1
    pinged 1
    await_traffic guest1/moving
    whole=$(command_of)
    set_command $((whole & ~4))
    step stuck/no-bus-master $? "$(command_of), it was $whole"
    await 60 stuck/on-their-way hangs

    # ---- dom0 gives up ----
    ! timeout "$(limit 60)" sh -c "echo 1 >$twin/detach"
    step stuck/refused $? "$(dmesg | sed -n 's/.*twin: \(Xen does not give\)/\1/p' | tail -n 1)"
    kernel_said 'Xen does not give eth0 back: -11'
    step stuck/named $? ""
    is interface eth0 && is state 1 && is aborts 0 && grep -q "^vif$(xl domid guest1)\." $twin/status
    step stuck/as-it-was $? "interface $(status_of interface), state $(status_of state), $(grep -c ^vif $twin/status) guests"

    # ---- and insists ----
    tell 60 forced/detach detach force
    kernel_said 'eth0 does not come to rest, and is stopped'
    step forced/named $? ""
    is interface - && ! grep -q ^vif $twin/status
    step forced/let-go $? "interface $(status_of interface)"
    set_command "$whole"
    step forced/bus-master $? "$(command_of)"
    native forced/
    tell 30 forced/attach attach eth0
    finish_guest 1 300
    never_aborted guest1/alive
fi

detach_eth0
native native-after/
unload_modules
