# SPDX-License-Identifier: MIT OR Apache-2.0
# The short form of attach, a part of `make test`: one guest, whose transfers outlive a wild
# pointer of the driver and its restart; then the driver is dom0's again.
. /twin.sh

native native-before/
load_modules
attach_eth0
if start_guest 1; then
    connected 1
    await_traffic guest1/moving
    # The transfers that are left may have nothing more to fetch.
    segments=$(status_of merged) packets=$(status_of aggregates)
    wild 10
    mark_counts
    finish_guest 1 300
    judge_counts guest1
    packets=$((packets + $(status_of aggregates)))
    [ $packets -gt 0 ]
    step merged $? "$((segments + $(status_of merged))) segments of TCP in $packets packets"
fi
detach_eth0
native native-after/
unload_modules
