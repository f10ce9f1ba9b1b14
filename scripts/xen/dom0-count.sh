# SPDX-License-Identifier: MIT OR Apache-2.0
# What a packet costs in instructions: a guest's frames and bytes through stock netback, bridge and
# e1000 of dom0; then, in the same boot, another guest's through the driver inside Xen, with the stages that
# an attachment has by default, with none, with each alone and with all; last, what it sends by TCP through a
# card that does nothing of it. The guest's
# program marks where counting begins and ends (scripts/xen/count-plugin.c), and dom0 has nothing
# to do meanwhile but wait. With more guests than one (TWIN_XEN_GUESTS) the others are connected and
# do nothing.
. /twin.sh

# Without it Xen executes a guest's rdtsc in software, several times a packet: the emulator's
# processor does not promise that its clock never stops, as today's do (invariant TSC).
guest_options='tsc_mode = "native"'

# listen N: reads guest N's console from its start; says: whether it has come to a line that begins like
# this since. No program is started for it, and nothing is read twice: all of that is counted.
listen() {
    exec 3<"$(console_of "$1")"
    part=
}
says() {
    while read -r line <&3; do
        line=$part$line part=
        case $line in "$1"*) return 0 ;; esac
    done
    # A line whose end is not there yet.
    part=$part$line
    return 1
}

mkfifo /tmp/never
pause() {
    read -r -t "$1" _ <>/tmp/never
}

# await_line LINE: for ten minutes.
most=$(limit 120)
await_line() {
    tries=$most
    until says "$1" || [ $tries = 0 ]; do
        tries=$((tries - 1))
        pause 5
    done
}

guests=$(option guests)
frames=$(option frames)
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

# complete N WINDOWS: guest N has ended, and so many were counted.
complete() {
    end_guest "$1" 10
    [ "$(grep -c '^@ok \(send\|receive\|store\|fetch\)-' "$(console_of "$1")")" = "$2" ]
    step "guest$1/complete" $? "$2 windows"
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
start_guest 1 "count:0:$frames" && listen 1 && await_line @done
complete 1 6
end_others
ip link set br0 down
brctl delbr br0
must 60 netback-away rmmod xen-netback

# ---- By the driver inside Xen ---------------------------------------------------------

# The guest does what it reads from its console, to which who writes here writes.
terminal() {
    xenstore-read "/local/domain/$(xl domid guest2)/console/tty"
}

# round NAME COMMAND STAGE...: the stages from the next attachment on, and what the guest does then.
round() {
    label=$1 command=$2
    shift 2
    for stage; do
        echo "${stage#*=}" >"/sys/module/twin_dom0/parameters/${stage%=*}"
    done
    tell 60 "$label/restart" restart 1
    await 60 "$label/carrier" grep -q 1 /sys/class/net/eth0/carrier
    step "$label/stages" 0 "$(status_of stages), offload $(status_of offload)"
    echo "$command" >"$(terminal)"
    await_line '@ok done'
    is state 1 && is aborts 0
    step "$label/alive" $? "state $(status_of state), $(status_of aborts) aborts"
}

# What there is alone: `only NAME MARK STAGE...`.
only() {
    name=$1 mark=$2
    shift 2
    round "$name" "count_frames $mark $frames" aggregate=0 bridge=0 notify=0 pace=0 "$@"
}

load_modules
attach_eth0
begin_others
if start_guest 2 commands; then
    connected 2
    pinged 2
    listen 2
    round twin "count_frames 12 $frames"
    only off 24
    only aggregate 36 aggregate=20
    only bridge 48 bridge=1
    only notify 60 notify=16
    only pace 72 pace=1
    only all 84 aggregate=20 bridge=1 notify=16 pace=1
    # Its features cannot be changed while it is attached.
    tell 60 card/detach detach 1
    try 60 card/off ethtool -K eth0 tso off sg off tx off
    tell 60 card/attach attach eth0
    round cut "count_stored 96 $frames" aggregate=20 bridge=0 notify=0
    round plain "/traffic plain eth0 && count_stored 98 $frames"
    cat $twin/status
    echo exit >"$(terminal)"
    await_line @done
    complete 2 44
fi
end_others
detach_eth0
