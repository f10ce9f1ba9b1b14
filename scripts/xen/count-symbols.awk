# SPDX-License-Identifier: MIT OR Apache-2.0
# From the lines `symbol` of the hypervisor's table, in the order of their addresses: "START END
# xen NAME" of each function of its image, as count-functions.awk has those of the payload. A
# function ends where the next symbol is.
function hex(text,    i, value) {
    for (i = 1; i <= length(text); i++)
        value = value * 16 + index("0123456789abcdef", substr(text, i, 1)) - 1
    return value
}
# symbol 0xffff82d040211111 t common/grant_table.c#acquire_grant_for_copy
{
    start = hex(substr($2, 11)) - hex("40000000")
    if (kind ~ /^[tT]$/ && start > last)
        print last, start, "xen", name
    last = start; kind = $3; name = $4
}
