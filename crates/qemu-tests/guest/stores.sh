#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# Loads a driver that reads user memory, and one that writes it, with all accesses
# translated and with stores alone.
. /common.sh

insmod /modules/wild1.ko.gz place=3
step "stores-stray-read" $?
for stray in 2:4 3:3 4:4; do
    insmod "/modules/wild${stray%:*}.ko.gz" place="${stray#*:}"
    [ $? != 0 ]
    step "stopped-$stray" $?
done
# The kernel goes on.
sleep 1
step alive 0
finish
