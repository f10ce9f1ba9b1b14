# SPDX-License-Identifier: MIT OR Apache-2.0
# What people do to an interface while its driver is inside Xen, in the middle of a guest's
# transfers: what would reset the card is refused and changes nothing; the carrier goes and comes;
# set down, the interface is dom0's; with rings of another size it is attached again. What goes to a card
# around its queue and its interrupt, netconsole and pktgen, does not get there.
. /twin.sh

load_modules
attach_eth0

# refused STEP COMMAND...: it fails, says so in the kernel's log, and all goes on.
refused() {
    name=$1
    shift
    dmesg -c >/dev/null
    ! output=$(timeout "$(limit 60)" "$@" 2>&1)
    status=$?
    # The kernel refuses a new MTU without words.
    [ $status = 0 ] && { dmesg | grep -q 'is refused while the driver is in Xen' || [ "$name" = mtu ]; }
    step "refused/$name" $? "$(echo "$output" | tail -n 1)"
}

rings() {
    ethtool -g eth0 | awk '/^Current/ { now = 1 } now && $1 == "RX:" { print $2 }'
}

netconsole() {
    modprobe netconsole "netconsole=@10.0.2.9/eth0,@$peer/52:55:0a:00:02:02"
}

# goes_on PREFIX DESCRIPTORS: it is attached with rings of that size, and the guest transfers.
goes_on() {
    tell 30 "$1/attach" attach eth0
    [ "$(rings)" = "$2" ]
    step "$1/rings" $? "$(rings)"
    await_traffic "$1/moving"
    await_transfers "$1/transfers"
}

has_carrier() {
    grep -q "$1" /sys/class/net/eth0/carrier
}

if start_guest 1 link; then
    connected 1
    mark_counts
    await 120 carrier/gone has_carrier 0
    await 120 carrier/back has_carrier 1
    await_traffic carrier/moving
    never_aborted carrier/alive

    before=$(rings)
    refused rings-received ethtool -G eth0 rx 512
    refused rings-sent ethtool -G eth0 tx 512
    [ "$(rings)" = "$before" ]
    step rings-unchanged $? "$(rings)"
    refused speed ethtool -s eth0 speed 100 duplex full autoneg off
    refused pause ethtool -A eth0 autoneg off rx off tx off
    refused renegotiation ethtool -r eth0
    refused self-test ethtool -t eth0 offline
    # ethtool says nothing of it.
    dmesg -c >/dev/null
    ethtool -K eth0 rx on
    dmesg | grep -q 'set of features is refused' && ethtool -k eth0 | grep -q '^rx-checksumming: off'
    step refused/features $? "$(ethtool -k eth0 | grep '^rx-checksumming')"
    refused mtu ip link set eth0 mtu 1400
    dmesg -c >/dev/null
    # Newer kernels load the module all the same, with a target that is off.
    netconsole
    dmesg | grep -q "eth0 doesn't support polling"
    step refused/netconsole $? "$(dmesg | grep netpoll: | tail -n 1)"
    rmmod netconsole 2>/dev/null
    dropped=$(status_of dropped-egress)
    pktgen 100
    [ $(($(status_of dropped-egress) - dropped)) -ge 100 ]
    step dropped/pktgen $? "$(($(status_of dropped-egress) - dropped)) packets, $sent by pktgen"
    try 60 statistics sh -c 'ethtool -S eth0 >/tmp/statistics; ethtool -i eth0; ethtool eth0 >/dev/null'
    await_traffic refused/moving
    judge_counts refused

    try 60 down ip link set eth0 down
    is interface -
    step down/detached $? "interface $(status_of interface)"
    try 60 down/rings ethtool -G eth0 rx 512 tx 512
    try 60 up ip link set eth0 up
    await 60 up/carrier has_carrier 1
    netconsole
    step up/netconsole $? ""
    dmesg -c >/dev/null
    ! echo eth0 >$twin/attach && dmesg | grep -q 'eth0 is used by netpoll'
    step up/refused $? "$(dmesg | grep twin: | head -n 1)"
    try 60 up/no-netconsole rmmod netconsole
    goes_on up 512

    # More than the hot routines have buffers for: the driver fills what it gets.
    try 60 largest/down ip link set eth0 down
    try 60 largest/rings ethtool -G eth0 rx 4096 tx 4096
    try 60 largest/up ip link set eth0 up
    await 60 largest/carrier has_carrier 1
    goes_on largest 4096
    no_failure
    never_aborted alive
    destroyed 1
fi

detach_eth0
native after/
unload_modules
