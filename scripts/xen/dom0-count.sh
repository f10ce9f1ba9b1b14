# SPDX-License-Identifier: MIT OR Apache-2.0
# What a packet costs in instructions: a guest's frames through stock netback, bridge and e1000
# of dom0; then, in the same boot, another guest's through the driver inside Xen, and segments of TCP
# once more where none are merged. The guest's
# program marks where counting begins and ends (scripts/xen/count-plugin.c), and dom0 has nothing
# to do meanwhile but wait. With more guests than one (TWIN_XEN_GUESTS) the others are connected and
# do nothing.
. /twin.sh

# Without it Xen executes a guest's rdtsc in software, several times a packet: the emulator's
# processor does not promise that its clock never stops, as today's do (invariant TSC).
guest_options='tsc_mode = "native"'

# The guest's last line is there: without starting a program.
is_done() {
    while read -r line; do
        case $line in @done*) return 0 ;; esac
    done <"$(console_of "$1")"
    return 1
}

mkfifo /tmp/never
pause() {
    read -r -t "$1" _ <>/tmp/never
}

guests=$(option guests)
others=
n=3
while [ $n -lt $((guests + 2)) ]; do
    others="$others $n"
    n=$((n + 1))
done

begin_others() {
    for other in $others; do
        start_guest "$other" rest && connected "$other"
    done
}

end_others() {
    for other in $others; do
        try 60 "guest$other/destroy" xl destroy "guest$other"
        gone "$other"
    done
}

# count N ROLE WINDOWS MARK: a guest with so many windows, whose marks are from that one on.
count() {
    start_guest "$1" "$2:$4:$(option frames)" || return
    tries=$(limit 120)
    until is_done "$1" || [ $tries = 0 ]; do
        tries=$((tries - 1))
        pause 5
    done
    end_guest "$1" 10
    [ "$(grep -c '^@ok \(send\|receive\|store\|fetch\)-' "$(console_of "$1")")" = "$3" ]
    step "guest$1/complete" $? "$3 windows"
}

# ---- By dom0 ------------------------------------------------------------------------

must 60 netback modprobe xen-netback
must 60 bridge modprobe bridge
brctl addbr br0
brctl addif br0 eth0
ip link set br0 up
ip link set eth0 up
await 60 carrier grep -q 1 /sys/class/net/eth0/carrier
begin_others
count 1 count 6 0
end_others
ip link set br0 down
brctl delbr br0
must 60 netback-away rmmod xen-netback

# ---- By the driver inside Xen ---------------------------------------------------------

# inside ROLE WINDOWS MARK MOST: with at most so many segments in a packet.
inside() {
    echo "$4" >/sys/module/twin_dom0/parameters/aggregate
    attach_eth0
    begin_others
    count 2 "$1" "$2" "$3"
    cat $twin/status
    is state 1 && is aborts 0
    step "alive-$4" $? "state $(status_of state), $(status_of aborts) aborts"
    end_others
    detach_eth0
}

load_modules
inside count 6 12 20
inside fetched 1 24 0
