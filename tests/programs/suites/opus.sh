# opus with its functions for SSE, SSE2, SSE4.1 and AVX, and its own tests.
package=opus
build() {
    ./configure --disable-shared --disable-doc CC="$CC" CFLAGS="$FLAGS" && make -j2
}
suite() {
    make -k check >check.log || true
    grep -E '^(PASS|FAIL|SKIP|XFAIL|ERROR|# [A-Z]+):' check.log | sort
}
