# SPDX-License-Identifier: MIT OR Apache-2.0
# The driver inside Xen: natively first, then attached, with guests' traffic, faults, detached,
# and natively again.
. /twin.sh

native native-before/
load_modules

# ---- Attached --------------------------------------------------------------------

# run_guest N: its traffic, and what Xen and dom0 counted meanwhile. A notification that the guest
# sent before Xen knew its port is dom0's: counting begins when the guest has its carrier.
run_guest() {
    start_guest "$1" || return
    await 240 "guest$1/connected" grep -q '^@ok carrier' "$(console_of "$1")"
    dom0=$(card_interrupts) kicks=$(status_of kicks-in-dom0)
    interrupts=$(status_of interrupts) transmitted=$(status_of transmitted) received=$(status_of received)
    finish_guest "$1" 300
    cat $twin/status
    [ "$(card_interrupts)" = "$dom0" ]
    step "guest$1/no-card-interrupt-in-dom0" $? "$dom0 before, $(card_interrupts) after"
    is kicks-in-dom0 "$kicks"
    step "guest$1/no-notification-in-dom0" $? "$kicks before, $(status_of kicks-in-dom0) after"
    [ "$(status_of interrupts)" -gt "$interrupts" ]
    step "guest$1/card-interrupts-in-xen" $? "$(($(status_of interrupts) - interrupts))"
    [ "$(status_of transmitted)" -gt "$transmitted" ] && [ "$(status_of received)" -gt "$received" ]
    step "guest$1/packets-in-xen" $? "$(($(status_of transmitted) - transmitted)) sent, $(($(status_of received) - received)) received"
    is state 1
    step "guest$1/alive" $? "state $(status_of state), $(status_of aborts) aborts"
}

attach_eth0
run_guest 1
is aborts 0
step no-abort $? "$(status_of aborts) aborts, so no call out of the driver that Xen does not serve"

# ---- Faults -----------------------------------------------------------------------

# Null, user, list poison, Xen's text, Xen's directmap, not canonical.
for value in 10 7fff12345678 dead000000000100 ffff82d040200000 ffff830000001000 1111222233334440; do
    before=$(status_of aborts)
    tell 20 "fault-$value/aborted" poison "registers $value"
    is state 2 && is aborts $((before + 1))
    step "fault-$value/dead" $? "kind $(status_of abort-kind), address $(status_of abort-address), rip $(status_of abort-rip)"
    xl dmesg -c >/tmp/dmesg
    grep -q 'twin: aborted: a fault (14), .* at e1000:e1000_intr' /tmp/dmesg
    step "fault-$value/named" $? "$(sed -n 's/.*twin: aborted: //p' /tmp/dmesg)"
    tell 30 "fault-$value/restart" restart 1
    is state 1
    step "fault-$value/alive" $? "state $(status_of state)"
done
run_guest 2

# ---- Taken back in the middle --------------------------------------------------------

# moved NUMBER: whether the driver inside Xen has received so many frames.
moved() {
    [ "$(status_of received)" -ge "$1" ]
}

# Two guests at once. Their connections outlive it: what is lost meanwhile is sent again.
if start_guest 3 && start_guest 4; then
    await 240 guest3/connected grep -q '^@ok carrier' "$(console_of 3)"
    await 240 guest4/connected grep -q '^@ok carrier' "$(console_of 4)"
    await 240 both/moving moved $(($(status_of received) + 300))
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
