# SPDX-License-Identifier: MIT OR Apache-2.0
# From the functions of payload and Xen (count-functions.awk, count-symbols.awk) in the order of
# their addresses, and what the plugin wrote: what a packet cost, as lines for judge() of xen.sh,
# as a table in the file `table`, and by function, the largest first, in the file
# `table-by-function`. `kinds` are those of packets, `rounds` those of a scenario, each with all kinds, from
# the first mark on; the first is by dom0. A window is between a mark with an even number and the next. `crossings`
# are Xen's instructions for interrupts, events, timers and changes of domain, by the names of its
# functions; what a hypercall, a copy or a guest's system call takes is not among them.
BEGIN {
    kinds = split(kinds, kind, ",")
    rounds = split(rounds, round, ",")
    split("xen payload dom0-kernel dom0-other guest-kernel guest-other", class, " ")
}
FILENAME ~ /functions$/ {
    functions++
    start[functions] = $1; stop[functions] = $2; part[functions] = $3; name[functions] = $4
    next
}
$1 == "mark" { mark = $2; window = mark % 2 ? int(mark / 2) : -1; next }
window < 0 { next }
$1 == "class" { executed[window, $2] = $3; steps[window, $2] = $4; seen[window] = 1 }
$1 == "event" { events[window, $2] = $3 }
$1 == "at" && $4 == "" {
    f = function_at($2)
    if (f) {
        parts[window, part[f]] += $3
        each[window, f] += $3
        if ($2 == start[f])
            calls[window, f] += $3
    }
}
function function_at(offset,    low, high, middle) {
    if (offset in known)
        return known[offset]
    low = 1; high = functions + 1
    while (high - low > 1) {
        middle = int((low + high) / 2)
        if (start[middle] <= offset)
            low = middle
        else
            high = middle
    }
    return known[offset] = functions && offset >= start[low] && offset < stop[low] ? low : 0
}
function whole(w,    sum, i) {
    for (i in class)
        sum += executed[w, class[i]]
    return sum
}
function crosses(f) {
    return part[f] == "xen" && \
        name[f] ~ /sched|timer|irq|softirq|idle|switch|evtchn|_event|vcpu_|unit_|runq|runstate|bitmap|s_time|rcu|eoi|tasklet|svm_load|write_ptbase|update_guest_memory_policy/ && \
        name[f] !~ /lock|entry\.S|do_vcpu_op/
}
function crossings(w,    sum, f) {
    for (f = 1; f <= functions; f++)
        if ((w, f) in each && crosses(f))
            sum += each[w, f]
    return 0 + sum
}
function all_steps(w,    sum, i) {
    for (i in class)
        sum += steps[w, class[i]]
    return sum
}
# A column: its name, what happened in the window.
function column(what, number) {
    printf "@value %s-%s %.2f\n", prefix, what, number / frames
    heads = heads sprintf(" %9s", what)
    row = row sprintf(number < 10 * frames ? " %9.2f" : " %9.0f", number / frames)
}
function figures(path, w) {
    prefix = path "/" size "-" direction
    heads = ""
    row = ""
    column("all", whole(w))
    column("guest", executed[w, "guest-kernel"] + executed[w, "guest-other"])
    column("dom0", executed[w, "dom0-kernel"] + executed[w, "dom0-other"])
    column("xen", executed[w, "xen"])
    column("crossings", crossings(w))
    column("platform", executed[w, "payload"] - parts[w, "driver"] - parts[w, "hot"])
    column("hot", 0 + parts[w, "hot"])
    column("driver", 0 + parts[w, "driver"])
    column("steps", all_steps(w))
    column("switches", 0 + events[w, "switches"])
    column("interrupts", 0 + events[w, "interrupts"])
    column("timers", 0 + events[w, "timers"])
    column("hypercalls", 0 + events[w, "hypercalls"])
    column("events", 0 + events[w, "events"])
    if (!titled++)
        printf "%-24s%s\n", "a packet", heads >table
    printf "%-24s%s\n", prefix, row >table
}
# What kind k cost a guest by dom0, and another one by the driver inside Xen, in window w.
function compare(k, path, w,    ours, theirs) {
    if (!is_counted(path, w))
        return
    figures(path, w)
    theirs = whole(k)
    ours = whole(w)
    printf "@value ratio/%s/%s-%s %.2f\n", path, size, direction, theirs / ours
    theirs -= executed[k, "guest-kernel"] + executed[k, "guest-other"]
    ours -= executed[w, "guest-kernel"] + executed[w, "guest-other"]
    printf "@value ratio-without-guest/%s/%s-%s %.2f\n", path, size, direction, theirs / ours
    printf "@ok counted/%s/%s-%s %d instructions a packet by dom0, %d by the driver inside Xen\n",
        path, size, direction, whole(k) / frames, whole(w) / frames
}
function is_counted(path, w) {
    if (!seen[w])
        print "@fail counted/" path "/" size "-" direction " no window"
    return seen[w]
}
# All paths of kind k.
function compare_all(k,    words, i) {
    split(kind[k + 1], words, " ")
    direction = words[1]
    size = words[2]
    if (!is_counted("dom0", k))
        return
    figures("dom0", k)
    for (i = 2; i <= rounds; i++)
        compare(k, round[i], (i - 1) * kinds + k)
}
function by_function(path, k, w,    f, sorted) {
    sorted = "sort -k 4,4nr >>" table "-by-function"
    for (f = 1; f <= functions; f++)
        if (each[w, f] >= frames)
            printf "%s %s: %.1f instructions, %.2f calls, %s %s\n", path, kind[k + 1],
                each[w, f] / frames, calls[w, f] / frames, part[f], name[f] | sorted
    close(sorted)
}
END {
    printf "" >(table "-by-function")
    close(table "-by-function")
    for (k = 0; k < kinds; k++) {
        compare_all(k)
        for (i = 1; i <= rounds; i++)
            by_function(round[i], k, (i - 1) * kinds + k)
    }
}
