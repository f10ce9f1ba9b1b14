# SPDX-License-Identifier: MIT OR Apache-2.0
# The host's part of the scenario `spoof`: what guests send is also written to a file, in which their frames
# are counted by the word in each. Sourced by xen.sh.

# add_wire RUN: the guest's program, QEMU's option.
add_wire() {
    ${CC:-cc} -O2 -static -o "$1/guest/frames" "$parts/guest-frames.c"
    cp "$parts/guest-spoof.sh" "$1/guest/"
    # Frames to the network's end, not to the card; the words are at their beginnings.
    echo "-object filter-dump,id=wire,netdev=network,queue=rx,maxlen=96,file=wire.pcap" >"$1/options"
}

on_wire() {
    LC_ALL=C grep -aoF -e "$2" "$1/wire.pcap" | wc -l
}

# value_of RUN NAME: what a script inside has said.
value_of() {
    tr -d '\r' <"$1/results.log" | sed -n "s|^@value $2 \([0-9]*\)$|\1|p" | tail -n 1
}

# wire_step NAME CONDITION TEXT: a line for judge().
wire_step() {
    # shellcheck disable=SC2086
    if [ $2 ]; then echo "@ok $1 $3"; else echo "@fail $1 $3"; fi
}

# report_wire RUN: lines for judge().
report_wire() {
    for kind in off-spoofed off-flood honest; do
        sent=$(value_of "$1" "guest1/$kind") word=$kind
        [ $kind != honest ] || word=on-honest
        came=$(on_wire "$1" $word)
        wire_step "wire/$kind" "${sent:-0} -gt 0 -a $came = ${sent:-0}" "$sent sent, $came on the wire"
    done
    came=$(on_wire "$1" on-spoofed) sent=$(value_of "$1" guest1/on-spoofed)
    wire_step wire/on-spoofed "${sent:-0} -gt 0 -a $came = 0" "$sent sent, $came on the wire"
    came=$(on_wire "$1" on-flood) sent=$(value_of "$1" guest1/on-flood)
    most=$(value_of "$1" on-flood-most)
    wire_step wire/on-flood "$came -ge 32 -a $came -le ${most:-0} -a $came -lt ${sent:-0}" \
        "$sent sent, $came on the wire, at most ${most:-0} allowed"
}
