# SPDX-License-Identifier: MIT OR Apache-2.0
# Many faults in the driver's data in one boot (TWIN_XEN_FAULTS): a pointer of the driver's private
# structure, of its rings and other objects, or of the interface becomes one of nine that lead to
# nothing of dom0's, while a guest transfers. Each ends in a named abort and a restart, or has no
# effect; packets go on after each. Xen's text and another guest's memory stay as they are.
. /twin.sh

load_modules
attach_eth0
try 20 xen_faults insmod /xen_faults.ko
run=/sys/module/xen_faults/parameters/run

text_hash() {
    echo hash >$run
    cat $run
}

checks() {
    steps_of 2 pattern
}

# Null, user, list poison, Xen's text, Xen's map of memory, not canonical, before dom0's vmalloc, the
# window itself, the driver's stack block.
values='10 7fff12345678 dead000000000100 ffff82d040200000 ffff830000001000 1111222233334440
ffffc8ffffff0000 ffff838000001000 ffff837cc0010000'
seed=1
random() {
    seed=$(((seed * 1103515245 + 12345) % 2147483648))
    number=$((seed / 65536 % $1))
}

# choose NUMBER: a place and a value.
choose() {
    case $(($1 % 8)) in
    0) place=registers ;;
    1) place=netdev ;;
    2 | 3 | 4) random 97 && place=private:$number ;;
    5 | 6) random 89 && place=object:$number ;;
    7) random 4 && place=device:$number ;;
    esac
    random 9
    value=$(echo $values | cut -d ' ' -f $((number + 1)))
}

is_named() {
    xl dmesg -c >/tmp/dmesg
    grep -q 'twin: aborted: .*, at [a-z0-9_]*:[a-z0-9_]*+0x' /tmp/dmesg
}

# strike: 0 if all is as it must be after the fault at $place with $value; what it was is $outcome.
strike() {
    before=$(status_of received)
    xl dmesg -c >/dev/null
    echo "$place $value" >$twin/poison 2>/tmp/refused
    # What comes late is an abort as well.
    if is state 2; then
        aborted=$((aborted + 1)) outcome="$(status_of abort-what) at $(status_of abort-at)"
        is_named || return
        echo 1 >$twin/restart || return
        before=0
    else
        harmless=$((harmless + 1)) outcome='no effect'
        grep -q 'Timer expired' /tmp/refused || return
    fi
    is state 1 || return
    tries=$(limit 600)
    while ! moved $((before + 5)); do
        tries=$((tries - 1))
        [ $tries -gt 0 ] || return
        sleep 0.1
    done
}

faults=$(option faults)
if start_guest 2 keep && start_guest 1 forever; then
    await 240 guest2/pattern grep -q '^@ok pattern' "$(console_of 2)"
    connected 1
    await_traffic guest1/moving
    hash=$(text_hash)
    n=0 aborted=0 harmless=0
    while [ "$n" -lt "$faults" ]; do
        choose $n
        strike
        step "fault-$n" $? "$place $value: $outcome" || break
        n=$((n + 1))
    done
    echo "@value faults $n"
    echo "@value aborted $aborted"
    echo "@value without-effect $harmless"
    [ "$(text_hash)" = "$hash" ]
    step xen-text-unchanged $? "$hash before, $(text_hash) after"
    checked=$(checks)
    later() {
        [ "$(checks)" -gt $((checked + 1)) ]
    }
    await 120 guest2/memory-unchanged later
    ! grep -q '^@fail' "$(console_of 1)" "$(console_of 2)"
    step guests/no-failure $? "$(steps_of 1 fetch) fetches and $(steps_of 1 send) sends, $(checks) looks at the pattern"
    for guest in 1 2; do
        try 60 "guest$guest/destroyed" xl destroy "guest$guest"
        gone $guest
    done
fi
rmmod xen_faults
detach_eth0
native after/
unload_modules
