# SPDX-License-Identifier: MIT OR Apache-2.0
# A guest is moved in its transfers, which go on: one with two processors loses one and has it again, goes to another pool of
# processors, and to a checkpoint (xl save -c). One with page tables of the hardware's goes to another domain of this host (xl migrate;
# Debian's Xen has no shadow page tables, by which it would follow what another one writes), once more with the stage
# `bridge`. Last, a guest whose address is another's waits until that is gone.
. /twin.sh

load_modules
attach_eth0

# The name by which xenconsoled knows the one that comes; what it says is guest 1's.
ln -s guest-guest1.log /var/log/xen/console/guest-guest1--incoming.log

served() {
    grep -q "^vif$(xl domid "guest$1")\." $twin/status
}

# goes_on STEP: Xen serves guest 1, whichever domain it is, and its transfers go on.
goes_on() {
    await 120 "$1/served" served 1
    await_traffic "$1/moving"
    await_transfers "$1/transfers"
    never_aborted "$1/alive"
}

migrated() {
    old=$(xl domid guest1)
    try 600 "$1/migrate" xl migrate -s '' guest1 'exec xl migrate-receive'
    [ "$(xl domid guest1)" != "$old" ] && ! xl list "$old" >/dev/null 2>&1
    step "$1/another" $? "domain $old, now $(xl domid guest1)"
    goes_on "$1"
}

guest_vcpus=2 guest_cpus=all
if start_guest 1 forever; then
    connected 1
    pinged 1
    await_traffic guest1/moving
    try 60 vcpus/one xl vcpu-set guest1 1
    goes_on vcpus-one
    try 60 vcpus/two xl vcpu-set guest1 2
    goes_on vcpus-two

    last=$(($(xl info | sed -n 's/^nr_cpus *: *//p') - 1))
    if [ $last -gt 0 ]; then
        try 60 pool/taken xl cpupool-cpu-remove Pool-0 $last
        printf 'name = "other"\ncpus = ["%s"]\n' $last >/tmp/pool.cfg
        try 60 pool/made xl cpupool-create /tmp/pool.cfg
        try 60 pool/there xl cpupool-migrate guest1 other
        goes_on pool
        try 60 pool/back xl cpupool-migrate guest1 Pool-0
        try 60 pool/gone xl cpupool-destroy other
        try 60 pool/given xl cpupool-cpu-add Pool-0 $last
    fi

    try 300 checkpoint/save xl save -c guest1 /tmp/guest1.save
    rm -f /tmp/guest1.save
    goes_on checkpoint
    no_failure
    destroyed 1
fi

guest_type=pvh
if start_guest 1 forever; then
    connected 1
    pinged 1
    await_traffic migrated/moving-before
    migrated migrated
    echo 1 >/sys/module/twin_dom0/parameters/bridge
    tell 30 bridge/restart restart 1
    migrated bridge
    no_failure

    guest_type=pv guest_vcpus=1 guest_mac=1
    start_guest 2 rest
    await 120 address/said sh -c "xenstore-read /local/domain/0/error/backend/vif/$(xl domid guest2)/0/error | grep -q \"must not be another guest's\""
    ! served 2
    step address/waits $? "$(grep -c '^vif' $twin/status) served"
    destroyed 1
    await 60 address/served served 2
    destroyed 2
fi
# One of whose pages dom0 has mapped would be there without a name.
await 60 gone/whole sh -c "! xl list | grep -q null"
detach_eth0
native native-after/
unload_modules
