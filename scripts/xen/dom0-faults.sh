# SPDX-License-Identifier: MIT OR Apache-2.0
# Every end that driver code in Xen can have: hand-written code in a payload for tests
# (runtime/tests/xen-faults/driver.S, whose functions have these numbers), a named abort,
# a restart. Afterwards a guest's traffic goes through the same payload. Last, Xen does not give the driver back while the
# interface is set down; and has given it back before.
. /twin.sh

load_modules
attach_eth0
try 20 xen_faults insmod /xen_faults.ko
run=/sys/module/xen_faults/parameters/run

# returns STEP NUMBER [ADDRESS]: the function comes back.
returns() {
    echo "$2 ${3-0}" >$run
    [ "$(cat $run)" = 0 ] && is state 1
    step "$1" $? "result $(cat $run), state $(status_of state)"
}

# aborts STEP NUMBER FUNCTION KIND REASON [ADDRESS]: it does not, and Xen says where.
aborts() {
    xl dmesg -c >/dev/null
    echo "$2 ${6-0}" >$run
    is state 2 && is abort-kind "$4" && is abort-reason "$5"
    step "$1/aborted" $? "kind $(status_of abort-kind), reason $(status_of abort-reason), address $(status_of abort-address)"
    xl dmesg -c >/tmp/dmesg
    grep -q "twin: aborted: .* entered at twin:xen_test_$3+0/" /tmp/dmesg
    step "$1/named" $? "$(sed -n 's/.*twin: aborted: //p' /tmp/dmesg)"
    tell 30 "$1/restart" restart 1
}

# Kinds: 5 a stack, 6 a fault, 12 the time. Reasons: the processor's exceptions.
returns entry 0
aborts divide 1 divide 6 0
aborts invalid-instruction 2 invalid 6 6
aborts protection 3 protection 6 13
aborts fetch 4 fetch 6 14 123456789000
aborts control-stack-overflow 5 recurse 5 8
# Room for the exception's frame, and for no more or little more.
aborts no-room-for-a-handler 8 edge 5 8 40
aborts little-room-for-a-handler 8 edge 5 8 100

# Pointers, cut as the scheme cuts them. Processor 0's block is at ffff837cc0010000, and dom0
# would have its data stack at ffff8800c0010000 (platform/xen/layout.h).
returns data-stack 6 ffff8800c001a000
aborts data-stack-overflow 6 touch 5 14 ffff8800c0018ff8
aborts above-data-stack 6 touch 6 14 ffff8800c001d000
aborts control-stack 6 touch 6 14 ffff837cc001a000
aborts context 6 touch 6 14 ffff837cc001e000
aborts xen-stack 6 touch 6 14 ffff837cc001fff8
aborts null 6 touch 6 14 0
aborts xen-memory 6 touch 6 14 ffff830000001000
aborts dom0-page-table 6 touch 6 14 table

# Stopped by another processor, if there is one. Processor 0 waits for all others once a second, when
# it sets their clocks, and no timer comes by there until they have answered: it is the second loop
# of which that must not be the end (platform/xen/await.c).
if [ "$(xl info | sed -n 's/^nr_cpus *: //p')" -gt 1 ]; then
    aborts endless-loop 7 loop 12 0
    returns entry-elsewhere 0 '0 on 1'
    [ "$(status_of entries-by-processor | cut -d ' ' -f 2)" -gt 0 ]
    step entry-elsewhere/there $? "entries $(status_of entries-by-processor)"
    aborts endless-loop-elsewhere 7 loop 12 0 '0 on 1'
fi

start_guest 1
finish_guest 1 300
is state 1
step alive $? "state $(status_of state)"

# dom0 would free the rings behind that: it waits, with the card stopped, for as long as Xen refuses. The status would, too.
flag_up() {
    [ $(($(cat /sys/class/net/eth0/flags) & 1)) = 1 ]
}
dmesg -c >/dev/null
echo lock >$run
[ "$(cat $run)" = 0 ]
step kept/locked $? "result $(cat $run)"
ip link set eth0 down &
closer=$!
await 120 kept/waited kernel_said 'twin: Xen does not give eth0 back: -11'
sleep 3
flag_up && ! kernel_said 'eth0 was closed'
step kept/open $? "$(dmesg | sed -n 's/.*twin: //p' | tail -n 1)"
[ $(($(command_of) & 4)) = 0 ]
step kept/stopped $? "command $(command_of)"
echo unlock >$run
wait $closer
! flag_up && is interface - && kernel_said 'twin: eth0 was closed, and is detached'
step kept/detached $? "$(dmesg | sed -n 's/.*twin: //p' | tail -n 1)"
! dmesg | grep -E 'WARNING: |BUG: |Oops|unable to handle'
step kept/no-oops $? ""
native kept/
# Xen has given it back already: that is not waited for. Without the check of what the card gets, since its pages of registers are
# Xen's to write else.
echo 0 >/sys/module/twin_dom0/parameters/dma
tell 30 absent/attach attach eth0
dmesg -c >/dev/null
echo detach >$run
[ "$(cat $run)" = 0 ] && is interface eth0
step absent/taken-back $? "result $(cat $run), interface $(status_of interface)"
try 30 absent/down ip link set eth0 down
is interface - && kernel_said 'twin: eth0 was closed, and is detached'
step absent/detached $? "$(dmesg | sed -n 's/.*twin: //p' | tail -n 1)"
native absent/
echo 1 >/sys/module/twin_dom0/parameters/dma
tell 30 kept/attach attach eth0
rmmod xen_faults
detach_eth0
unload_modules
