# SPDX-License-Identifier: MIT OR Apache-2.0
# dom0's modules and their controls; sourced by the scenarios that load them.
twin=/sys/kernel/twin

# The value of a line of the status.
status_of() {
    sed -n "s/^$1 //p" $twin/status
}

# is NAME VALUE: whether the status says so.
is() {
    [ "$(status_of "$1")" = "$2" ]
}

# Writes a word to a control, as a step: `tell SECONDS STEP CONTROL WORD...`.
tell() {
    seconds=$1 name=$2 control=$3
    shift 3
    try "$seconds" "$name" sh -c "echo '$*' >$twin/$control"
}

# dom0's own traffic, by its own driver: `native PREFIX`.
native() {
    network eth0 10.0.2.9
    fetch "$1" 120
    ip addr flush dev eth0
}

load_modules() {
    must 20 twin_dom0 insmod /twin_dom0.ko
    must 20 twin_hot insmod /twin_hot.ko
}

# Only once no guest has an interface of theirs.
unload_modules() {
    try 20 rmmod-hot rmmod twin_hot
    try 20 rmmod-dom0 rmmod twin_dom0
}
