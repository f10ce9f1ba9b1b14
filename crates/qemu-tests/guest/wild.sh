#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Loads a driver whose faults the kernel answers, and one that restores flags, as they
# were built and rewritten; then one with a wild pointer: well-behaved, then astray.
. /common.sh

for build in original rewritten; do
    insmod "/modules/fixup-$build.ko"
    step "fixups-$build" $?
    rmmod fixup
    step "fixups-$build-unload" $?
    insmod "/modules/flags-$build.ko"
    step "flags-$build" $?
    rmmod flags
    step "flags-$build-unload" $?
done

insmod /modules/wild.ko
step sane $?
rmmod wild
step sane-unload $?
# Each kills its insmod, so that each needs a module of its own.
n=0
for stray in $(option addresses | sed 's/,/ /g'); do
    n=$((n + 1))
    insmod "/modules/wild$n.ko.gz" address="${stray%:*}" place="${stray#*:}"
    [ $? != 0 ]
    step "stopped-$stray" $?
done
for astray in 1 2; do
    insmod "/modules/flags$astray.ko.gz" astray=$astray
    [ $? != 0 ]
    step "stopped-flags-$astray" $?
done
# The kernel goes on.
sleep 1
step alive 0
finish
