# SPDX-License-Identifier: MIT OR Apache-2.0
# From readelf -SW and -sW of a payload, and the address (hexadecimal) at which .driver.text
# lies: "START END PART NAME" of each function, as distances from 0xffff82d040000000.
function hex(text,    i, value) {
    for (i = 1; i <= length(text); i++)
        value = value * 16 + index("0123456789abcdef", substr(text, i, 1)) - 1
    return value
}
function align(value, to) {
    return int((value + to - 1) / to) * to
}
# [11] .driver.text PROGBITS 0 offset size 00 AX 0 0 16
/^\[[0-9]/ && $8 ~ /X/ {
    section = substr($1, 2)
    from[section] = align(end, $11)
    end = from[section] + hex($6)
    name[section] = $2
    if ($2 == ".driver.text")
        driver = from[section]
}
# 11: 00000000000006a0 49 FUNC LOCAL DEFAULT 1 name
$4 == "FUNC" && ($7 in from) {
    count++
    part = name[$7] ~ /^\.driver/ ? "driver" : name[$7] ~ /^\.hot/ ? "hot" : "platform"
    starts[count] = from[$7] + hex(substr($2, 9))
    size[count] = $3
    label[count] = part " " $8
}
END {
    if (length(at) != 16)
        exit
    base = hex(substr(at, 9)) - hex("40000000") - driver
    for (i = 1; i <= count; i++)
        print base + starts[i], base + starts[i] + size[i], label[i]
}
