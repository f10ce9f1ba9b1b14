# SPDX-License-Identifier: MIT OR Apache-2.0
# The lines that scripts inside dom0 and the guests write, and scripts/xen.sh judges:
#
#   @ok STEP TEXT        a step succeeded
#   @fail STEP TEXT      it did not
#   @value NAME NUMBER   a figure
#   @console TEXT        Xen's console must have this text in the end
#   @done                the script came to its end
#
# dom0 writes them to its second serial port, a guest to its console, of which dom0 passes
# them on with the guest's name before the step. Sourced.

# The value of twin.$1 on the kernel's command line.
option() {
    sed -n "s/.*twin\.$1=\([^ ]*\).*/\1/p" /proc/cmdline
}

# Seconds that a wait of that many may take: more where little of the processor is ours.
limit() {
    echo $(($1 * $(option patience)))
}

# Judges a step by an exit status: `step NAME STATUS TEXT`. Gives the status.
step() {
    if [ "$2" = 0 ]; then
        echo "@ok $1 $3"
    else
        echo "@fail $1 status $2 $3"
    fi
    return "$2"
}

# Runs a command as a step, for at most so many seconds: `try SECONDS NAME COMMAND...`.
try() {
    seconds=$(limit "$1") name=$2
    shift 2
    output=$(timeout "$seconds" "$@" 2>&1)
    status=$?
    [ "$status" != 143 ] || output="$output
no end within $seconds s"
    [ "$status" = 0 ] || echo "$output"
    step "$name" "$status" "$(echo "$output" | tail -n 1)"
}

# Waits until a command succeeds, as a step: `await SECONDS NAME COMMAND...`.
await() {
    seconds=$(limit "$1") name=$2
    shift 2
    tries=$((seconds * 5))
    until "$@" >/dev/null 2>&1; do
        tries=$((tries - 1))
        [ "$tries" -gt 0 ] || {
            step "$name" 1 "not within $seconds s: $*"
            return
        }
        sleep 0.2
    done
    step "$name" 0 "$*"
}

uptime_ms() {
    sed 's/^\([0-9]*\)\.\([0-9]*\) .*/\1\20/' /proc/uptime
}
