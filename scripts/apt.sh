# What the scripts share that fetch packages without installing any: private package lists of
# Debian's releases, a place to work. Sourced by them with `.`, not run.
#
# Required: $apt is the directory below which apt writes everything, and the function
# `die` ends the script with a message. The functions print options for apt-get and
# apt-cache, separated by blanks: paths may have none.
#
#   TWIN_DEBIAN_MIRROR  mirror (default http://deb.debian.org/debian)
mirror=${TWIN_DEBIAN_MIRROR:-http://deb.debian.org/debian}
keyring=/usr/share/keyrings/debian-archive-keyring.gpg

# need_tools TOOL...: each is on this system.
need_tools() {
    for tool; do
        command -v "$tool" >/dev/null || die "no $tool: this needs Debian's tools (run scripts/setup.sh)"
    done
}

# work_below DIRECTORY: goes on in a new directory there, $work, which ends with the script.
work_below() {
    case $1 in *[[:space:]]*) die "the path $1 contains blanks, which apt's options cannot" ;; esac
    mkdir -p "$1"
    work=$(mktemp -d "$1/fetch.XXXXXX")
    trap 'rm -rf "$work"' EXIT
    trap 'exit 1' HUP INT TERM
    cd "$work"
}

# State, lists and archives below $apt; the sources are this system's.
private_options() {
    case $apt in *[[:space:]]*) die "the path $apt contains blanks, which apt's options cannot" ;; esac
    mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
    : >"$apt/status"
    printf -- '-o%s ' \
        "Dir::State=$apt" "Dir::State::lists=$apt/lists" "Dir::State::status=$apt/status" \
        "Dir::Cache=$apt/cache" APT::Sandbox::User=root APT::Architecture=amd64 \
        Acquire::Languages=none Acquire::Retries=3 Acquire::http::Timeout=30
}

# bookworm_options deb|deb-src: the sources are only Debian 12's, on any system.
bookworm_options() {
    suite_options "$1" bookworm
}

# suite_options deb|deb-src SUITE: the sources are only that suite's, with the updates that
# Debian makes to a release. Signatures are checked as ever.
suite_options() {
    [ -e "$keyring" ] || die "no $keyring: install debian-archive-keyring"
    mkdir -p "$apt/no-parts"
    {
        echo "$1 [signed-by=$keyring] $mirror $2 main"
        case $2 in
            bookworm) echo "$1 [signed-by=$keyring] $mirror bookworm-updates main" ;;
        esac
        case $2 in
            *-backports | sid) ;;
            *) echo "$1 [signed-by=$keyring] $mirror-security $2-security main" ;;
        esac
    } >"$apt/sources.list"
    printf -- '-o%s ' "Dir::Etc::sourcelist=$apt/sources.list" "Dir::Etc::sourceparts=$apt/no-parts"
}

# suites_of SERIES[-FLAVOUR][@SUITE]: the suites that may have that kernel.
suites_of() {
    case $1 in
        *@*)
            echo "${1#*@}"
            return
            ;;
    esac
    case ${1%%-*} in
        5.10) echo bullseye ;;
        6.1) echo bookworm ;;
        6.12) echo trixie ;;
        6.1[6-9] | 7.*) echo trixie-backports ;;
        *) echo bullseye bookworm bookworm-backports trixie trixie-backports ;;
    esac
}

# has_suite SUITE: whether apt has fetched the index of that suite from the mirror.
has_suite() {
    for index in "$apt"/lists/*_dists_"$1"_main_binary-amd64_Packages*; do
        [ ! -s "$index" ] || return 0
    done
    return 1
}
