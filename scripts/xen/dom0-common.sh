# SPDX-License-Identifier: MIT OR Apache-2.0
# What the scenarios of dom0 share; sourced after lines.sh.

# What xl runs for guests' interfaces.
vif_script=vif-script

# What guests are: pv, or pvh.
guest_type=pv

# How many processors a guest has; which it runs on, if not those that xen.sh says.
guest_vcpus=1
guest_cpus=

# The number in a guest's address, if it is not its own.
guest_mac=

# More lines of a guest's configuration.
guest_options=

# guest_config N [ROLE]: a guest named guestN, and what it does (guest-init).
guest_config() {
    cat >"/tmp/guest$1.cfg" <<CFG
name = "guest$1"
type = "$guest_type"
kernel = "/boot/vmlinux"
ramdisk = "/boot/guest.cpio"
extra = "console=hvc0 panic=-1 quiet twin.address=10.0.2.$((14 + $1)) twin.sum=$(option sum) twin.rounds=$(option rounds) twin.patience=$(option patience) twin.role=${2-host}"
memory = $(option guest_memory)
vcpus = $guest_vcpus
cpus = "${guest_cpus:-$(option guest_cpus)}"
vif = ['mac=00:16:3e:00:00:0${guest_mac:-$1},script=$vif_script']
on_poweroff = "destroy"
on_crash = "destroy"
$guest_options
CFG
}

console_of() {
    echo "/var/log/xen/console/guest-guest$1.log"
}

# The lines of guest N's console as they come. Where `|` ends a pattern, `\|` is the character in busybox 1.37.
follow_guest() {
    tail -n +1 -F "$(console_of "$1")" 2>/dev/null |
        sed -n "s/\r//g; s/^@\(ok\|fail\|value\) /&guest$1\//p"
}

# start_guest N [ROLE]
start_guest() {
    guest_config "$@"
    : >"$(console_of "$1")"
    try 120 "guest$1/create" xl create "/tmp/guest$1.cfg" || return
    follow_guest "$1" &
    eval "follower$1=$!"
}

# How often a step of guest N succeeded.
steps_of() {
    grep -c "^@ok $2 " "$(console_of "$1")"
}

# end_guest N SECONDS: waits for its end; each of its steps must have succeeded.
end_guest() {
    await "$2" "guest$1/ended" grep -q '^@done' "$(console_of "$1")" || {
        echo "the end of guest$1's console:"
        tail -n 30 "$(console_of "$1")"
        xl destroy "guest$1"
    }
    ! grep -q '^@fail' "$(console_of "$1")"
    step "guest$1/no-failure" $? ""
    gone "$1"
}

gone() {
    await 60 "guest$1/gone" sh -c "! xl list guest$1"
    eval "kill \$follower$1"
}

# finish_guest N SECONDS: the same of a guest that talks with the host.
finish_guest() {
    end_guest "$@"
    rounds=$(option rounds)
    [ "$(steps_of "$1" fetch)" = "$rounds" ] && [ "$(steps_of "$1" send)" = "$rounds" ]
    step "guest$1/complete" $? "fetched $(steps_of "$1" fetch) and sent $(steps_of "$1" send) times of $rounds"
}

# The card's interrupts that dom0 has handled, on all processors.
card_interrupts() {
    awk '/ eth0$/ { for (i = 2; i <= NF && $i ~ /^[0-9]+$/; i++) n += $i } END { print n + 0 }' /proc/interrupts
}

# The stock backend, with a bridge that the card is in.
begin_netback() {
    must 60 netback modprobe xen-netback
    must 60 bridge modprobe bridge
    brctl addbr br0
    brctl addif br0 eth0
    ip link set br0 up
    ip link set eth0 up
    await 60 carrier grep -q 1 /sys/class/net/eth0/carrier
}
