#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only OR MIT
# Run the given test programs; add up their closing lines. A program that ends
# without one, or badly after a good one, or not at all, counts as one failed
# test.
passed=0
failed=0
for program in "$@"; do
	# A guard against what never ends, on a machine however busy.
	output=$(timeout 3600 "$program")
	status=$?
	line=$(printf '%s\n' "$output" | grep -E '^[0-9]+ passed, [0-9]+ failed$' | tail -n 1)
	echo "$(basename "$program"): ${line:-no result, exit status $status}"
	p=${line%% *}
	f=$(printf '%s' "$line" | sed 's/.*, \([0-9]*\) failed/\1/')
	passed=$((passed + ${p:-0}))
	failed=$((failed + ${f:-0}))
	if [ "$status" -ne 0 ] && [ "${f:-0}" -eq 0 ]; then
		echo "$(basename "$program"): exit status $status"
		failed=$((failed + 1))
	fi
done
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
