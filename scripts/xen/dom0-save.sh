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
    await_transfers guest1/transfers
    no_failure
    never_aborted alive
    destroyed 1
fi
detach_eth0
unload_modules
