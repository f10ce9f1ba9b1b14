#!/bin/sh
# SPDX-License-Identifier: MIT OR Apache-2.0
# First boot (twin.enrol=yes): puts a certificate into the firmware's list of trusted
# ones. Second boot, with module.sig_enforce=1: loads modules of every kind of signature.
. /common.sh
# The firmware has written to this line without ending it.
echo

if [ "$(option enrol)" = yes ]; then
    try enrol-driver insmod /modules/efivarfs.ko
    try enrol-variables mount -t efivarfs efivarfs /sys/firmware/efi/efivars
    # A variable is set by one write.
    cat /enrol >/sys/firmware/efi/efivars/db-d719b2cb-3d3a-4596-a3bc-dad00e67656f
    step enrol $?
    finish
fi

[ "$(cat /sys/module/module/parameters/sig_enforce)" = Y ]
step enforced $?
for module in unsigned changed foreign; do
    echo "twin-test: $module" >/dev/kmsg
    ! insmod "/modules/$module.ko"
    step "refused-$module" $?
done
echo "twin-test: signed" >/dev/kmsg
try signed insmod /modules/signed.ko
try signed-unload rmmod e1000
dmesg | grep -E 'twin-test|Loading of|integrity:' >/tmp/log
show log /tmp/log
finish
