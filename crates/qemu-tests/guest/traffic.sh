# SPDX-License-Identifier: MIT OR Apache-2.0
# Traffic between the guest and its host (crates/qemu-tests/src/server.rs) over
# $interface.
down=$(option down)
up=$(option up)
host=10.0.2.2

# More than two seconds: the period of e1000's watchdog for the link.
carrier() {
    i=0
    while [ "$(cat /sys/class/net/"$interface"/carrier 2>/dev/null)" != 1 ]; do
        i=$((i + 1))
        [ $i -gt 100 ] && return 1
        sleep 0.1
    done
}

# Pings without loss: `no_loss STEP COUNT [SIZE]`. Replies may be late, that is the
# emulator; the status of busybox' ping tells of total loss only.
no_loss() {
    output=$(ping -q -c "$2" -W 10 -s "${3:-56}" $host 2>&1)
    echo "$output" | grep -q ' 0% packet loss'
    step "$1" $? "$(echo "$output" | grep loss)"
}

# Downloads into a file: `download STEP FILE`.
download() {
    sum=$(nc $host "$down" </dev/null | tee "$2" | sha256sum | cut -d ' ' -f 1)
    [ "$sum" = "$(option sum)" ]
    step "$1" $? "$sum"
}
