# Which programs of Debian's packages dom0 runs, and which libraries they need; sourced by
# the scripts that fetch the packages and make the initramfs, not run. After release.sh.

# Paths in the unpacked packages.
dom0_programs="
usr/lib/xen-$xen_version/bin/xl
usr/lib/xen-$xen_version/bin/xen-livepatch
usr/lib/xen-$xen_version/bin/xen-hptool
usr/lib/xen-$xen_version/bin/xenpm
usr/lib/xen-$xen_version/bin/xen-init-dom0
usr/lib/xen-$xen_version/bin/xenstored
usr/lib/xen-$xen_version/bin/xenconsoled
usr/lib/xen-$xen_version/bin/libxl-save-helper
usr/bin/xenstore
usr/sbin/xenhypfs
${xen_merged}bin/kmod
${xen_merged}sbin/ethtool
"

library_folders="
usr/lib/xen-$xen_version/lib/x86_64-linux-gnu
lib/x86_64-linux-gnu
usr/lib/x86_64-linux-gnu
${xen_merged}lib64
"

# find_library TREE NAME: its path in the unpacked packages, or nothing.
find_library() {
    for folder in $library_folders; do
        [ ! -e "$1/$folder/$2" ] || {
            echo "$folder/$2"
            return
        }
    done
}

# libraries TREE: what the programs need, directly and through other libraries: a path of
# each in the packages, or "missing NAME". libgcc_s.so.1 is in nobody's dynamic section: the
# C library loads it when a thread of xl ends, and xl is aborted without it.
libraries() {
    todo=libgcc_s.so.1 known=' '
    for program in $dom0_programs; do
        todo="$todo $(needed "$1/$program")"
    done
    while [ -n "${todo# }" ]; do
        name=${todo%% *}
        case $todo in *' '*) todo=${todo#* } ;; *) todo= ;; esac
        case "$known" in *" $name "*) continue ;; esac
        [ -n "$name" ] || continue
        known="$known$name "
        path=$(find_library "$1" "$name")
        if [ -z "$path" ]; then
            echo "missing $name"
        else
            echo "$path"
            todo="$todo $(needed "$1/$path")"
        fi
    done
}

# The names in a program's dynamic section, and its loader's, in one line.
needed() {
    {
        readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'
        readelf -l "$1" | sed -n 's|.*program interpreter: .*/\(.*\)\]|\1|p'
    } | tr '\n' ' '
}

missing_libraries() {
    libraries "$1" | sed -n 's/^missing //p'
}
