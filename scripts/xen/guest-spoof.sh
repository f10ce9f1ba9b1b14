# SPDX-License-Identifier: MIT OR Apache-2.0
# The guest of the scenario `spoof` that sends what it must not, with frames beside (guest-frames.c). Each
# kind of frame has a word, by which the host counts those on the wire (wire.sh). dom0 says when: it writes the
# names of these functions to the guest's console.
host=52:55:0a:00:02:02
everybody=ff:ff:ff:ff:ff:ff

# Other guests', the wire's, nobody's, a group's.
sources="00:16:3e:00:00:02 $host 02:00:00:00:00:77 $everybody"

# spoof COUNT WORD: so many of each, to the host. `taken`: how many the kernel took.
spoof() {
    taken=0
    for source in $sources; do
        taken=$((taken + $(/frames eth0 "$1" $host "$source" "$2")))
    done
}

# Before the stage is on: what it is for gets through.
off() {
    spoof 50 off-spoofed
    echo "@value off-spoofed $taken"
    echo "@value off-flood $(/frames eth0 200 $everybody own off-flood)"
}

# Frames that the frontend has put into its ring, ever.
in_ring() {
    cat /sys/class/net/eth0/statistics/tx_packets
}

# Until end_flood: both at once, without a pause.
begin_flood() {
    before=$(in_ring)
    /frames eth0 0 $everybody own on-flood >/tmp/flood &
    flood=$!
    /frames eth0 0 $host 00:16:3e:00:00:02 on-spoofed >/tmp/spoofed &
    spoofed=$!
}

# And frames with the other sources. `ring`: of all since begin_flood, those that the frontend put into its ring; it may
# drop one.
end_flood() {
    kill $flood $spoofed
    wait
    spoof 50 on-spoofed
    echo "@value on-spoofed $((taken + $(cat /tmp/spoofed)))"
    echo "@value on-flood $(cat /tmp/flood)"
    echo "@value ring $(($(in_ring) - before))"
}

# The guest as it should be.
honest() {
    echo "@value honest $(/frames eth0 100 $host own on-honest)"
    fetch '' 300
    send '' 300
}
