# SPDX-License-Identifier: MIT OR Apache-2.0
# Two cards of one driver, the second on a network of its own (scripts/xen.sh): dom0's own instance
# has it while the first is in Xen. Both on one interrupt line are refused, and so is whoever
# wants that line later. A third card has a line of its own.
. /twin.sh

# Which interrupt line a card is on.
line_of() {
    cat "/sys/class/net/$1/device/irq"
}

has_carrier() {
    grep -q 1 "/sys/class/net/$1/carrier"
}

# talks STEP INTERFACE ADDRESS PEER: dom0 by its own driver.
talks() {
    ip addr add "$3/24" dev "$2"
    await 60 "$1/carrier" has_carrier "$2"
    try 60 "$1/ping" ping -c 5 -i 0.2 "$4"
    ip addr flush dev "$2"
}

await 30 cards test -e /sys/class/net/eth2
same= own=
for card in eth1 eth2; do
    if [ "$(line_of $card)" = "$(line_of eth0)" ]; then same=$card; else own=$card; fi
done
[ -n "$same" ] && [ -n "$own" ]
step lines $? "eth0 $(line_of eth0), eth1 $(line_of eth1), eth2 $(line_of eth2)" || finish

load_modules
payload
patiently load xen-livepatch load /tmp/twin.livepatch || finish

# ---- On one line ----
ip link set eth0 up
ip link set $same up
dmesg -c >/dev/null
! timeout "$(limit 30)" sh -c "echo eth0 >$twin/attach" && is interface -
step shared/refused $? "interface $(status_of interface)"
dmesg | grep -q 'twin: eth0 shares its interrupt with another device'
step shared/named $? "$(dmesg | sed -n 's/.*twin: //p' | tail -n 1)"
try 30 shared/down ip link set $same down
tell 30 attach attach eth0
! ip link set $same up
step later/refused $? "$(dmesg | grep -c 'Flags mismatch irq') complaints of the kernel's"

# ---- On another ----
try 30 own/up ip link set $own up
if start_guest 1; then
    connected 1
    mark_counts
    pinged 1
    await_traffic guest1/moving
    talks own $own 10.0.4.9 10.0.4.2
    finish_guest 1 300
    judge_counts guest1
    is aborts 0
    step no-abort $? "$(status_of aborts) aborts"
fi

# ---- And back ----
detach_eth0
try 30 after/up ip link set $same up
talks after $same 10.0.3.9 10.0.3.2
native native-after/
unload_modules
