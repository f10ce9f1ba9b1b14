#!/bin/sh
# First contact: tries the README's commands on a Debian 12 or 13 that has only Rust and
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
#   package    (not by default) the package that `make deb` made in that machine,
#              installed by apt, used and removed on new machines of every release
#   page       (alone) prints what was recorded on every release, without what a terminal
#              painted over
#
# Leaves RELEASE/transcript-STEP and, made of those of every release, first-contact.md, of which
# docs/first-contact.md has parts; fails if a step does. The toolchain is this system's, mounted
# read-only at /opt/rust.
# Mounts and processes are in namespaces of their own and end with this script.
#
#   TWIN_BARE_RELEASE   bookworm (Debian 12, the default) or trixie (Debian 13)
#   TWIN_BARE           where (default target/bare; some 25 GB for each release)
#   TWIN_BARE_USER      what the unprivileged user makes (default "demo")
#   TWIN_BARE_OFFLINE   what is made offline (default "demo test")
#   CARGO_PROFILE_...   handed on, as is everything of cargo's; shown in the record
#   TWIN_DEBIAN_MIRROR  mirror (default http://deb.debian.org/debian)
set -eu

root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)
release=${TWIN_BARE_RELEASE:-bookworm}
all=${TWIN_BARE:-$root/target/bare}
bare=$all/$release
releases='bookworm trixie'
mirror=${TWIN_DEBIAN_MIRROR:-http://deb.debian.org/debian}
by_user=${TWIN_BARE_USER-demo}
offline=${TWIN_BARE_OFFLINE-demo test}

die() {
    printf 'bare.sh: %s\n' "$*" >&2
    exit 1
}

# number RELEASE: Debian's number.
number() {
    case $1 in
    bookworm) echo 12 ;;
    trixie) echo 13 ;;
    *) die "no release $1: bookworm, trixie" ;;
    esac
}

# ---- The machine ---------------------------------------------------------------

# base RELEASE: its base system as a tarball, made once.
base() {
    of=$all/$1
    [ ! -s "$of/base.tar" ] || return 0
    echo "bootstrapping Debian $(number "$1") (minbase, git) ..."
    mkdir -p "$of"
    rm -rf "$of/base"
    debootstrap --variant=minbase --include=git,ca-certificates "$1" "$of/base" "$mirror" \
        >"$of/debootstrap.log" 2>&1 || die "debootstrap failed: see $of/debootstrap.log"
    # As Debian's installer leaves it.
    {
        echo "deb $mirror $1 main"
        echo "deb $mirror-security $1-security main"
        echo "deb $mirror $1-updates main"
    } >"$of/base/etc/apt/sources.list"
    # A bundle has no branch of its own, which git would remark on.
    chroot "$of/base" git config --system init.defaultBranch main
    chroot "$of/base" useradd --create-home --shell /bin/sh stranger
    rm -rf "$of/base/var/lib/apt/lists" "$of/base/var/cache/apt/archives"
    tar -C "$of/base" -cf "$of/base.new" .
    rm -rf "$of/base"
    mv "$of/base.new" "$of/base.tar"
}

# unpack MACHINE RELEASE: an unused machine.
unpack() {
    rm -rf --one-file-system "$1"
    mkdir -p "$1"
    tar -C "$1" -xf "$all/$2/base.tar"
    mkdir "$1/opt/rust"
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
    unpack "$bare/user" "$release"
    bundle "$bare/user"
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
    unpack "$bare/root" "$release"
    bundle "$bare/root"
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

# The package is made on one release, and installed, used and removed on each.
package() {
    [ -d "$bare/root/root/twin" ] || die "package comes after online"
    mounts "$bare/root"
    session package "$bare/root" root <<'END'
type_in cd twin
type_in make test-deb
type_in dpkg-deb -f target/deb/twin_*.deb Package Version Depends Built-Using
END
    for other in $releases; do
        machine=$all/$other/package
        unpack "$machine" "$other"
        mounts "$machine"
        cp "$bare"/root/root/twin/target/deb/twin_*.deb "$bare/root/root/twin/target/stock/e1000.ko" "$machine/srv"
        session "package-on-$other" "$machine" root <<'END'
type_in '. /etc/os-release; echo $PRETTY_NAME'
type_in apt-get update -qq
find / -xdev ! -path '/var/*' ! -path '/tmp/*' | sort >/tmp/before
type_in apt-get install -q -y --no-install-recommends /srv/twin_*.deb
type_in twin -V
type_in twin rewrite /srv/e1000.ko -o /tmp/e1000.twin.o
type_in twin verify /tmp/e1000.twin.o
type_in twin run /srv/e1000.ko --path native,twin --packets 1000
type_in apt-get purge -q -y twin
find / -xdev ! -path '/var/*' ! -path '/tmp/*' | sort >/tmp/after
type_in diff /tmp/before /tmp/after
END
    done
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

# part TITLE STEP...: a chapter of the page, of the steps that were recorded on $release.
part() {
    title=$1
    shift
    for step; do
        [ -s "$all/$release/transcript-$step" ] || return 1
    done
    printf '\n## Debian %s, %s\n' "$(number "$release")" "$title"
    for step; do
        printf '\n```text\n'
        awk -f "$root/scripts/transcript.awk" "$all/$release/transcript-$step"
        printf '```\n'
    done
}

chapters() {
    part 'as root' online || true
    part 'as root, with what was fixed since' again || true
    part 'again, without a network' offline || true
    # shellcheck disable=SC2046
    part 'the package, on each release' package $(printf 'package-on-%s ' $releases) || true
    part 'not as root' user-bare user || return 0
    cat <<'END'

Between the two root pasted the line (what apt-get said to it is left out).
END
}

page() {
    echo '# First contact'
    for release in $releases; do
        chapters
    done
}

# ---- The recipe ----------------------------------------------------------------

number "$release" >/dev/null
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
    base "$release"
    case " $* " in
    *' package '*) for other in $releases; do base "$other"; done ;;
    esac
    export TWIN_BARE_INSIDE=yes
    # Signals do not reach what is inside; SIGKILL for unshare ends everything.
    exec unshare --mount --pid --fork --kill-child --propagation private sh "$0" "$@"
fi
[ $# -gt 0 ] || set -- user online offline
for step; do
    case $step in
    user | online | again | offline | package) $step ;;
    *) die "no step $step: user, online, again, offline, package" ;;
    esac
done
page >"$all/first-contact.md"
echo "$(date -u +%H:%M:%S) first contact: done; the record is $all/first-contact.md"
