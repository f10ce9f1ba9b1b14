#!/bin/sh
# Makes sure that everything needed to build and test is installed.
#
#   scripts/setup.sh [COMMAND:PACKAGE[:optional]...]
#   scripts/setup.sh left-out
#
# What is missing and cannot be got is named first, all of it in one message with what to
# do, and nothing is installed then. Otherwise, as root, missing Debian packages are
# installed; if not root, the one line that installs them is printed. The arguments name
# further packages. A package that is optional and that apt does not have is left out:
# `left-out` prints which tests are, a line each. The script looks for Rust but never
# installs it: its source is the owner's choice.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
. "$root/scripts/release.sh"

# command:package, one a line; the command shows that the package is there. gcc-12 is what
# the testbed's kernel is made with, on every system. Which gcc and clang the tests of
# `twin cc` use is the release's. From 6.12 on headers come with the kernel's types, and
# kbuild makes those of modules by pahole.
needs="
as:binutils
objdump:binutils
gcc:gcc
g++:g++
gcc-12:gcc-12
$release_gcc:$release_gcc
${release_kernel:+pahole:pahole}
$release_clang:$release_clang:optional
gdb:gdb
make:make
apt-get:apt
dpkg-deb:dpkg
dpkg-architecture:dpkg-dev
xz:xz-utils
zstd:zstd
openssl:openssl
qemu-system-x86_64:qemu-system-x86
ethtool:ethtool
"
# file:package, where no command shows it. The stock kernel's build tools (kbuild)
# are linked with libelf.
files='
/usr/include/stdio.h:libc6-dev
/etc/ssl/certs/ca-certificates.crt:ca-certificates
/usr/share/keyrings/debian-archive-keyring.gpg:debian-archive-keyring
/usr/lib/x86_64-linux-gnu/libelf.so.1:libelf1
/usr/share/doc/busybox-static/copyright:busybox-static
/usr/share/doc/kmod/copyright:kmod
/usr/share/OVMF/OVMF_CODE_4M.secboot.fd:ovmf
'

# ---- What is missing -----------------------------------------------------------

# missing required|optional: the packages, a line each.
missing() {
    for need in $needs; do
        command=${need%%:*} package=${need#*:}
        kind=required
        case $package in *:optional) kind=optional ;; esac
        [ "$kind" != "$1" ] || command -v "$command" >/dev/null || echo "${package%:optional}"
    done | sort -u
    [ "$1" = required ] || return 0
    for need in $files; do
        [ -e "${need%%:*}" ] || echo "${need#*:}"
    done | sort -u
}

# Whether apt has lists of packages at all: images of containers come without.
has_lists() {
    for list in /var/lib/apt/lists/*Packages*; do
        [ ! -e "$list" ] || return 0
    done
    return 1
}

# Whether apt could install these together, as far as its lists say. It says so to anybody.
can_install() {
    [ $# -eq 0 ] || apt-get install -s -qq --no-install-recommends "$@" >/dev/null 2>&1
}

# Those of these packages that apt cannot install.
unavailable() {
    ! can_install "$@" || return 0
    for package; do
        can_install "$package" || echo "$package"
    done
}

# What is wrong with Rust, a line each, with what to do.
rust_problems() {
    least=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$root/Cargo.toml")
    # shellcheck disable=SC2016
    rustup='install Rust from https://rustup.rs, then: . "$HOME/.cargo/env"'
    command -v cargo >/dev/null || {
        echo "cargo ($least or later) is not on PATH; $rustup"
        return
    }
    version=$(cargo --version | sed 's/^cargo \([0-9.]*\).*/\1/')
    [ "$(printf '%s\n' "$least" "$version" | sort -V | head -n 1)" = "$least" ] || {
        echo "cargo is $version, and $least or later is needed; $rustup"
        return
    }
    for part in fmt clippy; do
        cargo "$part" --version >/dev/null 2>&1 ||
            echo "cargo $part is missing; paste: rustup component add rustfmt clippy"
    done
}

# ---- What cannot be got --------------------------------------------------------

# The tests that are not made without a package.
without() {
    case $1 in
    gcc-* | clang-*) echo "the tests of \`twin cc\` with $1" ;;
    csmith | libcsmith-dev) echo "random programs through \`twin cc\` (scripts/random.sh)" ;;
    *) echo "what needs $1" ;;
    esac
}

left_out() {
    for package in $(missing optional); do
        echo "left out: $(without "$package"): that package is not installed, and apt has none by its name"
    done
}

# Ends the script if something cannot be got; in one message, before anything is installed.
# $1: packages that apt does not have.
refuse_what_cannot_be_got() {
    problems=$(rust_problems)
    for package in $1; do
        problems="${problems:+$problems
}package $package: apt on this system has none, or cannot install it"
    done
    [ -n "$problems" ] || return 0
    {
        echo "setup.sh: missing, and it cannot be got here; nothing was installed:"
        printf '%s\n' "$problems" | sed 's/^/  /'
        [ -z "$1" ] || {
            echo "Packages have Debian 12's and 13's names. On these, look at /etc/apt/sources.list (main, and"
            echo "the release's updates) and run apt-get update; elsewhere install their counterparts."
        }
    } >&2
    exit 1
}

# ---- Installing ----------------------------------------------------------------

install_packages() {
    if [ "$(id -u)" -ne 0 ]; then
        echo "setup.sh: packages are missing; paste this line:" >&2
        echo "  sudo apt-get update && sudo apt-get install -y --no-install-recommends $*" >&2
        exit 1
    fi
    echo "setup.sh: installing $*" >&2
    # Lists may be old: install, else update first.
    apt_install "$@" || {
        apt-get update -qq 2>"$log" || true
        apt_install "$@" || {
            tail -n 5 "$log" >&2
            echo "setup.sh: apt-get (above) could not install them; check the network and /etc/apt/sources.list" >&2
            exit 1
        }
    }
}

# Installs packages; on a terminal it shows how far it is.
apt_install() {
    DEBIAN_FRONTEND=noninteractive
    export DEBIAN_FRONTEND
    if [ ! -t 2 ]; then
        apt-get install -qq -y --no-install-recommends "$@" >/dev/null 2>"$log"
        return
    fi
    {
        apt-get install -q -y --no-install-recommends "$@" 2>"$log" || echo Failed
    } | progress
}

# One line that changes, of what apt-get prints: "140 newly installed", then for
# each package "Get:", "Unpacking" and "Setting up". Fails if it ends in "Failed".
progress() {
    fetched=0 unpacked=0 set_up=0 all='?'
    while read -r first second third rest; do
        case $first in
        [0-9]*) [ "$second" != upgraded, ] || all=$third ;;
        Get:*) fetched=$((fetched + 1)) ;;
        Unpacking) unpacked=$((unpacked + 1)) ;;
        Setting) set_up=$((set_up + 1)) ;;
        Failed)
            [ "$all" = '?' ] || echo >&2
            return 1
            ;;
        *) continue ;;
        esac
        printf '\r  of %s packages: %s fetched, %s unpacked, %s set up ' \
            "$all" "$fetched" "$unpacked" "$set_up" >&2
    done
    echo >&2
}

# ---- The recipe ----------------------------------------------------------------

if [ "${1-}" = left-out ]; then
    left_out
    exit
fi
needs="$needs $*"
required=$(missing required)
optional=$(missing optional)
command -v apt-get >/dev/null || {
    # shellcheck disable=SC2086
    refuse_what_cannot_be_got "$required"
    [ -z "$optional" ] || left_out >&2
    exit
}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# shellcheck disable=SC2086
if [ "$(id -u)" -eq 0 ] && ! can_install $required $optional; then
    apt-get update -qq 2>"$log" || true
fi
lacking= lacking_optional=
if has_lists; then
    # shellcheck disable=SC2086
    lacking=$(unavailable $required)
    # shellcheck disable=SC2086
    lacking_optional=$(unavailable $optional)
fi
refuse_what_cannot_be_got "$lacking"
packages=$required
for package in $optional; do
    case " $(echo $lacking_optional) " in
    *" $package "*) echo "setup.sh: apt has no $package: left out are $(without "$package")" >&2 ;;
    *) packages="$packages $package" ;;
    esac
done
# Sorted, in one line.
# shellcheck disable=SC2086
packages=$(printf '%s\n' $packages | sort -u | tr '\n' ' ')
packages=${packages% }
# shellcheck disable=SC2086
[ -z "$packages" ] || install_packages $packages
[ -z "$(missing required)" ] || {
    echo "setup.sh: still missing: $(missing required | tr '\n' ' ')" >&2
    exit 1
}
