# SPDX-License-Identifier: MIT OR Apache-2.0
# What was counted (count.awk), then what dom0 wrote: each row beside its paper's figure, as lines for
# judge() of xen.sh. A row that misses its figure is no failure; one whose stage does nothing is.
$1 == "@value" { value[$2] = $3 }
function counted(path, kind, what) {
    return value[path "/" kind "-" what]
}
function verdict(reached) {
    return reached ? "reached" : "missed"
}
function row(name, number, unit, figure, reached) {
    printf "@value row/%s %.2f%s, %s: %s\n", name, number, unit, figure, verdict(reached)
}
function check(name, holds, text) {
    print (holds ? "@ok" : "@fail"), "row/" name, text
}
# How many times fewer `what` of kind b than of kind a.
function times(path, a, b, what) {
    return counted(path, a, what) / counted(path, b, what)
}
function large(path, card, paper,    ratio) {
    ratio = times(path, card "-frames", card "-large", "all")
    row("hlvi/" path "/" card, ratio, " times", "thesis " paper, ratio >= paper)
    check("hlvi/" path "/" card "/less", ratio > 1, counted(path, card "-frames", "all") \
        " instructions a segment by frames, " counted(path, card "-large", "all") " by large packets")
}
# The packets of a window, by its first mark; a few more than the segments' own.
function packets(guest, mark) {
    return value["guest" guest "/packets-" mark]
}
function merged(path, guest, mark,    ratio, apart, few) {
    ratio = times(path, "apart-fetched", "merged-fetched", "all")
    row("aggregation/" path, ratio, " times", "thesis 1.45", ratio >= 1.45)
    apart = packets(guest, mark)
    few = packets(guest, mark + 2)
    row("aggregation/" path "/segments", frames / few, " a packet", "design 19", frames / few >= 19)
    check("aggregation/" path "/less", few > 0 && few < apart / 2,
        frames " segments in " apart " packets without merging, in " few " with it")
}
function instance(path, kind) {
    return counted(path, kind, "platform") + counted(path, kind, "hot") + counted(path, kind, "driver")
}
function percent(more, of) {
    return 100 * more / of
}
# The instance's part does not depend on when the host answers.
function asked(path,    off, more) {
    off = counted(path, "apart-asked", "all")
    more = percent(counted(path, "merged-asked", "all") - off, off)
    row("request-response/" path, more, "% more", "design at most 1", more <= 1)
    if (path == "dom0")
        return
    more = percent(instance(path, "merged-asked") - instance(path, "apart-asked"), off)
    row("request-response/" path "/instance", more, "% more", "design at most 1", more <= 1)
}
function all_rows(path, guest, mark) {
    large(path, "full", 3.73)
    large(path, "bare", 1.95)
    merged(path, guest, mark + 8)
    asked(path)
}
END {
    # Without a window there is a failure already (count.awk).
    if (value["again/merged-asked-all"] > 0 && value["dom0/merged-asked-all"] > 0) {
        all_rows("dom0", 1, 0)
        all_rows("twin", 2, 16)
        all_rows("again", 2, 32)
    }
}
