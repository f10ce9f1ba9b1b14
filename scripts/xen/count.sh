# SPDX-License-Identifier: MIT OR Apache-2.0
# The host's part of the scenarios `count`, `rows` and `arrivals`: QEMU's options, and what was counted, as lines and
# as a table (count.awk). Sourced by xen.sh.

# The address of a symbol of the hypervisor's, without 0x.
xen_symbol() {
    awk -v "name=$1" '$1 == "symbol" && ($4 == name || $4 ~ "#" name "$") { print substr($2, 3); exit }' \
        "$xen/payload/xen.table"
}

# add_counting RUN: programs for guest and dom0, the plugin, options.
add_counting() {
    ${CC:-cc} -O2 -static -o "$1/guest/traffic" "$parts/count-traffic.c"
    ${CC:-cc} -O2 -shared -fPIC -fvisibility=hidden -o "$1/count.so" "$parts/count-plugin.c"
    mkfifo "$1/frames.in" "$1/frames.out"
    plugin=./count.so,out=counts,xen_end=$(xen_symbol __2M_rwdata_end)
    for event in switches:__context_switch interrupts:do_IRQ timers:apic_timer_interrupt \
        hypercalls:pv_hypercall events:create_bounce_frame; do
        plugin=$plugin,event.${event%%:*}=$(xen_symbol "${event#*:}")
    done
    echo "-icount shift=0 -plugin $plugin" \
        "-chardev pipe,id=frames,path=frames" \
        "-object filter-redirector,id=wire,netdev=network,queue=tx,indev=frames" >"$1/options"
}

# Where the loader put each function of the payload: "ADDRESS END PART NAME". Sections with
# code lie one after the other as in the file (Xen's common/livepatch.c, move_payload); the
# platform says at attach where the driver's begins.
payload_functions() {
    at=$(sed -n 's/.*twin: driver code at \([0-9a-f]*\).*/\1/p' "$1/console.log" | tail -n 1)
    {
        readelf -SW "$1/twin.livepatch" | sed 's/^ *\[ */[/; s/\]/ /'
        readelf -sW "$1/twin.livepatch"
    } | awk -v "at=$at" -f "$parts/count-functions.awk"
}

# Xen's own functions, the same.
xen_functions() {
    grep '^symbol 0xffff82d0' "$xen/payload/xen.table" | sort -k 2,2 | awk -f "$parts/count-symbols.awk"
}

# report_windows RUN KINDS ROUNDS: lines for judge(), and the files `table` and `table-by-function`.
report_windows() {
    { payload_functions "$1"; xen_functions; } | sort -n >"$1/functions"
    awk -v "frames=$frames" -v "table=$1/table" -v "kinds=$2" -v "rounds=$3" \
        -f "$parts/count.awk" "$1/functions" "$1/counts"
}

# report_counts RUN: those of `count`.
report_counts() {
    report_windows "$1" 'sent 1514,received 1514,sent 60,received 60,stored 1460,fetched 1460' \
        dom0,twin,off,aggregate,bridge,notify,pace,all,unchecked
}

# report_rows RUN: those of `rows`, and each beside its paper's figure (rows.awk).
report_rows() {
    report_windows "$1" \
        'large full,frames full,large bare,frames bare,fetched apart,fetched merged,asked apart,asked merged' \
        dom0,twin,again >"$1/counted"
    cat "$1/counted"
    tr -d '\r' <"$1/results.log" | awk -v "frames=$frames" -f "$parts/rows.awk" "$1/counted" -
}

# add_arrivals RUN: what frames need that come and go one by one. The card does not put its interrupts off: each frame
# has one.
add_arrivals() {
    add_counting "$1"
    mkfifo "$1/orders"
    sed -i 's|-plugin [^ ]*|&,orders=orders,wire=frames.in|; s|$| -global e1000.mitigation=off|' "$1/options"
}

# report_arrivals RUN: those of `arrivals`, and whether the stage does what it is for.
report_arrivals() {
    report_windows "$1" 'sent 1514,received 1514,sent 60,received 60' dom0,twin,notify >"$1/counted"
    cat "$1/counted"
    # One event of a frame is the program's, which waits for the next.
    awk '$1 == "@value" { value[$2] = $3 }
        function less(size, what, of) {
            return value["twin/" size "-received-" what] > 0 && \
                value["notify/" size "-received-" what] < of * value["twin/" size "-received-" what]
        }
        function step(size) {
            print (less(size, "events", 1) && less(size, "switches", 0.5) && less(size, "all", 1) ? "@ok" : "@fail"),
                "notify/" size "-less", value["twin/" size "-received-switches"], "changes of domain without the stage,",
                value["notify/" size "-received-switches"], "with it"
        }
        END { step(1514); step(60) }' "$1/counted"
}
