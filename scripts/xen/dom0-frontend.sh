# SPDX-License-Identifier: MIT OR Apache-2.0
# Guests' interfaces come and go while the driver is inside Xen: a guest unbinds its own from its
# driver and binds it again, in the transfers of another; an administrator takes one away and
# gives another one (xl network-detach, network-attach); a guest has two; and a guest leaves its
# interface while nothing is attached.
. /twin.sh

load_modules
attach_eth0

# Interfaces that Xen serves of guest N.
interfaces_of() {
    grep -c "^vif$(xl domid "guest$1")\." $twin/status
}

has() {
    [ "$(interfaces_of "$1")" = "$2" ]
}

start_guest 1 forever && connected 1
await_traffic guest1/moving

# ---- The guest's own doing ----
if start_guest 2 rebind; then
    end_guest 2 600
    [ "$(steps_of 2 fetch)" = 4 ] && [ "$(steps_of 2 send)" = 4 ]
    step rebind/complete $? "fetched $(steps_of 2 fetch) and sent $(steps_of 2 send) times of 4"
fi

# ---- A guest that begins anew, and has not closed ----
# Its kernel may have ended without a word, as before kexec. Here it has not, and goes on where it was.
state_of() {
    xenstore-read "$backend/state"
}

began() {
    [ "$(state_of)" = "$1" ] && has 1 "$2"
}

id=$(xl domid guest1)
backend=/local/domain/0/backend/vif/$id/0
try 20 anew/initialising xenstore-write "/local/domain/$id/device/vif/0/state" 1
await 60 anew/waited-for began 2 0
try 20 anew/connected xenstore-write "/local/domain/$id/device/vif/0/state" 4
await 60 anew/served began 4 1
await_transfers anew/transfers

# ---- The administrator's ----
if start_guest 3 hotplug; then
    connected 3
    pinged 3
    has 3 1
    step hotplug/one $? "$(interfaces_of 3) interfaces"
    try 60 hotplug/take xl network-detach guest3 0
    await 60 hotplug/gone has 3 0
    try 60 hotplug/give xl network-attach guest3 mac=00:16:3e:00:00:03 script=$vif_script
    await 60 hotplug/served has 3 1
    try 60 hotplug/second xl network-attach guest3 mac=00:16:3e:00:01:03 script=$vif_script
    await 60 hotplug/both has 3 2
    end_guest 3 600
    [ "$(steps_of 3 fetch)" = 1 ] && [ "$(steps_of 3 send)" = 1 ]
    step hotplug/complete $? "fetched $(steps_of 3 fetch) and sent $(steps_of 3 send) times of 1"
fi

# ---- While nothing is attached ----
if start_guest 4 rebind; then
    connected 4
    await 120 detached/moved sh -c "grep -q '^@ok fetch' $(console_of 4)"
    tell 30 detached/detach detach 1
    sleep 5
    tell 30 detached/attach attach eth0
    end_guest 4 600
    [ "$(steps_of 4 fetch)" = 4 ] && [ "$(steps_of 4 send)" = 4 ]
    step detached/complete $? "fetched $(steps_of 4 fetch) and sent $(steps_of 4 send) times of 4"
fi

no_failure
never_aborted alive
destroyed 1
detach_eth0
native native-after/
unload_modules
