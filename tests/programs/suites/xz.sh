# xz's own tests of the library and the command line.
package=xz-utils
build() {
    ./configure --disable-shared --disable-doc --disable-nls CC="$CC" CFLAGS="$FLAGS" &&
        make -j2 && make -j2 -C tests check TESTS=
}
suite() {
    make -C tests check >check.log || true
    grep -E '^(PASS|FAIL|SKIP|XFAIL|ERROR|# [A-Z]+):' check.log | sort
    for effort in 0 3 6 9e; do
        ./src/xz/xz -T1 -$effort -c src/liblzma/lzma/lzma_encoder.c | sha256sum
    done
}
