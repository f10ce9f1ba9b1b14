# SPDX-License-Identifier: MIT OR Apache-2.0
# What happens to the card and to dom0 in the middle of a guest's transfers: the machine is not put to
# sleep; the card's driver is unbound, the card removed, and given to pciback, which detaches it; and the machine
# goes down with the driver in Xen.
. /twin.sh

load_modules
attach_eth0
card=$(readlink -f /sys/class/net/eth0/device)

has_carrier() {
    grep -q 1 /sys/class/net/eth0/carrier
}

# taken STEP WORDS COMMAND...: it takes the interface away, which was detached first, and says so.
taken() {
    what=$1 words=$2
    shift 2
    dmesg -c >/dev/null
    try 60 "$what/gone" "$@"
    [ ! -e /sys/class/net/eth0 ] && is interface - && dmesg | grep -q "twin: $words: eth0 is detached"
    step "$what/detached" $? "$(dmesg | sed -n 's/.*twin: //p' | tail -n 1)"
}

# back STEP COMMAND...: the interface is there again, and goes to Xen once more.
back() {
    what=$1
    shift
    try 60 "$what/back" "$@"
    await 30 "$what/interface" test -e /sys/class/net/eth0
    try 60 "$what/up" ip link set eth0 up
    await 60 "$what/carrier" has_carrier
    tell 30 "$what/attach" attach eth0
    await_traffic "$what/moving"
    never_aborted "$what/alive"
}

if start_guest 1 forever; then
    connected 1
    await_traffic guest1/moving

    dmesg -c >/dev/null
    ! timeout "$(limit 60)" sh -c 'echo freeze >/sys/power/state' && is interface eth0
    step sleep/refused $? "interface $(status_of interface)"
    dmesg | grep -q 'twin: eth0 is driven inside Xen: detach it before the machine sleeps'
    step sleep/named $? "$(dmesg | sed -n 's/.*twin: //p' | tail -n 1)"
    await_traffic sleep/moving

    taken unbind "the card's driver is unbound" sh -c "echo ${card##*/} >/sys/bus/pci/drivers/e1000/unbind"
    back unbind sh -c "echo ${card##*/} >/sys/bus/pci/drivers/e1000/bind"
    taken remove "the card's driver is unbound" sh -c "echo 1 >$card/remove"
    back remove sh -c 'echo 1 >/sys/bus/pci/rescan'
    # As `xl pci-assignable-add` does for a guest that is to have the card itself; that wants an IOMMU.
    modprobe xen-pciback
    taken passed "the card's driver is unbound" sh -c "cd /sys/bus/pci/drivers
        echo ${card##*/} >e1000/unbind && echo ${card##*/} >pciback/new_slot && echo ${card##*/} >pciback/bind"
    back passed sh -c "cd /sys/bus/pci/drivers
        echo ${card##*/} >pciback/unbind && echo ${card##*/} >pciback/remove_slot && echo ${card##*/} >e1000/bind"
    no_failure
fi

# dom0 ends here: Xen's console has the rest.
echo "@console twin: the kernel goes down: eth0 is detached"
