# SPDX-License-Identifier: MIT OR Apache-2.0
# What frames cost that come and go one by one, each when the machine has nothing left to do (count-plugin.c,
# count-traffic.c): by dom0, and by the driver inside Xen with and without the stage `notify`, which tells a guest of sixteen by
# one event. In `count` the host's frames come 32 at a time, and one service has them all.
. /twin.sh
. /counting.sh

begin_netback
start_guest 1 "arrivals:0:$frames" && listen 1 && await_line @done
complete 1 4
end_netback

load_modules
attach_eth0
if begins 2; then
    round twin "count_arrivals 8 $frames" notify=0
    round notify "count_arrivals 16 $frames" notify=16
    cat $twin/status
    ends 2 8
fi
detach_eth0
