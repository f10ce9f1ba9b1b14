# SPDX-License-Identifier: MIT OR Apache-2.0
# Uses those of the DKMS modules that need no hardware; card.sh reads it when they are loaded.

is_loaded() {
    [ -d "/sys/module/$1" ]
}

# A disk in memory: what is written is read back.
if is_loaded rapiddisk; then
    echo 'rapiddisk attach 0 4194304' >/sys/kernel/rapiddisk/mgmt
    step rapiddisk-attach $?
    head -c 4194304 /dev/urandom >/tmp/written
    cat /tmp/written >/dev/rd0
    echo 3 >/proc/sys/vm/drop_caches
    [ "$(sha256sum </dev/rd0)" = "$(sha256sum </tmp/written)" ]
    step rapiddisk-data $? "$(sha256sum </dev/rd0 | cut -c 1-16)"
    echo 'rapiddisk detach 0' >/sys/kernel/rapiddisk/mgmt
    step rapiddisk-detach $?
    rm -f /tmp/written
fi

# The firmware of QEMU's machine says which device its PCI bus is: PNP0A03, as ACPI packs it.
if is_loaded acpi_call; then
    echo '\_SB.PCI0._HID' >/proc/acpi/call
    answer=$(tr -d '\0' </proc/acpi/call)
    [ "$answer" = 0x30ad041 ]
    step acpi_call $? "$answer"
fi

if is_loaded vpoll; then
    : </dev/vpoll
    step vpoll $?
fi

# A camera that is none.
if is_loaded v4l2loopback; then
    [ -c /dev/video0 ] && [ "$(cat /sys/class/video4linux/video0/name)" = twin ]
    step v4l2loopback $? "$(cat /sys/class/video4linux/video0/name)"
    echo 7 >/sys/class/video4linux/video0/max_openers
    [ "$(cat /sys/class/video4linux/video0/max_openers)" = 7 ]
    step v4l2loopback-attribute $?
fi

# The kernel tests each algorithm that it knows, when it is registered or first used.
if is_loaded kuznyechik_generic; then
    awk '/^module/ { ours = $3 ~ /gost|kuznyechik|magma|streebog/ }
        /^selftest/ && ours { if ($3 == "passed") good++; else bad++ }
        END { print good + 0, "passed,", bad + 0, "not"; exit !(good && !bad) }' /proc/crypto >/tmp/crypto
    step gost-crypto $? "$(cat /tmp/crypto)"
fi
