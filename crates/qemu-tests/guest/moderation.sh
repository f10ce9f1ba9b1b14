#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Two cards of the stock e1000 on one cable. The kernel's packet generator sends small frames
# from one to the other; counted are frames, and the interrupts of both cards.
. /common.sh

frames=$(option frames)
# Nothing but the generator's frames is to be on the cable: no protocol has an address.
insmod /modules/e1000.ko $(cat /parameters)
step load $?
insmod /modules/pktgen.ko
step generator $?
for card in eth0 eth1; do
    ip link set $card up
done
# The driver's watchdog sees the link after two seconds.
for card in eth0 eth1; do
    i=0
    while [ "$(cat /sys/class/net/$card/carrier 2>/dev/null)" != 1 ] && [ $i -lt 100 ]; do
        i=$((i + 1))
        sleep 0.1
    done
    [ "$(cat /sys/class/net/$card/carrier)" = 1 ]
    step carrier-$card $?
done

# Interrupts of a card on the only processor.
interrupts() {
    awk -v card="$1" '$NF == card { print $2 }' /proc/interrupts
}

statistic() {
    cat /sys/class/net/"$1"/statistics/"$2"
}

state() {
    echo "$1-interrupts-sender $(interrupts eth0)"
    echo "$1-interrupts-receiver $(interrupts eth1)"
    echo "$1-sent $(statistic eth0 tx_packets)"
    echo "$1-received $(statistic eth1 rx_packets)"
    echo "$1-missed $(statistic eth1 rx_missed_errors)"
}

# Frames on the cable have 60 bytes; nanoseconds between them: 0 is as fast as it can.
generator=/proc/net/pktgen
echo "add_device eth0" >$generator/kpktgend_0
for setting in "count $frames" "delay $(option delay)" "pkt_size 60" "clone_skb 0" "burst 1" \
    "dst_mac $(cat /sys/class/net/eth1/address)" "dst 10.0.0.2" "src_min 10.0.0.1" \
    "src_max 10.0.0.1"; do
    echo "$setting" >$generator/eth0 || step "setting-${setting%% *}" 1
done

state before >/tmp/counts
echo start >$generator/pgctrl
# What is on its way arrives, and the driver gives back what was sent.
sleep 1
state after >>/tmp/counts
show counts /tmp/counts
show generator $generator/eth0
for card in eth1 eth0; do
    ip link set $card down
done
rmmod pktgen
rmmod e1000
step unload $?
finish
