# SPDX-License-Identifier: MIT OR Apache-2.0
# A guest sends frames with others' sources, and floods everybody. Without the stage `bridge` all of it is on
# the wire. With it no frame with another's source is, and of the flood what the limit allows: 64 frames and
# ten a second. Meanwhile another guest moves its bytes, to the end and with the right digests. Then the first one
# does, too. What was on the wire the host counts afterwards (scripts/xen/wire.sh).
. /twin.sh

limit_a_second=10

stage() {
    echo "$2" >"/sys/module/twin_dom0/parameters/$1"
}

# Whether guest 1 or 2 has had more of a step than so often.
more_of() {
    [ "$(steps_of "$1" "$2")" -gt "$3" ]
}

# order STEP COMMAND: guest 1 does that, to its end.
order() {
    before=$(steps_of 1 done)
    echo "$2" >"$(xenstore-read "/local/domain/$(xl domid guest1)/console/tty")"
    await 300 "$1" more_of 1 done "$before"
}

# What guest 1 has said of itself.
said() {
    tr -d '\r' <"$(console_of 1)" | sed -n "s/^@value $1 //p"
}

# A number in guest 1's line of the status, by the word before it.
of_guest() {
    status_of "vif$(xl domid guest1).0" | tr ' ' '\n' | grep -A 1 -x "$1" | tail -n 1
}

# The number in a line of the administrator's status before those words.
number_before() {
    twin xen status | sed -n "s/^.* \([0-9,]*\) $1.*/\1/p" | tr -d ,
}

# moves STEP: guest 2 has fetched and sent all of its bytes since, whatever it was in the middle of.
moves() {
    await 600 "$1/fetched" more_of 2 fetch $(($(steps_of 2 fetch) + 1))
    await 600 "$1/sent" more_of 2 send $(($(steps_of 2 send) + 1))
}

load_modules
stage bridge 0
attach_eth0
if start_guest 1 commands && start_guest 2 forever; then
    connected 1
    connected 2
    pinged 1
    await 240 guest2/fetched grep -q '^@ok fetch' "$(console_of 2)"
    order guest1/ready '. /guest-spoof.sh'

    # ---- Without the stage ----
    order off/sent off
    is spoofed 0 && is storm 0
    step off/not-counted $? "spoofed $(status_of spoofed), storm $(status_of storm)"

    # ---- With it ----
    stage bridge 1
    stage storm $limit_a_second
    tell 60 on/restart restart 1
    await 60 on/carrier grep -q 1 /sys/class/net/eth0/carrier
    mark_counts
    began=$(uptime_ms)
    order on/flood begin_flood
    moves on/other-guest
    order on/flood-ended end_flood
    # The limit is one of time, which is measured around all of it.
    echo "@value on-flood-most $((64 + ($(uptime_ms) - began) * limit_a_second / 1000 + 1))"
    # All that were in the ring have their answers.
    spoofed=$(status_of spoofed) dropped=$(($(said on-spoofed) + $(said on-flood) - $(said ring)))
    [ "$spoofed" -le "$(said on-spoofed)" ] && [ "$spoofed" -ge $(($(said on-spoofed) - (dropped > 0 ? dropped : 0))) ]
    step on/spoofed-counted $? "$(said on-spoofed) sent, $spoofed counted, $dropped not in the ring"
    [ $(($(of_guest sent) + $(of_guest refused) + $(status_of storm))) -ge "$(said ring)" ]
    step on/all-counted $? "$(said ring) in the ring, $(of_guest sent) sent, $(of_guest refused) refused, $(status_of storm) for the limit"
    twin xen status
    [ "$(number_before "with another's source")" = "$spoofed" ]
    step on/spoofed-in-status $? "$(twin xen status | grep source)"
    [ "$(number_before 'for groups beyond the limit')" -ge "$(status_of storm)" ]
    step on/storm-in-status $? "$(status_of storm) at least"

    # ---- As it should be ----
    order honest/done honest
    [ "$(steps_of 1 fetch)" = 1 ] && [ "$(steps_of 1 send)" = 1 ]
    step honest/transfers $? "fetched $(steps_of 1 fetch) and sent $(steps_of 1 send) times"
    is spoofed "$spoofed"
    step honest/nothing-dropped $? "spoofed $(status_of spoofed)"
    moves honest/other-guest
    judge_counts guests
    is aborts 0
    step no-abort $? "$(status_of aborts) aborts"
    ! grep -q '^@fail' "$(console_of 2)"
    step guest2/no-failure $? "fetched $(steps_of 2 fetch) and sent $(steps_of 2 send) times"
    try 60 guest2/destroy xl destroy guest2
    gone 2
    echo exit >"$(xenstore-read "/local/domain/$(xl domid guest1)/console/tty")"
    end_guest 1 60
fi
detach_eth0
