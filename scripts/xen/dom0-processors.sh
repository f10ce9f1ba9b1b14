# SPDX-License-Identifier: MIT OR Apache-2.0
# Processors that come and go, on a machine with two: none goes offline while a device is
# attached, and a guest in the middle of its transfers does not notice that somebody tried. One
# that comes online later runs no driver code, and a guest that runs there has its packets
# all the same.
. /twin.sh

processor=$(($(option guest_cpus)))
[ "$processor" -gt 0 ]
step two-processors $? "the last one is number $processor" || finish

hotplug() {
    timeout "$(limit 60)" xen-hptool "$1" "$processor"
}

online_count() {
    xl info | sed -n 's/^nr_cpus *: *//p'
}

# goes STEP, comes STEP: the last processor.
goes() {
    before=$(online_count)
    output=$(hotplug cpu-offline 2>&1)
    [ $? = 0 ] && [ "$(online_count)" = $((before - 1)) ]
    step "$1" $? "$before processors before, $(online_count) after; $(echo "$output" | tail -n 1)"
}

comes() {
    before=$(online_count)
    output=$(hotplug cpu-online 2>&1)
    [ $? = 0 ] && [ "$(online_count)" = $((before + 1)) ]
    step "$1" $? "$before processors before, $(online_count) after; $(echo "$output" | tail -n 1)"
}

# stays STEP: it is refused, and Xen says why.
stays() {
    before=$(online_count)
    xl dmesg -c >/dev/null
    ! output=$(hotplug cpu-offline 2>&1) && [ "$(online_count)" = "$before" ]
    step "$1/refused" $? "$before processors before, $(online_count) after; $(echo "$output" | tail -n 1)"
    xl dmesg -c >/tmp/dmesg
    grep -q "twin: processor $processor stays online: a device is attached" /tmp/dmesg
    step "$1/named" $? "$(sed -n 's/.*twin: processor/processor/p' /tmp/dmesg | head -n 1)"
}

# Entries into driver code on the last processor.
entries() {
    status_of entries-by-processor | cut -d ' ' -f $((processor + 1))
}

load_modules
goes free/goes
comes free/comes

# ---- All processors are there ----------------------------------------------------------

attach_eth0
stays attached
if start_guest 1; then
    connected 1
    mark_counts
    pinged 1
    await_traffic guest1/moving
    stays traffic
    finish_guest 1 300
    judge_counts guest1
    [ "$(entries)" -gt 0 ]
    step guest1/driver-there $? "$(status_of entries-by-processor) entries by processor"
fi

# ---- One comes later -------------------------------------------------------------------

tell 30 without/detach detach 1
goes without/goes
tell 30 without/attach attach eth0
comes later/comes
stays later
if start_guest 2; then
    connected 2
    mark_counts
    finish_guest 2 300
    judge_counts guest2
    is aborts 0 && [ "$(entries)" = 0 ]
    step guest2/no-driver-there $? "$(status_of entries-by-processor) entries by processor"
fi

# ---- And with it ------------------------------------------------------------------------

tell 30 again/detach detach 1
tell 30 again/attach attach eth0
if start_guest 3; then
    connected 3
    finish_guest 3 300
    [ "$(entries)" -gt 0 ]
    step guest3/driver-there $? "$(status_of entries-by-processor) entries by processor"
fi

detach_eth0
goes detached/goes
comes detached/comes
native native-after/
unload_modules
