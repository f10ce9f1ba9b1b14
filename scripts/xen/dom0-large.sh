# SPDX-License-Identifier: MIT OR Apache-2.0
# Two guests at once, 64 MiB each way each: their digests are right, and after both have their
# carriers dom0 has no interrupt of the card and no notification of a guest. They have given large
# packets, which the card cuts into segments.
. /twin.sh

load_modules
attach_eth0
if start_guest 1 && start_guest 2; then
    connected 1
    connected 2
    mark_counts
    (while sleep 1; do grep ^vif $twin/status; done >/tmp/vifs) &
    watcher=$!
    finish_guest 1 3600
    finish_guest 2 3600
    kill $watcher
    judge_counts both
    is aborts 0
    step no-abort $? "$(status_of aborts) aborts"
    # vifN.0 kicks K notified N sent PACKETS BYTES received ...: of each second, since acknowledgements are packets, too.
    most=$(awk '
        $7 > packets[$1] && $1 in packets {
            mean = ($8 - bytes[$1]) / ($7 - packets[$1])
            most = mean > most ? mean : most
        }
        { packets[$1] = $7; bytes[$1] = $8 }
        END { print int(most) }' /tmp/vifs)
    [ "$most" -gt 1514 ]
    step large-packets $? "$most bytes a packet, in one second"
fi
detach_eth0
unload_modules
