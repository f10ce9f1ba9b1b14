# SPDX-License-Identifier: MIT OR Apache-2.0
# Calls of dom0's kernel by the driver inside Xen, in the middle of a guest's transfers: the
# card's interrupt says that its link has changed, and the stock driver's handler then has its
# watchdog run (queue_delayed_work_on). Then dom0 does not answer: that is an abort, and after
# `restart` all is as before.
. /twin.sh

load_modules
attach_eth0

asked_more_than() {
    [ "$(status_of upcalls)" -gt "$1" ]
}

all_answered() {
    [ "$(status_of upcalls)" = "$(status_of upcalls-answered)" ]
}

if start_guest 1; then
    connected 1
    pinged 1
    await_traffic guest1/moving
    n=0
    while [ $n -lt 8 ]; do
        n=$((n + 1))
        before=$(status_of upcalls)
        tell 20 link-$n link 1
        await 60 link-$n/upcall asked_more_than "$before"
    done
    await 60 answered all_answered
    finish_guest 1 300
    is state 1 && is aborts 0
    step guest1/alive $? "state $(status_of state), $(status_of upcalls) upcalls, $(status_of aborts) aborts"
fi

# ---- A dom0 that does not answer ----------------------------------------------------

# One that goes away while the driver waits: not before Xen has let go of its rings.
start_guest 3 forever && connected 3
if start_guest 2; then
    connected 2
    pinged 2
    await_traffic guest2/moving
    tell 20 deaf deaf 1
    before=$(status_of upcalls) domain=$(xl domid guest3)
    tell 20 deaf/link link 1
    await 60 deaf/asked asked_more_than "$before"
    try 120 guest3/destroy xl destroy guest3
    gone 3
    await 120 deaf/aborted is state 2
    await 60 deaf/let-go sh -c "! grep -q '^vif$domain\.' $twin/status"
    is abort-import queue_delayed_work_on
    step deaf/named $? "$(status_of abort-what): $(status_of abort-import), at $(status_of abort-at)"
    tell 20 hears deaf 0
    tell 30 hears/restart restart 1
    finish_guest 2 300
    is state 1
    step guest2/alive $? "state $(status_of state), $(status_of upcalls) upcalls"
fi

detach_eth0
native native-after/
unload_modules
