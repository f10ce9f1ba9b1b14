# SPDX-License-Identifier: MIT OR Apache-2.0
# dom0's modules where nothing of ours is inside Xen: an attachment is refused, and dom0 goes on
# with its own driver.
. /twin.sh

# refused REASON CONTROL WORD: writing fails, the kernel's log has the reason.
refused() {
    dmesg -c >/dev/null
    if sh -c "echo '$3' >$twin/$2" 2>/dev/null; then
        return 1
    fi
    dmesg | grep "twin: .*$1"
}

native before/
load_modules
refused 'payload' attach eth0
step attach-refused $? "without the payload"
refused 'lo is not' attach lo
step other-interface-refused $? lo
refused 'no interface' attach eth7
step no-interface-refused $? eth7
! sh -c "echo 'registers 10' >$twin/poison" 2>/dev/null
step poison-refused $? "nothing is attached"
is interface -
step nothing-attached $? "$(cat $twin/status | tr '\n' ' ')"
native after/
unload_modules
