#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Programs of the host's, in the host's own system, on the processor that this machine has. The host's
# files are below all; what is written is in memory, and gone at the end.
. /common.sh

for module in $(cat /modules/order); do
    insmod /modules/"$module".ko || step "load-$module" 1
done
mkdir -p /below /written /host
mount -t 9p -o ro,trans=virtio,version=9p2000.L,msize=512000,cache=loose files /below
step files $?
mount -t tmpfs -o size=60% tmpfs /written
mkdir /written/files /written/work
mount -t overlay -o lowerdir=/below,upperdir=/written/files,workdir=/written/work overlay /host
step overlay $?
mount -t proc proc /host/proc
mount -t sysfs sysfs /host/sys
mount -t devtmpfs devtmpfs /host/dev
mkdir -p /host/dev/shm /host/dev/pts
mount -t devpts devpts /host/dev/pts
for directory in tmp dev/shm; do
    mount -t tmpfs tmpfs /host/$directory
done
ip link set lo up
# Programs that die by an exception on purpose are none of the kernel's complaints.
echo 0 >/proc/sys/debug/exception-trace

echo "@begin processor"
grep -m1 vendor_id /proc/cpuinfo
grep -m1 "model name" /proc/cpuinfo
grep -m1 flags /proc/cpuinfo
echo "@end processor"

# `program NAME DIRECTORY COMMAND...`: a step, with its last line that sums up; all that it printed
# if it failed.
program() {
    name=$1
    directory=$2
    shift 2
    chroot /host /usr/bin/env -i -C "$directory" PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
        "$@" >/tmp/output 2>&1 </dev/null
    status=$?
    step "$name" $status "$(grep -E '^test result|passed' /tmp/output | tail -n 1)"
    [ $status = 0 ] || show "$name" /tmp/output 200
}

. /programs
finish
