# SPDX-License-Identifier: MIT OR Apache-2.0
# What the driver gives to the card is checked (the stage `dma`). In the middle of a guest's transfers it is made
# to give pages that are not for the card: one of Xen's, in which the card has a ring; one of a guest's, which is
# not a packet's; one that is not there. Each time it is stopped before the card sees it, and ring, descriptor and machine address
# are named; after a restart packets go on. What dom0's own instance writes to the card meanwhile is
# none of what is refused. Before, dom0 wants a page for something else that Xen holds for the card
# (runtime/tests/xen-faults/xen_held.c).
. /twin.sh

# wants NAME ANSWER: what dom0 is answered that wants a page of the pools', a pattern.
wants() {
    try 20 "$1/wants" sh -c 'echo 1 >/sys/module/xen_held/parameters/run'
    grep -q "^$2\$" /sys/module/xen_held/parameters/run
    step "$1/answer" $? "$(cat /sys/module/xen_held/parameters/run)"
}

# gives NAME WHOSE VALUE ADDRESS: the driver's buffers are all in one machine frame (runtime/dom0/poison.c).
gives() {
    await_traffic "$1/moving"
    xl dmesg -c >/dev/null
    tell 20 "$1/aborted" poison "frames:$2 $3"
    is state 2 && is abort-kind 11
    step "$1/stopped" $? "$(status_of abort-what), $(status_of abort-card)"
    xl dmesg -c >/tmp/dmesg
    grep -Eq "twin: the card's (transmit|receive) descriptor [0-9]+: a page that the card may not use: $4" /tmp/dmesg
    step "$1/named" $? "$(sed -n "s/.*twin: the card's //p" /tmp/dmesg)"
    tell 30 "$1/restart" restart 1
    is state 1 && [ "$(status_of held-pages)" -gt 256 ]
    step "$1/alive" $? "state $(status_of state), $(status_of held-pages) pages held"
}

native native-before/
load_modules
# Without the stage nothing is checked or held; it is there unless it is turned off.
echo 0 >/sys/module/twin_dom0/parameters/dma
attach_eth0
status_of stages | grep -q ' dma 0$' && is held-pages 0 && is descriptors 0
step without $? "$(status_of stages), $(status_of held-pages) pages held"
try 20 xen_held insmod /xen_held.ko
wants without 'table 0 exchange 1'
echo 1 >/sys/module/twin_dom0/parameters/dma
tell 30 with restart 1
status_of stages | grep -q ' dma 1$'
step stage $? "$(status_of stages)"
held=$(status_of held-pages)
[ "$held" -gt 256 ]
step held $? "$held pages of dom0's"
wants with 'table -[0-9]* exchange -[0-9]*'
if start_guest 1 forever; then
    connected 1
    gives xen xen 0 '[0-9a-f]'
    gives guest guest 0 '[0-9a-f]'
    gives nowhere number fffff fffff
    mark_counts
    await_transfers guest1/transfers
    judge_counts guest1
    [ "$(status_of descriptors)" -gt 1000 ]
    step checked $? "$(status_of descriptors) descriptors by $(status_of doorbells) doorbells, $(status_of written-back) written back"
    is refused-writes 0
    step registers $? "$(status_of refused-writes) writes to registers refused"
    destroyed 1
    no_failure
fi
detach_eth0
# Nothing holds it any more.
wants after 'table 0 exchange 1'
try 20 xen_held-away rmmod xen_held
native native-after/
unload_modules
