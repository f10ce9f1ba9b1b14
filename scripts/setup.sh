#!/bin/sh
# Makes sure that everything needed to build and test is installed.
#
#   scripts/setup.sh [COMMAND:PACKAGE...]
#
# As root, missing Debian packages are installed; otherwise the one line that
# installs them is printed. The arguments name further packages. The script looks for
# Rust but never installs it: its source is the owner's choice.
set -eu

# command:package, one a line; the command shows that the package is there.
needs='
as:binutils
objdump:binutils
gcc:gcc
gcc-12:gcc-12
clang-14:clang-14
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
'"$*"
# file:package, where no command shows it. The stock kernel's build tools (kbuild)
# are linked with libelf.
files='
/usr/include/stdio.h:libc6-dev
/etc/ssl/certs/ca-certificates.crt:ca-certificates
/usr/lib/x86_64-linux-gnu/libelf.so.1:libelf1
/usr/share/doc/busybox-static/copyright:busybox-static
/usr/share/doc/kmod/copyright:kmod
/usr/share/OVMF/OVMF_CODE_4M.fd:ovmf
'

missing() {
    for need in $needs; do
        command -v "${need%%:*}" >/dev/null || echo "${need#*:}"
    done
    for need in $files; do
        [ -e "${need%%:*}" ] || echo "${need#*:}"
    done
}

install_packages() {
    command -v apt-get >/dev/null || {
        echo "setup.sh: please install these or their counterparts on this system: $*" >&2
        exit 1
    }
    if [ "$(id -u)" -ne 0 ]; then
        echo "setup.sh: packages are missing; paste this line:" >&2
        echo "  sudo apt-get update && sudo apt-get install -y --no-install-recommends $*" >&2
        exit 1
    fi
    echo "setup.sh: installing $*" >&2
    log=$(mktemp)
    trap 'rm -f "$log"' EXIT
    # Lists may be absent (container images) or old: install, else update first.
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

check_cargo() {
    command -v cargo >/dev/null || {
        echo 'setup.sh: cargo is not on PATH; install Rust from https://rustup.rs (1.88 or later),' >&2
        echo '  then: . "$HOME/.cargo/env"' >&2
        exit 1
    }
    for part in fmt clippy; do
        cargo "$part" --version >/dev/null 2>&1 || {
            echo "setup.sh: cargo $part is missing; paste: rustup component add rustfmt clippy" >&2
            exit 1
        }
    done
}

packages=$(missing | sort -u | tr '\n' ' ')
# shellcheck disable=SC2086
[ -z "$packages" ] || install_packages $packages
[ -z "$(missing)" ] || {
    echo "setup.sh: still missing: $(missing | sort -u | tr '\n' ' ')" >&2
    exit 1
}
check_cargo
