#!/bin/sh
# First contact: tries the README's commands on a Debian 12 that has only Rust and
# git. Needs root, debootstrap and ip; installs nothing on this system.
#
#   scripts/bare.sh [STEP...]
#
# A root directory is bootstrapped (minbase), the last commit is cloned into it,
# and the commands of the README are typed there, on a terminal that `script`
# records. Steps, default all but `again`:
#
#   user       a new machine, an unprivileged user: missing packages are named in
#              one line; root pastes it; then `make demo` works
#   online     a new machine, root: make demo, make test
#   again      that machine, with what was fixed since: make test
#   offline    that machine again, without a network: make demo, make test
#   page       (alone) prints the page made of what was recorded; a file `note`
#              beside the records is what it says of them first
#
# Leaves transcript-STEP and, made of these, first-contact.md; fails if a step
# does. The toolchain is this system's, mounted read-only at /opt/rust. Mounts and
# processes are in namespaces of their own and end with this script.
#
#   TWIN_BARE           where (default target/bare; some 25 GB)
#   TWIN_BARE_USER      what the unprivileged user makes (default "demo")
#   TWIN_BARE_OFFLINE   what is made offline (default "demo test")
#   CARGO_PROFILE_...   handed on, as is everything of cargo's; shown in the record
#   TWIN_DEBIAN_MIRROR  mirror (default http://deb.debian.org/debian)
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)
bare=${TWIN_BARE:-$root/target/bare}
mirror=${TWIN_DEBIAN_MIRROR:-http://deb.debian.org/debian}
by_user=${TWIN_BARE_USER-demo}
offline=${TWIN_BARE_OFFLINE-demo test}

die() {
    printf 'bare.sh: %s\n' "$*" >&2
    exit 1
}

# ---- The machine ---------------------------------------------------------------

# The base system as a tarball, made once.
base() {
    [ ! -s "$bare/base.tar" ] || return 0
    echo "bootstrapping Debian 12 (minbase, git) ..."
    rm -rf "$bare/base"
    debootstrap --variant=minbase --include=git,ca-certificates bookworm "$bare/base" "$mirror" \
        >"$bare/debootstrap.log" 2>&1 || die "debootstrap failed: see $bare/debootstrap.log"
    # As Debian's installer leaves it.
    {
        echo "deb $mirror bookworm main"
        echo "deb $mirror-security bookworm-security main"
        echo "deb $mirror bookworm-updates main"
    } >"$bare/base/etc/apt/sources.list"
    chroot "$bare/base" useradd --create-home --shell /bin/sh stranger
    rm -rf "$bare/base/var/lib/apt/lists" "$bare/base/var/cache/apt/archives"
    tar -C "$bare/base" -cf "$bare/base.new" .
    rm -rf "$bare/base"
    mv "$bare/base.new" "$bare/base.tar"
}

# An unused machine, with the repository to clone from.
unpack() {
    rm -rf --one-file-system "$1"
    mkdir -p "$1"
    tar -C "$1" -xf "$bare/base.tar"
    mkdir "$1/opt/rust"
    bundle "$1"
}

# The last commit, to clone or pull from.
bundle() {
    rm -f "$1/srv/twin.git"
    # shellcheck disable=SC2046
    git -C "$root" bundle create -q "$1/srv/twin.git" HEAD $(git -C "$root" symbolic-ref -q HEAD)
}

# A machine's file systems other than its disk.
mounts() {
    ! mountpoint -q "$1/proc" || return 0
    mount -t proc proc "$1/proc"
    mount --rbind /dev "$1/dev"
    mount --rbind /sys "$1/sys"
    mount --bind "$(rustc --print sysroot)" "$1/opt/rust"
    mount -o remount,bind,ro "$1/opt/rust"
    cp -L /etc/resolv.conf "$1/etc/resolv.conf"
    # A network that looks into TLS has certificates of its own, known here.
    [ -z "${SSL_CERT_FILE-}" ] || cp -L "$SSL_CERT_FILE" "$1/etc/ssl/certs/ca-certificates.crt"
}

# session STEP IMAGE USER [WRAPPER...]: types standard input into IMAGE as USER, after
# the lines of shell WRAPPER. Prompts show the time.
session() {
    step=$1 image=$2 user=$3 wrapper=${4-:}
    cat >"$image/srv/$step" <<'END'
set -e
cd
stty cols 100 rows 40
[ "$(id -u)" -eq 0 ] && prompt="#" || prompt="$"
type_in() {
    printf '%s %s:%s%s %s\n' "$(date -u +%H:%M:%S)" "$(id -un)" "$PWD" "$prompt" "$*"
    eval "$*"
}
END
    cat >>"$image/srv/$step"
    echo 'type_in exit' >>"$image/srv/$step"
    home=$(chroot "$image" sh -c "echo ~$user")
    # Cargo's own settings (CARGO_PROFILE_...) are this system's; none, usually.
    settings=$(env | grep '^CARGO_[A-Z_]*=[a-z0-9]*$' | tr '\n' ' ') || true
    cat >"$bare/enter" <<END
$wrapper
exec chroot --userspec=$user:$user $image env -i HOME=$home USER=$user TERM=xterm $settings\\
    PATH=/opt/rust/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin sh /srv/$step
END
    echo "$(date -u +%H:%M:%S) first contact: $step ($bare/transcript-$step)"
    # From there, so that the record has no path of this machine.
    (cd "$bare" && script -q -e -f -c "sh enter" "transcript-$step") >/dev/null </dev/null ||
        die "$step failed: see $bare/transcript-$step"
}

# ---- The commands typed there --------------------------------------------------

user() {
    unpack "$bare/user"
    mounts "$bare/user"
    session user-bare "$bare/user" stranger <<'END'
type_in git clone -q /srv/twin.git twin
type_in cd twin
type_in make demo || true
type_in sh scripts/setup.sh || true
END
    # The line is for a machine with sudo; this one has none.
    line=$(tr -d '\r' <"$bare/transcript-user-bare" | sed -n 's/^  sudo \(apt-get update .*\)/\1/p' | sed 's/sudo //')
    [ -n "$line" ] || die "no line to paste: see $bare/transcript-user-bare"
    session user-pasted "$bare/user" root <<END
type_in "$line"
END
    session user "$bare/user" stranger <<END
type_in cd twin
type_in sh scripts/setup.sh
$(for target in $by_user; do echo "type_in make $target"; done)
END
}

online() {
    unpack "$bare/root"
    mounts "$bare/root"
    session online "$bare/root" root <<'END'
type_in '. /etc/os-release; echo $PRETTY_NAME, $(dpkg-query -f. -W | wc -c) packages; cargo --version'
type_in 'env | grep ^CARGO_ || true'
type_in git clone -q /srv/twin.git twin
type_in cd twin
type_in make demo || type_in sh scripts/setup.sh
type_in make demo
type_in make test
type_in git status --short
END
}

again() {
    [ -d "$bare/root/root/twin" ] || die "again comes after online"
    mounts "$bare/root"
    bundle "$bare/root"
    session again "$bare/root" root <<'END'
type_in cd twin
type_in git pull -q --ff-only
type_in make test
END
}

# No network but the machine itself.
alone='[ "${1-}" = alone ] || exec unshare --net sh "$0" alone
ip link set lo up'

offline() {
    [ -d "$bare/root/root/twin" ] || die "offline comes after online"
    mounts "$bare/root"
    session offline "$bare/root" root "$alone" <<END
type_in cd twin
type_in 'git ls-remote https://deb.debian.org/ || true'
$(for target in $offline; do echo "type_in make $target"; done)
END
}

# ---- The page ------------------------------------------------------------------

# part TITLE STEP...: a chapter of the page, of the steps that were recorded.
part() {
    title=$1
    shift
    for step; do
        [ -s "$bare/transcript-$step" ] || return 1
    done
    printf '\n## %s\n' "$title"
    for step; do
        printf '\n```text\n'
        awk -f "$root/scripts/transcript.awk" "$bare/transcript-$step"
        printf '```\n'
    done
}

page() {
    cat <<'END'
# First contact

What `make demo` and `make test` do on a Debian 12 that has nothing but Rust and
git, as a terminal recorded it. `make test-bare` makes this page
(`scripts/bare.sh`): debootstrap's minimal system in a directory, entered by
chroot; the toolchain mounted at `/opt/rust`; the commit cloned from a bundle;
commands typed by a script, whose prompts show the time. "Script started" and
"Script done" are the recorder's.

Left out by rule (`scripts/transcript.awk`), never by hand: what a terminal
painted over; colours; runs of lines of one kind, of which the number stays (what
cargo and make compile, what apt-get says of packages, functions in the table of
`differential`); tests that passed, of which each set is one line.
END
    # Notes for the reader of this record, if there are any.
    [ ! -s "$bare/note" ] || { echo && cat "$bare/note"; }
    part 'As root' online || true
    part 'As root, with what was fixed since' again || true
    part 'Again, without a network' offline || true
    part 'Not as root' user-bare user || return 0
    cat <<'END'

Between the two root pasted the line (what apt-get said to it is left out).
END
}

# ---- The recipe ----------------------------------------------------------------

if [ "${1-}" = page ]; then
    page
    exit
fi
[ "$(id -u)" -eq 0 ] || die "needs root (debootstrap, chroot, mount)"
for tool in debootstrap script unshare flock chroot ip; do
    command -v "$tool" >/dev/null || die "no $tool; paste: apt-get install -y debootstrap bsdutils util-linux iproute2"
done
if [ "${TWIN_BARE_INSIDE-}" != yes ]; then
    mkdir -p "$bare"
    exec 9>"$bare/lock"
    flock -n 9 || die "another one is at work in $bare"
    base
    export TWIN_BARE_INSIDE=yes
    # Signals do not reach what is inside; SIGKILL for unshare ends everything.
    exec unshare --mount --pid --fork --kill-child --propagation private sh "$0" "$@"
fi
[ $# -gt 0 ] || set -- user online offline
for step; do
    case $step in
    user | online | again | offline) $step ;;
    *) die "no step $step: user, online, again, offline" ;;
    esac
done
page >"$bare/first-contact.md"
echo "$(date -u +%H:%M:%S) first contact: done; docs/first-contact.md is $bare/first-contact.md"
