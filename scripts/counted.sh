#!/bin/sh
# What `twin cc --report` counted, over all compilations in these files.
#
#   scripts/counted.sh REPORT.jsonl...
set -eu
cat "$@" | awk -F'[:,{}]' '{
    for (i = 1; i < NF; i++) {
        if ($i == "\"lines\"") lines += $(i + 1)
        else if ($i == "\"instructions\"") instructions += $(i + 1)
        else if ($i ~ /"rewritten"/) inside = 1
        else if (inside && $i ~ /^[0-9]+$/) sites += $i
    }
    inside = 0
} END {
    printf "%d sources, %d lines of assembly, %d instructions, %d of them rewritten\n",
        NR, lines, instructions, sites
}'
