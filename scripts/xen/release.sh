# Which of Debian's releases Xen, dom0 and its tools are of; sourced by the scripts that fetch,
# compile and boot them, not run.
#
#   TWIN_XEN_RELEASE  bookworm (default) or trixie
#
# Required: $root. Sets
#   xen_release   that name
#   xen_version   of the hypervisor, as it is in packages' names
#   xen_kernel    the series of dom0's kernel; empty: target/stock
#   xen           the folder below target/ that has everything of it
#   xen_stock     that of dom0's kernel
#   xen_merged    the folder of the packages' bin/ and lib/: usr/ where they are merged
#   xen_packages  what is fetched
#
# A new release is a case here, one in xen-table.sh, and a row in docs/xen.md.
xen_release=${TWIN_XEN_RELEASE:-bookworm}
case $xen_release in
bookworm) xen_version=4.17 xen_kernel='' xen_suffix='' xen_merged='' xen_renamed='libssl3 libext2fs2' ;;
trixie) xen_version=4.20 xen_kernel=6.12 xen_suffix=-trixie xen_merged=usr/ xen_renamed='libssl3t64 libext2fs2t64' ;;
*)
    echo "TWIN_XEN_RELEASE=$xen_release: there is bookworm and trixie" >&2
    exit 2
    ;;
esac
xen=$root/target/xen$xen_suffix
xen_stock=$root/target/stock${xen_kernel:+-$xen_kernel}
xen_packages="
xen-hypervisor-$xen_version-amd64 xen-utils-$xen_version xen-utils-common xenstore-utils
libxenstore4 libxencall1 libxenevtchn1 libxenforeignmemory1 libxengnttab1 libxenmisc$xen_version
libxentoollog1 libxentoolcore1 libxendevicemodel1 libxenhypfs1
busybox-static kmod libkmod2 ethtool libmnl0
libc6 libgcc-s1 libuuid1 libyajl2 libncurses6 libtinfo6 liblzma5 libzstd1 zlib1g
libnl-3-200 libnl-route-3-200 liblzo2-2 libbz2-1.0 libfdt1 libcom-err2 $xen_renamed
"
