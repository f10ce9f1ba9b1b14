# SPDX-License-Identifier: MIT OR Apache-2.0
# A guest is saved to a file in the middle of its transfers, and restored: its interface goes, and
# comes again with other rings. Its connections outlive that.
. /twin.sh

load_modules
attach_eth0
no_vif() {
    ! grep -q ^vif $twin/status
}
if start_guest 1 forever; then
    connected 1
    await_traffic guest1/moving
    try 300 guest1/save xl save guest1 /tmp/guest1.save
    await 60 guest1/no-interface no_vif
    try 300 guest1/restore xl restore /tmp/guest1.save
    rm -f /tmp/guest1.save
    await_traffic guest1/moving-again
    goal=$(($(steps_of 1 fetch) + $(steps_of 1 send) + 2))
    transfers() {
        [ $(($(steps_of 1 fetch) + $(steps_of 1 send))) -ge $goal ]
    }
    await 300 guest1/transfers transfers
    ! grep -q '^@fail' "$(console_of 1)"
    step guest1/no-failure $? "$(steps_of 1 fetch) fetches and $(steps_of 1 send) sends, all right"
    is state 1 && is aborts 0
    step alive $? "state $(status_of state), $(status_of aborts) aborts"
    try 60 guest1/destroyed xl destroy guest1
    gone 1
fi
detach_eth0
unload_modules
