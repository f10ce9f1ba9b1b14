#!/bin/sh
# The host's end of the guests' connections: QEMU starts it for each one, in the folder of
# the run, with the connection as standard input and output.
#
#   peer.sh down      sends the file `data`
#   peer.sh up        receives up to the end, answers with the SHA-256 digest
#   peer.sh answer    each byte back at once
#   peer.sh link      has QEMU take the card's carrier away for five seconds
#   peer.sh payload   receives dom0's symbols (a tar archive), answers with the livepatch
#   peer.sh frames    receives "SIZE COUNT MAC", puts so many frames and a quarter more on the
#                     card's wire, 32 at a time (the pipe frames.in, QEMU's filter-redirector)
#   peer.sh arrivals  receives the same, and orders so many and some more, each of which comes when the machine
#                     has nothing left to do (count-plugin.c)
set -eu

# Octal escapes of a number in two bytes, and of an Ethernet address.
two_bytes() {
    printf '\\%03o\\%03o' $(($1 / 256)) $(($1 % 256))
}
six_bytes() {
    for byte in $(echo "$1" | tr ':' ' '); do
        printf '\\%03o' "0x$byte"
    done
}

# one_frame SIZE MAC: with its length before it, as the filter takes it.
one_frame() {
    printf "\\000\\000$(two_bytes "$1")$(six_bytes "$2")\\002\\000\\000\\000\\000\\002\\210\\265"
    head -c $(($1 - 14)) /dev/zero
}

frames() {
    read -r size count mac
    for i in 1 2 3 4 5 6 7 8; do one_frame "$size" "$mac"; done >eight
    cat eight eight eight eight >burst
    sleep 2
    bursts=$((count * 5 / 4 / 32 + 1))
    while [ $bursts -gt 0 ]; do
        cat burst >frames.in
        bursts=$((bursts - 1))
        sleep 0.05
    done
    sleep 2
}

arrivals() {
    read -r size count mac
    count=$((count + 64))
    {
        printf "\\000\\000$(two_bytes $count)"
        one_frame "$size" "$mac"
    } >order
    # In one write.
    cat order >orders
}

case $1 in
frames) frames ;;
arrivals) arrivals ;;
down) exec cat data ;;
up) exec sha256sum ;;
answer) exec cat ;;
link) # The connection ends at once; this goes on.
    setsid sh -c 'echo "set_link card off" >monitor.in; sleep 5; echo "set_link card on" >monitor.in' \
        </dev/null >/dev/null 2>&1 & ;;
payload) exec sh ./make-payload 2>payload.log ;;
esac
