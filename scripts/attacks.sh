#!/bin/sh
# Gives every attack object of tests/attacks to `twin verify`: all must be refused,
# and the controls accepted.
#
#   scripts/attacks.sh TWIN DIRECTORY
#
# DIRECTORY holds TARGET/refused/*.o and TARGET/accepted/*.o, as the test writes
# them (TWIN_ATTACKS=DIRECTORY cargo test -p svm-verify --test attacks).
set -eu
twin=$1 directory=$2 wrong=0 right=0

# expect TARGET STATUS FILES...: counts those that end so in `right`, others in
# `wrong`. Target, scheme and accesses are demanded; a file's name ends in its scheme and
# says by TARGET-stores whether stores alone are confined.
expect() {
    demanded=$1 status=$2 right=0
    shift 2
    for file; do
        code=0 scheme=${file##*-} accesses=all
        case ${file##*/} in "$demanded"-stores*) accesses=stores ;; esac
        answer=$("$twin" verify --target "$demanded" --scheme "${scheme%.o}" \
            --accesses $accesses "$file" 2>&1) || code=$?
        if [ "$code" -eq "$status" ]; then
            right=$((right + 1))
        else
            wrong=$((wrong + 1))
            echo "$file: exit status $code, not $status: $answer" >&2
        fi
    done
}

for target in hypervisor linux; do
    expect "$target" 1 "$directory/$target"/refused/*.o
    refused=$right
    expect "$target" 0 "$directory/$target"/accepted/*.o
    echo "$target: $refused attacks refused, $right controls accepted"
done
echo "$wrong wrong"
[ "$wrong" -eq 0 ]
