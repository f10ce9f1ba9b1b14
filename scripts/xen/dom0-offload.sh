# SPDX-License-Identifier: MIT OR Apache-2.0
# A card whose offloads an administrator has turned off: guests are offered large packets,
# fragments and checksums all the same, and the hot routines in Xen do what the card does not.
. /twin.sh

load_modules

# without FEATURE...: the card does none of these.
without() {
    for feature in "$@"; do
        try 60 "$feature/off" ethtool -K eth0 "$feature" off
    done
    ethtool -k eth0 | grep -E '^(tx-checksumming|scatter-gather|tcp-segmentation-offload):'
}

# Segments are cut, and share the packet's pages.
without tso
attach_eth0
if start_guest 1; then
    connected 1
    mark_counts
    await_traffic cut/moving
    judge_counts cut

    # Segments are copied, and their checksums computed.
    tell 30 copied/detach detach 1
    without sg tx
    tell 30 copied/attach attach eth0
    mark_counts
    await_traffic copied/moving
    finish_guest 1 600
    judge_counts copied
    is aborts 0
    step no-abort $? "$(status_of aborts) aborts, $(status_of upcalls) upcalls"
fi
detach_eth0
unload_modules
