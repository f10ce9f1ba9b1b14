# SPDX-License-Identifier: MIT OR Apache-2.0
# Loads the modules that $modules names, in this order, with what /parameters has for each, and
# unloads them.

# Some drivers do not stay loaded without a device; modules that only test say "again".
load() {
    loaded=
    declined=
    for module in $modules; do
        # shellcheck disable=SC2046
        if output=$(insmod "/modules/$module.ko" $(cat /parameters/"$module" 2>/dev/null) 2>&1); then
            loaded="$module $loaded"
        else
            case $output in
                *"No such device"* | *"temporarily unavailable"*) declined="$declined $module" ;;
                # Permanent; see unload.
                *"File exists"*) ;;
                *) step "$1-$module" 1 "$output" ;;
            esac
        fi
    done
    step "$1" 0 "$(echo "$loaded" | wc -w) modules; without a device:$declined"
}

# In reverse order; then again for those that were still in use.
unload() {
    for pass in 1 2 3; do
        left=
        for module in $loaded; do
            rmmod "$module" 2>/dev/null || left="$left $module"
        done
        loaded=$left
        [ -z "$left" ] && break
        sleep 1
    done
    # A module without exit is permanent (phylink), and what it uses stays with it.
    stuck=$(for module in $left; do
        awk -v name="$module" '$1 == name && $3 == 0 && !/permanent/ { print $1 }' /proc/modules
    done)
    [ -z "$stuck" ]
    step "$1" $? "stuck: $stuck; permanent, or used by those:$left"
}
