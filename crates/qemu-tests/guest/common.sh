# SPDX-License-Identifier: MIT OR Apache-2.0
# The beginning of every guest script. The first serial port is the kernel's
# console; on the second the host reads results (crates/qemu-tests/src/report.rs):
#
#   @ok STEP TEXT        a step succeeded
#   @fail STEP TEXT      it did not
#   @begin NAME          text for the host to check, up to
#   @end NAME
#   @done                the script came to its end
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t debugfs debugfs /sys/kernel/debug
mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null
exec >/dev/ttyS1 2>&1
echo 8 >/proc/sys/kernel/printk
tracing=/sys/kernel/tracing

# The value of twin.$1 on the kernel's command line.
option() {
    sed -n "s/.*twin\.$1=\([^ ]*\).*/\1/p" /proc/cmdline
}

# Judges a step by an exit status: `step NAME STATUS TEXT`.
step() {
    if [ "$2" = 0 ]; then
        echo "@ok $1 $3"
    else
        echo "@fail $1 status $2 $3"
    fi
}

# Runs a command as a step: `try NAME COMMAND...`.
try() {
    name=$1
    shift
    output=$("$@" 2>&1)
    step "$name" $? "$(echo "$output" | tail -n 1)"
}

# Shows the end of a file to the host; the serial port is slow.
show() {
    echo "@begin $1"
    tail -n "${3:-1000}" "$2"
    echo "@end $1"
}

finish() {
    echo "@done"
    poweroff -f
}
