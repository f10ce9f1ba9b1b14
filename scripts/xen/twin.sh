# SPDX-License-Identifier: MIT OR Apache-2.0
# dom0's modules and their controls, and the payload; sourced by the scenarios that have them.
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
    must 60 twin_dom0 insmod /twin_dom0.ko
    must 60 twin_hot insmod /twin_hot.ko
}

# Only once no guest has an interface of theirs.
unload_modules() {
    try 60 rmmod-hot rmmod twin_hot
    try 60 rmmod-dom0 rmmod twin_dom0
}

# ---- dom0's addresses, the payload ----------------------------------------------

# What the host needs to resolve dom0's addresses: `twin payload` runs there
# (scripts/xen/make-payload).
symbols() {
    mkdir -p /tmp/symbols/sections
    cat /proc/kallsyms >/tmp/symbols/kallsyms
    for module in e1000 twin_hot; do
        mkdir /tmp/symbols/sections/$module
        find /sys/module/$module/sections -type f | while read -r file; do
            cat "$file" >"/tmp/symbols/sections/$module/${file##*/}"
        done
    done
    # That of the per-CPU section is not below /sys/module.
    cat $twin/hot_percpu >/tmp/symbols/sections/twin_hot/.data..percpu
    tar -cf /tmp/symbols.tar -C /tmp/symbols .
}

payload() {
    symbols
    network eth0 10.0.2.9
    timeout 120 nc $peer 7003 </tmp/symbols.tar >/tmp/twin.livepatch
    ip addr flush dev eth0
    rm -rf /tmp/symbols /tmp/symbols.tar
    [ "$(head -c 4 /tmp/twin.livepatch | tail -c 3)" = ELF ]
    step payload $? "$(wc -c </tmp/twin.livepatch) bytes" || finish
}

# Xen gives its processors 30 ms to meet for applying or reverting, which an emulator on a busy
# machine does not always let them: again, up to 20 times. `patiently STEP COMMAND...`.
patiently() {
    name=$1 tries=0
    shift
    until output=$(timeout 60 "$@" 2>&1) || [ $tries -ge 20 ]; do
        echo "$output"
        tries=$((tries + 1))
        sleep 0.5
    done
    [ $tries -lt 20 ]
    step "$name" $? "$(echo "$output" | tail -n 1), $tries times again"
}

# ---- In Xen, and out of it ------------------------------------------------------

attach_eth0() {
    payload
    patiently load xen-livepatch load /tmp/twin.livepatch || finish
    tell 30 attach attach eth0 || {
        dmesg | grep twin: | tail -n 5
        finish
    }
}

detach_eth0() {
    tell 30 detach detach 1
    patiently revert xen-livepatch revert twin
    try 60 unload xen-livepatch unload twin
}
