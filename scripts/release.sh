# What the Debian release that this system is has, as far as the tests depend on it; sourced
# with `.`, not run. Other systems are taken for Debian 12.
#
#   release_kernel   the series of its kernel. Empty on Debian 12: that is the stock kernel
#                    (target/stock), which the testbed is made for on every system
#   release_gcc      the compiler that its kernel is made with
#   release_clang    the clang that the tests of `twin cc` use
#
# A new release is a case here.
release_codename=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release 2>/dev/null || true)
case $release_codename in
trixie)
    release_kernel=6.12
    release_gcc=gcc-14
    release_clang=clang-19
    ;;
*)
    release_kernel=
    release_gcc=gcc-12
    release_clang=clang-14
    ;;
esac
