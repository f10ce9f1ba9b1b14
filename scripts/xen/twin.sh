# SPDX-License-Identifier: MIT OR Apache-2.0
# dom0's modules and their controls, and the payload; sourced by the scenarios that have them.
twin=/sys/kernel/twin

# The value of a line of the status.
status_of() {
    sed -n "s/^$1 //p" $twin/status
}

# is NAME VALUE: whether the status says so.
is() {
    [ "$(status_of "$1")" = "$2" ]
}

# Whether dom0's kernel has said this (a pattern): `kernel_said PATTERN`.
kernel_said() {
    dmesg | grep -q "$1"
}

# The low byte of the card's command register (PCI): `command_of`, and `set_command VALUE`.
card_config=/sys/class/net/eth0/device/config
command_of() {
    od -An -tu1 -j 4 -N 1 $card_config | tr -d ' '
}

set_command() {
    # shellcheck disable=SC2059
    printf "\\$(printf %03o "$1")" | dd of=$card_config bs=1 seek=4 conv=notrunc 2>/dev/null
    [ "$(command_of)" = "$1" ]
}

# Writes a word to a control, as a step: `tell SECONDS STEP CONTROL WORD...`.
tell() {
    seconds=$1 name=$2 control=$3
    shift 3
    try "$seconds" "$name" sh -c "echo '$*' >$twin/$control"
}

# dom0's own traffic, by its own driver: `native PREFIX`.
native() {
    network eth0 10.0.2.9
    fetch "$1" 120
    ip addr flush dev eth0
}

# With the stages that TWIN_XEN_STAGES of scripts/xen.sh names: parameters of the module, and `offload`, which
# is that the card does nothing of it.
load_modules() {
    stages=$(option stages | tr + ' ')
    # shellcheck disable=SC2086
    must 60 twin_dom0 insmod /twin_dom0.ko ${stages%offload}
    case $stages in
    *offload) try 60 card/off ethtool -K eth0 tso off sg off tx off ;;
    esac
    must 60 twin_hot insmod /twin_hot.ko
}

# Only once no guest has an interface of theirs.
unload_modules() {
    try 60 rmmod-hot rmmod twin_hot
    try 60 rmmod-dom0 rmmod twin_dom0
}

# ---- dom0's addresses, the payload ----------------------------------------------

# What the host needs to resolve dom0's addresses: `twin payload` runs there
# (scripts/xen/make-payload).
symbols() {
    mkdir -p /tmp/symbols/sections
    cat /proc/kallsyms >/tmp/symbols/kallsyms
    for module in e1000 twin_hot; do
        mkdir /tmp/symbols/sections/$module
        find /sys/module/$module/sections -type f | while read -r file; do
            cat "$file" >"/tmp/symbols/sections/$module/${file##*/}"
        done
    done
    # That of the per-CPU section is not below /sys/module.
    cat $twin/hot_percpu >/tmp/symbols/sections/twin_hot/.data..percpu
    tar -cf /tmp/symbols.tar -C /tmp/symbols .
}

payload() {
    symbols
    network eth0 10.0.2.9
    timeout "$(limit 120)" nc $peer 7003 </tmp/symbols.tar >/tmp/twin.livepatch
    ip addr flush dev eth0
    rm -rf /tmp/symbols /tmp/symbols.tar
    [ "$(head -c 4 /tmp/twin.livepatch | tail -c 3)" = ELF ]
    step payload $? "$(wc -c </tmp/twin.livepatch) bytes" || finish
}

# Xen gives its processors 30 ms to meet for applying or reverting, which an emulator on a busy
# machine does not always let them: again, 20 times or more. `patiently STEP COMMAND...`.
patiently() {
    name=$1 tries=0
    shift
    until output=$(timeout "$(limit 60)" "$@" 2>&1) || [ $tries -ge "$(limit 20)" ]; do
        echo "$output"
        tries=$((tries + 1))
        sleep 0.5
    done
    [ $tries -lt "$(limit 20)" ]
    step "$name" $? "$(echo "$output" | tail -n 1), $tries times again"
}

# hang_after SECONDS: for how long a card that completes nothing is let be; 0: nobody resets it.
hang_after() {
    echo "$1" >/sys/module/twin_dom0/parameters/hang
}

# ---- In Xen, and out of it ------------------------------------------------------

attach_eth0() {
    payload
    patiently load xen-livepatch load /tmp/twin.livepatch || finish
    tell 30 attach attach eth0 || {
        dmesg | grep twin: | tail -n 5
        finish
    }
}

detach_eth0() {
    tell 30 detach detach 1
    patiently revert xen-livepatch revert twin
    try 60 unload xen-livepatch unload twin
}

# ---- dom0's own packets ----------------------------------------------------------

# pktgen COUNT: so many packets by the driver's own function, without the queue; $sent is how many of them it gave.
pktgen() {
    modprobe pktgen || return
    echo 'add_device eth0' >/proc/net/pktgen/kpktgend_0
    for word in "count $1" 'clone_skb 0' 'pkt_size 60' "dst $peer" 'dst_mac 52:55:0a:00:02:02'; do
        echo "$word" >/proc/net/pktgen/eth0
    done
    echo start >/proc/net/pktgen/pgctrl
    # Which waits for them only if its thread has begun within an eighth of a second. While the driver's ring is full it
    # gives none.
    tenths=$(limit 10)
    until grep -q "pkts-sofar: $1 " /proc/net/pktgen/eth0 || [ $((tenths -= 1)) -le 0 ]; do
        sleep 0.1
    done
    sent=$(sed -n 's/.*pkts-sofar: \([0-9]*\) .*/\1/p' /proc/net/pktgen/eth0)
    [ "$sent" = "$1" ] || cat /proc/net/pktgen/eth0
    echo rem_device_all >/proc/net/pktgen/kpktgend_0
    rmmod pktgen
}

# ---- Guests by the driver inside Xen ----------------------------------------------

# Marks what Xen and dom0 have counted. A notification that a guest sent before Xen knew its port
# is dom0's: guests have their carriers.
mark_counts() {
    dom0=$(card_interrupts) kicks=$(status_of kicks-in-dom0)
    interrupts=$(status_of interrupts) transmitted=$(status_of transmitted) received=$(status_of received)
}

# judge_counts PREFIX: since the mark, packets went through Xen, and dom0 had nothing of them. Those that
# the driver gave found room.
judge_counts() {
    cat $twin/status
    [ "$(card_interrupts)" = "$dom0" ]
    step "$1/no-card-interrupt-in-dom0" $? "$dom0 before, $(card_interrupts) after"
    is kicks-in-dom0 "$kicks"
    step "$1/no-notification-in-dom0" $? "$kicks before, $(status_of kicks-in-dom0) after"
    [ "$(status_of interrupts)" -gt "$interrupts" ]
    step "$1/card-interrupts-in-xen" $? "$(($(status_of interrupts) - interrupts))"
    [ "$(status_of transmitted)" -gt "$transmitted" ] && [ "$(status_of received)" -gt "$received" ]
    step "$1/packets-in-xen" $? "$(($(status_of transmitted) - transmitted)) sent, $(($(status_of received) - received)) received"
    is overrun 0
    step "$1/no-overrun" $? "$(status_of overrun)"
    is state 1
    step "$1/alive" $? "state $(status_of state), $(status_of aborts) aborts"
}

# connected N: guest N has its carrier.
connected() {
    await 240 "guest$1/connected" grep -q '^@ok carrier' "$(console_of "$1")"
}

# pinged N: guest N has had all its replies, and goes on to its transfers.
pinged() {
    await 240 "guest$1/pinged" grep -q '^@ok ping' "$(console_of "$1")"
}

# moved NUMBER: whether the driver inside Xen has received so many frames.
moved() {
    [ "$(status_of received)" -ge "$1" ]
}

# In the middle of the guests' transfers.
await_traffic() {
    await 240 "$1" moved $(($(status_of received) + 300))
}

# How many transfers of guest 1 were right: it has `forever` to make them.
transfers() {
    echo $(($(steps_of 1 fetch) + $(steps_of 1 send)))
}

# transferred NUMBER: whether it is so many.
transferred() {
    [ "$(transfers)" -ge "$1" ]
}

# await_transfers STEP: two more.
await_transfers() {
    await 300 "$1" transferred $(($(transfers) + 2))
}

# No transfer of guest 1 was wrong.
no_failure() {
    ! grep -q '^@fail' "$(console_of 1)"
    step guest1/no-failure $? "$(steps_of 1 fetch) fetches and $(steps_of 1 send) sends, all right"
}

# never_aborted STEP: the driver has never been aborted.
never_aborted() {
    is state 1 && is aborts 0
    step "$1" $? "state $(status_of state), $(status_of aborts) aborts"
}

# destroyed N: guest N, in the middle of what it does.
destroyed() {
    try 60 "guest$1/destroyed" xl destroy "guest$1"
    gone "$1"
}

# wild VALUE: the driver's pointer to the card's registers becomes that. An abort that Xen names,
# and a restart.
wild() {
    before=$(status_of aborts)
    tell 20 "wild-$1/aborted" poison "registers $1"
    is state 2 && is aborts $((before + 1))
    step "wild-$1/dead" $? "kind $(status_of abort-kind), address $(status_of abort-address), rip $(status_of abort-rip)"
    xl dmesg -c >/tmp/dmesg
    grep -q 'twin: aborted: a fault (14), .* at e1000:e1000_' /tmp/dmesg
    step "wild-$1/named" $? "$(sed -n 's/.*twin: aborted: //p' /tmp/dmesg)"
    tell 30 "wild-$1/restart" restart 1
    is state 1
    step "wild-$1/alive" $? "state $(status_of state)"
}

# ---- The command -------------------------------------------------------------------

# says STATUS STEP WORDS COMMAND...: a command that ends like that and prints these words.
says() {
    wanted=$1 name=$2 words=$3
    shift 3
    output=$(timeout "$(limit 300)" "$@" 2>&1)
    status=$?
    echo "$output"
    [ "$status" = "$wanted" ] && echo "$output" | grep -qF "$words"
    step "$name" $? "status $status: $(echo "$output" | grep -F "$words" | head -n 1)"
}

loaded() {
    [ -e "/sys/module/$1" ]
}

in_xen() {
    xen-livepatch list | grep -q '^twin '
}

# untouched STEP: nothing of twin's is in Xen or in the kernel.
untouched() {
    ! loaded twin_dom0 && ! loaded twin_hot && ! in_xen && [ -z "$(ls -d /tmp/twin-xen-* 2>/dev/null)" ]
    step "$1/untouched" $? "$(lsmod | grep -c '^twin_') modules, $(xen-livepatch list | grep -c '^twin ') payloads"
}
