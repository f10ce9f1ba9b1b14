#!/bin/sh
# Makes a Debian package of the programs twin and twin-run in DIR, which are linked with no
# shared library: with the files that `twin run` needs, manual pages, completions, guides.
#
#   scripts/deb.sh DIR        leaves target/deb/twin_VERSION_ARCH.deb
#   scripts/deb.sh DIR test   also installs it into an empty root, uses it, removes it
#
# The same source and toolchain give the same bytes; times in it are those of the
# last commit.
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
programs=$root/${1-}
twin=$programs/twin
simulator=$programs/twin-run
out=$root/target/deb
tree=$out/tree
name=twin

die() {
    printf 'deb.sh: %s\n' "$*" >&2
    exit 1
}

for program in "$twin" "$simulator"; do
    [ -x "$program" ] || die "no ${program#"$root"/}: run make deb"
done
[ -e "$root/target/support/hot.o" ] || die "no target/support: run make deb"
for tool in dpkg-deb dpkg-query dpkg-architecture readelf strip gzip; do
    command -v "$tool" >/dev/null || die "no $tool: run scripts/setup.sh"
done
version=$("$twin" -V | sed 's/^twin //')
arch=$(dpkg-architecture -qDEB_HOST_ARCH)
stock=$root/target/stock/e1000.ko
deb=$out/${name}_${version}_$arch.deb
SOURCE_DATE_EPOCH=$(git -C "$root" log -1 --format=%ct 2>/dev/null || echo 0)
export SOURCE_DATE_EPOCH

# $1: directory below the tree; the rest: files to copy there.
put() {
    to=$tree/$1
    shift
    mkdir -p "$to"
    install -m 644 "$@" "$to"
}

copyright() {
    cat <<'END'
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: twin

Files: *
Copyright: the twin developers
License: Expat or Apache-2.0

Files: runtime/* crates/e1000-sim/kernel/*
Copyright: the twin developers
License: GPL-2.0-only or Expat

Files: usr/bin/*
Copyright: the twin developers; the GNU C library's part of them: Free Software Foundation
License: (Expat or Apache-2.0) and LGPL-2.1+
Comment: the source of the C library is the package that Built-Using names

License: Expat
END
    sed 's/^$/./; s/^/ /' "$root/LICENSE-MIT"
    echo
    echo 'License: Apache-2.0'
    echo ' The text is in /usr/share/common-licenses/Apache-2.0.'
    echo
    echo 'License: GPL-2.0-only'
    echo ' The text is in /usr/share/common-licenses/GPL-2.'
    echo
    echo 'License: LGPL-2.1+'
    echo ' The text is in /usr/share/common-licenses/LGPL-2.1.'
}

files() {
    mkdir -p "$tree/usr/bin"
    for program in "$twin" "$simulator"; do
        strip -o "$tree/usr/bin/${program##*/}" "$program"
    done
    chmod 755 "$tree"/usr/bin/*
    put usr/lib/twin "$root/target/support/kernel.o" "$root/target/support/hot.o"
    mkdir -p "$tree/usr/share/man"
    "$twin" man "$tree/usr/share/man/man1"
    gzip -9n "$tree"/usr/share/man/man1/*.1
    mkdir -p "$tree/usr/share/bash-completion/completions" \
        "$tree/usr/share/zsh/vendor-completions" "$tree/usr/share/fish/vendor_completions.d"
    "$twin" completions bash >"$tree/usr/share/bash-completion/completions/twin"
    "$twin" completions zsh >"$tree/usr/share/zsh/vendor-completions/_twin"
    "$twin" completions fish >"$tree/usr/share/fish/vendor_completions.d/twin.fish"
    put "usr/share/doc/$name" "$root/README.md" "$root/ARCHITECTURE.md" "$root/CONTRIBUTING.md" \
        "$root/CHANGELOG.md"
    put "usr/share/doc/$name/docs" "$root"/docs/*.md
    put "usr/share/doc/$name/docs/spec" "$root"/docs/spec/*.md
    put "usr/share/doc/$name/docs/proof" "$root"/docs/proof/*.md
    mv "$tree/usr/share/doc/$name/CHANGELOG.md" "$tree/usr/share/doc/$name/changelog"
    gzip -9n "$tree/usr/share/doc/$name/changelog"
    copyright >"$tree/usr/share/doc/$name/copyright"
    find "$tree" -type d -exec chmod 755 {} +
    find "$tree" -type f ! -path '*/bin/*' -exec chmod 644 {} +
}

# A library that a program needs would be one of this release, and bind the package to it.
alone() {
    for program in "$tree"/usr/bin/*; do
        needed=$(readelf -d "$program" | grep -F '(NEEDED)') || continue
        die "${program##*/} needs a shared library: $needed"
    done
}

# The C library that is inside the programs (Debian policy 7.8).
inside() {
    dpkg-query -W -f '${source:Package} (= ${source:Version})' libc6-dev
}

control() {
    mkdir -p "$tree/DEBIAN"
    cat >"$tree/DEBIAN/control" <<END
Package: $name
Version: $version
Architecture: $arch
Maintainer: the twin developers <twin@localhost>
Built-Using: $(inside)
Recommends: binutils
Suggests: gcc, linux-headers-$arch
Installed-Size: $(du -k -s "$tree/usr" | cut -f1)
Section: devel
Priority: optional
Description: rewrites kernel drivers, and proves what they can reach
 twin takes a Linux driver as it is distributed and rewrites its code for a
 hypervisor: accesses to memory go through a software translation, indirect calls
 through a table, and a separate verifier proves from the bytes that are left on
 disk that the driver keeps a contract about memory, control and instructions.
END
    (cd "$tree" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum) >"$tree/DEBIAN/md5sums"
}

build() {
    rm -rf "$tree"
    mkdir -p "$tree"
    files
    alone
    control
    dpkg-deb --root-owner-group -Zxz --build "$tree" "$deb" >/dev/null
    echo "package: ${deb#"$root"/} ($(du -k "$deb" | cut -f1) KiB)"
}

# Installs into an empty root, checks, removes, and checks again.
try() {
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    mkdir -p "$scratch/var/lib/dpkg/updates" "$scratch/var/lib/dpkg/info"
    : >"$scratch/var/lib/dpkg/status"
    in_root() {
        dpkg --root="$scratch" --log=/dev/null --force-not-root --force-script-chrootless "$@" >"$scratch/dpkg.log" 2>&1 || {
            cat "$scratch/dpkg.log" >&2
            die "dpkg $1 failed"
        }
    }
    in_root --install "$deb"
    "$scratch/usr/bin/twin" -V | grep -qx "twin $version" || die "the installed program is not this version"
    "$scratch/usr/bin/twin" explain code-reference >/dev/null || die "the installed program does not run"
    "$scratch/usr/bin/twin" rewrite "$stock" -o "$scratch/e1000.twin.o" ||
        die "the installed program does not rewrite"
    # From another directory: nothing of this source tree may be needed.
    (cd "$scratch" && env -u TWIN_SUPPORT usr/bin/twin run "$stock" --path native,twin --packets 100) \
        >"$scratch/run.txt" || die "the installed program does not run the driver"
    rm "$scratch/e1000.twin.o" "$scratch/run.txt"
    for page in twin twin-rewrite twin-verify twin-explain twin-stats twin-cc twin-run; do
        gzip -t "$scratch/usr/share/man/man1/$page.1.gz" || die "no manual page $page"
    done
    ! command -v bash >/dev/null || bash -n "$scratch/usr/share/bash-completion/completions/twin"
    (cd "$scratch" && md5sum --quiet -c "var/lib/dpkg/info/$name.md5sums") || die "a file differs from its checksum"
    in_root --purge "$name"
    rest=$(find "$scratch" -mindepth 1 ! -path "$scratch/var*" ! -name dpkg.log)
    [ -z "$rest" ] || die "left behind after removal: $rest"
    echo "package: installed, used and removed without a trace"
}

build
[ "${2-}" != test ] || try
