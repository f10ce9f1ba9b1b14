#!/bin/sh
# Fetches the headers that match the stock kernel, or that of a series, without installing
# them.
#
#   scripts/headers.sh [SERIES[-FLAVOUR][@SUITE]]
#
# Needs target/stock (scripts/stock.sh), or the directory of scripts/kernel.sh. Leaves,
# below that directory:
#   headers          -> the prepared header tree: make -C target/stock/headers M=...
#   headers-tree/    the unpacked packages: linux-headers-X, its -common and the linux-*
#                    packages it depends on (kbuild, compiler), but not the kernel
#   headers-VERSION  package and version that this is
#
# The packages are found by dependencies: X is the stock kernel's, the others are those
# that linux-headers-X depends on. One thing is changed in their contents: the paths in the
# tree's Makefile are absolute (/usr/src/...) and are made to point here. And the
# programs of kbuild want the C library of the kernel's release: on a system with an older one
# that is fetched, too (headers-tree/libc), and they run with it. Once
# headers-VERSION names the stock kernel's version, apt is not called again.
# TWIN_DEBIAN_MIRROR as for stock.sh.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
kernel=${1-}
directory=target/stock${kernel:+-$kernel}
mkdir -p "$root/$directory"
# The real path: it may be a link, and make needs one name for it.
stock=$(CDPATH='' cd -P -- "$root/$directory" && pwd -P)
apt=$stock/headers-apt

die() {
    printf 'headers.sh: %s\n' "$*" >&2
    exit 1
}

. "$root/scripts/apt.sh"

# linux-image-X VERSION, the kernel.
[ -s "$stock/VERSION" ] || die "no $directory/VERSION: run make stock${kernel:+ KERNEL=$kernel} first"
read -r image version <"$stock/VERSION"
headers=linux-headers-${image#linux-image-}

complete() {
    [ -e "$stock/headers/Makefile" ] && [ -s "$stock/headers-VERSION" ] &&
        [ "$(cat "$stock/headers-VERSION")" = "$headers $version" ] &&
        grep -qF "include $stock/headers-tree/" "$stock/headers/Makefile" &&
        ! grep -q '^KBUILD_OUTPUT=/usr/src/' "$stock/headers/Makefile" &&
        run_here "$stock/headers-tree"
}

# The programs of kbuild in a tree that are no scripts (with_its_libraries).
programs() {
    find "$1"/usr/lib/linux-kbuild-* -type f -perm -u+x ! -name '*.elf' -exec sh -c '
        for file; do
            [ "$(head -c 4 "$file" | tail -c 3)" != ELF ] || printf "%s\n" "$file"
        done' sh {} +
}

# Whether this system's libraries do for them.
run_here() {
    ! programs "$1" | xargs ldd 2>&1 | grep -q 'not found'
}

# The packages that $headers of $version needs of the kernel's own, by apt with
# options "$@": every dependency named linux-* but the image and its scripts, with versions
# where they must agree.
wanted() {
    apt-cache "$@" show "$headers=$version" 2>/dev/null |
        sed -n 's/^Depends: //p' | head -n 1 | tr ',' '\n' |
        sed '/^ *linux-image-/d; /^ *linux-base/d' |
        sed -n 's/^ *\(linux-[^ ]*\) *(= \([^)]*\)).*/\1=\2/p; t
                s/^ *\(linux-[^ (]*\).*/\1/p'
}

download() {
    needed=$(wanted "$@")
    [ -n "$needed" ] || return 1
    echo "fetching $headers $version and what it depends on ..."
    # On a terminal apt shows how far it is.
    if [ -t 1 ]; then
        # shellcheck disable=SC2086
        apt-get "$@" download "$headers=$version" $needed 2>apt.log
    else
        # shellcheck disable=SC2086
        apt-get "$@" -q download "$headers=$version" $needed >apt.log 2>&1
    fi
}

fetch() {
    plain="-oAPT::Sandbox::User=root -oAcquire::Retries=3"
    # shellcheck disable=SC2086
    download $plain && return
    echo "asking apt for the headers of $image $version ..."
    for suite in $(suites_of "${kernel:-6.1}"); do
        options="$(private_options) $(suite_options deb "$suite")"
        # shellcheck disable=SC2086
        apt-get $options -q update >apt.log 2>&1 || true
        # shellcheck disable=SC2086
        ! download $options || return 0
    done
    tail -n 5 apt.log >&2
    die "cannot fetch $headers $version (above: apt's last words); the mirror may hold a newer kernel: remove $directory and run make stock${kernel:+ KERNEL=$kernel} again"
}

# The packages of the libraries that kbuild's programs want, by the release that they were built in.
# An older release's do with this system's but for OpenSSL.
libraries_of() {
    case $1 in
        bullseye) echo libssl1.1 ;;
        bookworm) echo libc6 libelf1 zlib1g libzstd1 ;;
        *) echo libc6 libelf1t64 zlib1g libzstd1 ;;
    esac
}

# with_its_libraries TREE: the programs there become scripts that run them with the libraries of
# their release, which are fetched by apt's options of the suite. Backports have none of their own:
# theirs are the release's.
with_its_libraries() {
    echo "fetching the libraries of kbuild's programs ..."
    mkdir libraries
    release=${suite:?}
    release=${release%-backports}
    [ "$release" = "$suite" ] || {
        options="$(private_options) $(suite_options deb "$release")"
        # shellcheck disable=SC2086
        apt-get $options -q update >apt.log 2>&1 || true
    }
    # shellcheck disable=SC2046,SC2086
    (cd libraries && apt-get ${options:?} -q download $(libraries_of "$release") >../apt.log 2>&1) || {
        tail -n 5 apt.log >&2
        die "kbuild's programs of $headers do not run on this system, and their libraries cannot be fetched (above)"
    }
    for deb in libraries/*.deb; do
        dpkg-deb -x "$deb" "$1/libc"
    done
    folder=$stock/headers-tree/libc/usr
    loader=/lib64
    [ ! -e "$1/libc/usr/lib64" ] || loader=$folder/lib64
    programs "$1" | while read -r program; do
        mv "$program" "$program.elf"
        cat >"$program" <<RUN
#!/bin/sh
exec $loader/ld-linux-x86-64.so.2 --library-path $folder/lib/x86_64-linux-gnu --argv0 "\$0" "\$0.elf" "\$@"
RUN
        chmod +x "$program"
    done
}

# A later build of linux-kbuild than the kernel's would do, but none is asked for.
unpack() {
    mkdir tree
    for deb in ./*.deb; do
        dpkg-deb -x "$deb" tree
    done
    makefile=tree/usr/src/$headers/Makefile
    [ -e "$makefile" ] || die "$headers has no Makefile"
    sed -i -E "s#^(include |KBUILD_OUTPUT=).*/usr/src/#\\1$stock/headers-tree/usr/src/#" "$makefile"
    run_here tree || with_its_libraries tree
    rm -rf "$stock/headers-tree" "$apt"
    mv tree "$stock/headers-tree"
    ln -sfn "headers-tree/usr/src/$headers" "$stock/headers"
    # Last: when the version is there, all the rest is complete.
    echo "$headers $version" >headers-VERSION
    mv headers-VERSION "$stock/headers-VERSION"
}

main() {
    if complete; then
        echo "stock headers: $(cat "$stock/headers-VERSION") ($directory/headers)"
        return
    fi
    need_tools apt-get apt-cache dpkg-deb sed ldd
    work_below "$stock"
    fetch
    unpack
    complete || die "the packages were fetched, but $directory/headers is not complete; remove it and try again"
    echo "stock headers: $(cat "$stock/headers-VERSION") ($directory/headers)"
}

main "$@"
