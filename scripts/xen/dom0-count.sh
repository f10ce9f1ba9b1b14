# SPDX-License-Identifier: MIT OR Apache-2.0
# What a packet costs in instructions: a guest's frames and bytes through stock netback, bridge and
# e1000 of dom0; then, in the same boot, another guest's through the driver inside Xen, with the stages that
# an attachment has by default, with none, with each alone and with all, and with the default's but `dma`. All but the first have no `dma`. The guest's
# program marks where counting begins and ends (scripts/xen/count-plugin.c), and dom0 has nothing
# to do meanwhile but wait. With more guests than one (TWIN_XEN_GUESTS) the others are connected and
# do nothing.
. /twin.sh
. /counting.sh

guests=$(option guests)
others=
n=3
while [ $n -lt $((guests + 2)) ]; do
    others="$others $n"
    n=$((n + 1))
done

begin_others() {
    for other in $others; do
        start_guest "$other" rest && connected "$other"
    done
}

end_others() {
    for other in $others; do
        try 60 "guest$other/destroy" xl destroy "guest$other"
        gone "$other"
    done
}

# ---- By dom0 ------------------------------------------------------------------------

begin_netback
begin_others
start_guest 1 "count:0:$frames" && listen 1 && await_line @done
complete 1 6
end_others
end_netback

# ---- By the driver inside Xen ---------------------------------------------------------

# What there is alone: `only NAME MARK STAGE...`.
only() {
    name=$1 mark=$2
    shift 2
    round "$name" "count_frames $mark $frames" aggregate=0 bridge=0 notify=0 pace=0 dma=0 "$@"
}

load_modules
attach_eth0
begin_others
if begins 2; then
    round twin "count_frames 12 $frames"
    only off 24
    only aggregate 36 aggregate=45
    only bridge 48 bridge=1
    only notify 60 notify=16
    only pace 72 pace=1
    only all 84 aggregate=45 bridge=1 notify=16 pace=1
    # The default's, but what the driver gives to the card is not checked.
    only unchecked 96 aggregate=45 pace=1
    cat $twin/status
    ends 2 48
fi
end_others
detach_eth0
