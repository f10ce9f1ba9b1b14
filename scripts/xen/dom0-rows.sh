# SPDX-License-Identifier: MIT OR Apache-2.0
# What a stock guest's TCP costs beside the papers' figures: stored by large packets and by frames, on a card that does
# all of it and on one that does nothing; fetched, and a byte there and one back, with segments that are merged and
# that are not. By dom0, where its own kernel merges, then twice by the driver inside Xen.
. /twin.sh
. /counting.sh

# card on|off: whether it segments, gathers and computes checksums.
card() {
    try 60 "card/$1" ethtool -K eth0 tx "$1" sg "$1" tso "$1"
}

# received MARK: what windows there are of segments that are received, merged or not.
received() {
    echo "count_fetched $1 $frames && count_asked $(($1 + 4)) $frames"
}

# ---- By dom0 ------------------------------------------------------------------------

# by_dom0 COMMAND
by_dom0() {
    order 1 "$1" '@ok done'
}

begin_netback
if begins 1; then
    by_dom0 "count_large 0 $frames"
    card off
    by_dom0 "count_large 4 $frames"
    card on
    try 60 merging/off ethtool -K eth0 gro off
    by_dom0 "$(received 8)"
    try 60 merging/on ethtool -K eth0 gro on
    by_dom0 "$(received 10)"
    ends 1 8
fi
end_netback

# ---- By the driver inside Xen ---------------------------------------------------------

# Its features cannot be changed while it is attached.
attached_card() {
    tell 60 card/detach detach 1
    card "$1"
    tell 60 card/attach attach eth0
}

# by_xen NAME MARK: all windows, from that mark on.
by_xen() {
    round "$1" "count_large $2 $frames" aggregate=45
    round "$1-apart" "$(received $(($2 + 8)))" aggregate=0
    round "$1-merged" "$(received $(($2 + 10)))" aggregate=45
    attached_card off
    round "$1-bare" "count_large $(($2 + 4)) $frames"
    attached_card on
}

load_modules
attach_eth0
if begins 2; then
    by_xen twin 16
    by_xen again 32
    cat $twin/status
    ends 2 16
fi
detach_eth0
