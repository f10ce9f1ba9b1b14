# SPDX-License-Identifier: MIT OR Apache-2.0
# What people do to an interface while its driver is inside Xen, in the middle of a guest's
# transfers: what would reset the card is refused and changes nothing; the carrier goes and comes;
# set down, the interface is dom0's; with rings of another size it is attached again.
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

has_carrier() {
    grep -q "$1" /sys/class/net/eth0/carrier
}

if start_guest 1 link; then
    connected 1
    mark_counts
    await 120 carrier/gone has_carrier 0
    await 120 carrier/back has_carrier 1
    await_traffic carrier/moving
    is state 1 && is aborts 0
    step carrier/alive $? "state $(status_of state), $(status_of aborts) aborts"

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
    try 60 statistics sh -c 'ethtool -S eth0 >/tmp/statistics; ethtool -i eth0; ethtool eth0 >/dev/null'
    await_traffic refused/moving
    judge_counts refused

    try 60 down ip link set eth0 down
    is interface -
    step down/detached $? "interface $(status_of interface)"
    try 60 down/rings ethtool -G eth0 rx 512 tx 512
    try 60 up ip link set eth0 up
    await 60 up/carrier has_carrier 1
    tell 30 up/attach attach eth0
    [ "$(rings)" = 512 ]
    step up/rings $? "$(rings)"
    await_traffic up/moving
    goal=$(($(steps_of 1 fetch) + $(steps_of 1 send) + 2))
    transfers() {
        [ $(($(steps_of 1 fetch) + $(steps_of 1 send))) -ge $goal ]
    }
    await 300 up/transfers transfers
    ! grep -q '^@fail' "$(console_of 1)"
    step guest1/no-failure $? "$(steps_of 1 fetch) fetches and $(steps_of 1 send) sends, all right"
    is state 1 && is aborts 0
    step alive $? "state $(status_of state), $(status_of aborts) aborts"
    try 60 guest1/destroyed xl destroy guest1
    gone 1
fi

detach_eth0
native after/
unload_modules
