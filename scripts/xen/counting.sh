# SPDX-License-Identifier: MIT OR Apache-2.0
# What the scenarios share that count instructions (dom0-count.sh, dom0-rows.sh, dom0-arrivals.sh); sourced after twin.sh.

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

frames=$(option frames)

# complete N WINDOWS: guest N has ended, and so many were counted.
complete() {
    end_guest "$1" 10
    [ "$(grep -c '^@ok \(send\|receive\|store\|fetch\|ask\)-' "$(console_of "$1")")" = "$2" ]
    step "guest$1/complete" $? "$2 windows"
}

# order N COMMAND LINE: guest N, of the role commands, does what it reads from its console; it is done
# when it writes that line.
order() {
    echo "$2" >"$(xenstore-read "/local/domain/$(xl domid "guest$1")/console/tty")"
    await_line "$3"
}

# begins N: a guest that does what it is ordered.
begins() {
    start_guest "$1" commands && connected "$1" && pinged "$1" && listen "$1"
}

# ends N WINDOWS: it does no more.
ends() {
    order "$1" exit @done
    complete "$@"
}

# ---- By dom0 ------------------------------------------------------------------------

end_netback() {
    ip link set br0 down
    brctl delbr br0
    must 60 netback-away rmmod xen-netback
}

# ---- By the driver inside Xen ---------------------------------------------------------

# round NAME COMMAND STAGE...: the stages from the next attachment on, and what guest 2 does then.
round() {
    label=$1 command=$2
    shift 2
    for stage; do
        echo "${stage#*=}" >"/sys/module/twin_dom0/parameters/${stage%=*}"
    done
    tell 60 "$label/restart" restart 1
    await 60 "$label/carrier" grep -q 1 /sys/class/net/eth0/carrier
    step "$label/stages" 0 "$(status_of stages), offload $(status_of offload)"
    order 2 "$command" '@ok done'
    is state 1 && is aborts 0
    step "$label/alive" $? "state $(status_of state), $(status_of aborts) aborts"
}
