# SPDX-License-Identifier: MIT OR Apache-2.0
# TCP between this machine and the host (scripts/xen/peer.sh behind QEMU's network), with
# digests; sourced after lines.sh. $1 of each is put before the names of the steps.
peer=10.0.2.100

# network INTERFACE ADDRESS: up, with carrier.
network() {
    # A new device is in /sys before the kernel knows it by its name (register_netdevice).
    await 60 up ip link set "$1" up
    ip addr add "$2/24" dev "$1"
    await 60 carrier grep -q 1 "/sys/class/net/$1/carrier"
}

# Pings without loss. Replies may be late, that is the emulator.
pings() {
    output=$(timeout "$(limit 60)" ping -q -c "$2" -i 0.1 -W "$(limit 10)" 10.0.2.2 2>&1)
    echo "$output" | grep -q ' 0% packet loss'
    step "$1ping" $? "$(echo "$output" | grep loss)"
}

# fetch PREFIX SECONDS: the host's bytes to /tmp/data.
fetch() {
    begin=$(uptime_ms)
    timeout "$(limit "$2")" nc $peer 7001 </dev/null >/tmp/data
    status=$?
    echo "@value $1fetch-ms $(($(uptime_ms) - begin))"
    sum=$(sha256sum </tmp/data | cut -d ' ' -f 1)
    [ "$status" = 0 ] && [ "$sum" = "$(option sum)" ]
    step "$1fetch" $? "$(wc -c </tmp/data) bytes, digest $sum"
}

# send PREFIX SECONDS: /tmp/data to the host, which answers with the digest of what came.
send() {
    begin=$(uptime_ms)
    answer=$(timeout "$(limit "$2")" nc $peer 7002 </tmp/data)
    status=$?
    echo "@value $1send-ms $(($(uptime_ms) - begin))"
    [ "$status" = 0 ] && [ "${answer%% *}" = "$(option sum)" ]
    step "$1send" $? "$(wc -c </tmp/data) bytes, digest at the host ${answer%% *}"
}

# ---- Between two guests --------------------------------------------------------------

# The one that listens: guest 3, by the addresses of dom0-common.sh.
listener=10.0.2.17

# receive_from_guest SECONDS: one connection's bytes, whose digest must be that of the host's. nc
# would pass the end of its standard input on, and the other end would stop: this one has none.
receive_from_guest() {
    timeout "$(limit "$1")" nc -l -p 7005 >/tmp/data </dev/hvc0
    status=$?
    sum=$(sha256sum </tmp/data | cut -d ' ' -f 1)
    [ "$status" = 0 ] && [ "$sum" = "$(option sum)" ]
    step received-from-guest $? "$(wc -c </tmp/data) bytes, digest $sum"
}

# send_to_guest SECONDS: /tmp/data to the guest that listens.
send_to_guest() {
    begin=$(uptime_ms)
    timeout "$(limit "$1")" nc $listener 7005 </tmp/data
    status=$?
    echo "@value to-guest-ms $(($(uptime_ms) - begin))"
    step sent-to-guest $status "$(wc -c </tmp/data) bytes"
}

# ---- Frames, counted ------------------------------------------------------------------

# count_frames MARK FRAMES: so many frames of two sizes, sent and received, between marks from
# that number on (count-traffic.c). The host sends when it is asked to (peer.sh frames).
count_frames() {
    mark=$1
    for size in 1514 60; do
        try 600 "send-$size" /traffic send eth0 "$size" "$2" "$mark"
        echo "$size $2 $(cat /sys/class/net/eth0/address)" | nc $peer 7004 >/dev/null &
        try 600 "receive-$size" /traffic receive eth0 "$2" $((mark + 2))
        wait $!
        mark=$((mark + 4))
    done
    count_stored "$mark" "$2"
    count_fetched "$((mark + 2))" "$2"
}

# count_arrivals MARK FRAMES: frames that come and go one by one, the host's once the program is there (peer.sh
# arrivals).
count_arrivals() {
    mark=$1
    for size in 1514 60; do
        try 600 "send-$size" /traffic trickle eth0 "$size" "$2" "$mark"
        {
            sleep 1
            echo "$size $2 $(cat /sys/class/net/eth0/address)" | nc $peer 7007 >/dev/null
        } &
        try 600 "receive-$size" /traffic receive eth0 "$2" $((mark + 2))
        wait $!
        mark=$((mark + 4))
    done
}

# packets WHICH: those that the interface has received (rx) or sent (tx).
packets() {
    cat "/sys/class/net/eth0/statistics/$1_packets"
}

# try_counted WINDOW SECONDS NAME COMMAND...: a step, and how many packets came and went meanwhile, those by
# which a connection begins and ends among them.
try_counted() {
    window=$1 received=$(packets rx) sent=$(packets tx)
    shift
    try "$@"
    echo "@value packets-$window $(($(packets rx) - received))"
    echo "@value packets-sent-$window $(($(packets tx) - sent))"
}

# count_stored MARK SEGMENTS: bytes to the host by TCP, of so many segments of 1,460 bytes.
count_stored() {
    try_counted "$1" 600 store-1460 /traffic store $peer 7002 $(($2 * 1460)) "$1"
}

# count_fetched MARK SEGMENTS: the same from the host.
count_fetched() {
    try_counted "$1" 600 fetch-1460 /traffic fetch $peer 7001 $(($2 * 1460)) "$1"
}

# count_large MARK SEGMENTS: stored by large packets, then by frames.
count_large() {
    try 60 large /traffic features eth0 1
    count_stored "$1" "$2"
    try 60 frames /traffic features eth0 0
    count_stored "$(($1 + 2))" "$2"
    try 60 large-again /traffic features eth0 1
}

# count_asked MARK COUNT: a byte there and one back.
count_asked() {
    try 600 ask-1 /traffic ask $peer 7008 "$2" "$1"
}
