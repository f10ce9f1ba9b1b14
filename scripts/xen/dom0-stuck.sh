# SPDX-License-Identifier: MIT OR Apache-2.0
# A card that completes nothing any more, in the middle of a guest's transfers: it may not
# reach memory, because dom0 has cleared its bus master bit (PCI, command register, bit 2). The driver
# does not notice, Xen has packets on their way for ever. dom0 asks for the driver and gives
# up: all stays as it was. Then it insists: the card is stopped, its packets are lost. With a
# card that may reach memory again, dom0's own driver works, and so does the guest with another
# attachment. Then the transmitter is off, packets wait in the card's ring, and dom0 insists again: when Xen has freed them the
# driver's watchdog in dom0 turns the transmitter on (runtime/tests/xen-faults/xen_watchdog.c). None is sent. Once more, by
# a restart. The same once more, where nobody asks for anything: dom0 finds that the card hangs, and somebody else has the card's lock for some time. Last, the card's registers
# are off (bit 1), so that nothing of Xen's or dom0's reaches it: it loses its bus master bit until the driver is bound again, and is not attached without.
. /twin.sh

# Whether packets are on their way and stay there.
hangs() {
    completed=$(status_of completed)
    [ "$(status_of transmitted)" -gt "$completed" ] || return
    sleep 1
    [ "$(status_of completed)" = "$completed" ]
}

# refuses STEP CONTROL WORD: a card that may not reach memory is dom0's, and the log says what to do.
refuses() {
    dmesg -c >/dev/null
    ! timeout "$(limit 60)" sh -c "echo $3 >$twin/$2" && is interface - &&
        kernel_said 'twin: eth0 may not access memory: unbind it from /sys/bus/pci/drivers/e1000 and bind it again'
    step "$1" $? "$(dmesg | sed -n 's/.*twin: \(.*may not access\)/\1/p')"
}

load_modules
hang_after 0
attach_eth0

if start_guest 1 forever; then
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
    await_traffic forced/moving
    never_aborted forced/alive

    # ---- The transmitter comes on before the driver has reset the card ----
    watchdog=/sys/module/xen_watchdog/parameters
    try 20 watchdog insmod /xen_watchdog.ko
    try 20 watchdog/off sh -c "echo 1 >$watchdog/hold"
    await 60 watchdog/on-their-way hangs
    waiting=$(($(status_of transmitted) - $(status_of completed)))
    tell 60 watchdog/detach detach force
    [ "$(cat $watchdog/closed)" = 1 ] && [ "$(cat $watchdog/sent)" = 0 ]
    step watchdog/none-sent $? "$(cat $watchdog/sent) of $waiting, which Xen has freed"
    [ "$(command_of)" = "$whole" ]
    step watchdog/bus-master $? "$(command_of), it was $whole"
    native watchdog/
    tell 30 watchdog/attach attach eth0
    await_traffic watchdog/moving
    never_aborted watchdog/alive

    # ---- The same, and given to Xen again at once ----
    try 20 again/off sh -c "echo 1 >$watchdog/hold"
    await 60 again/on-their-way hangs
    tell 60 again/restart restart force
    await_traffic again/moving
    never_aborted again/alive

    # ---- The same, and nobody asks for it; and for some time somebody else has the card's lock ----
    dmesg -c >/dev/null
    hang_after 5
    try 20 hung/off sh -c "echo 1 >$watchdog/hold"
    sh -c "echo 40 >$watchdog/lock" &
    await 60 hung/found kernel_said 'twin: eth0 is given packets, and has sent none for 5 s: it is taken back from Xen, and given again'
    hang_after 0
    await 60 hung/refused kernel_said 'twin: eth0 is being reset, or taken from its driver: try again'
    await 120 hung/given-again kernel_said 'twin: eth0 is driven inside Xen'
    await_traffic hung/moving
    await_transfers hung/transfers
    never_aborted hung/alive
    try 20 watchdog/gone rmmod xen_watchdog

    # ---- Its registers are off ----
    dmesg -c >/dev/null
    set_command $((whole & ~2))
    step lost/no-registers $? "$(command_of), it was $whole"
    tell 60 lost/detach detach force
    [ "$(command_of)" = $((whole & ~6)) ] && kernel_said 'eth0 did not answer: it may not access memory until its driver is bound again'
    step lost/no-bus-master $? "$(command_of)"
    set_command $((whole & ~4))
    refuses lost/not-attached attach eth0
    card=$(basename "$(readlink -f /sys/class/net/eth0/device)")
    try 60 lost/unbound sh -c "echo $card >/sys/bus/pci/drivers/e1000/unbind"
    try 60 lost/bound sh -c "echo $card >/sys/bus/pci/drivers/e1000/bind"
    await 30 lost/interface test -e /sys/class/net/eth0
    [ "$(command_of)" = "$whole" ]
    step lost/bus-master $? "$(command_of)"
    native lost/
    tell 30 lost/attach attach eth0
    await_transfers guest1/transfers
    no_failure
    never_aborted guest1/alive
    destroyed 1

    # ---- With nothing on its way it is given back, and not taken again ----
    set_command $((whole & ~4))
    refuses masterless/restart restart 1
    set_command "$whole"
    tell 30 masterless/attach attach eth0
fi

detach_eth0
native native-after/
unload_modules
