# libgcrypt with its own assembly, and its own tests. Not with VIA's Padlock, whose instructions reach
# memory without naming it and are refused.
package=libgcrypt20
needs='gpgrt-config:libgpg-error-dev'
parts='compat mpi cipher random src tests'
build() {
    ./configure --disable-shared --disable-doc --disable-padlock-support CC="$CC" CFLAGS="$FLAGS" &&
        make -j2 SUBDIRS="$parts"
}
suite() {
    make -k check SUBDIRS="$parts" >check.log 2>&1 || true
    grep -E '^(PASS|FAIL|SKIP|XFAIL|ERROR):' check.log | sort
}
