# gmp with its own assembly, and its own tests. Not with copyi.asm, in which numbers that are no
# instruction stand before the code: they are refused.
package=gmp
needs='m4:m4'
build() {
    find mpn/x86_64 -name copyi.asm -delete
    # Debian's source is without the manual.
    mkdir -p doc && printf 'all check:\n' >doc/Makefile.in
    ./configure --disable-shared CC="$CC" CFLAGS="$FLAGS" && make -j2
}
suite() {
    make -k check >check.log 2>&1 || true
    grep -E '^(PASS|FAIL|SKIP|XFAIL|ERROR|# [A-Z]+):' check.log | sort
}
