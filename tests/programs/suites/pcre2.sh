# pcre2's own tests, with the interpreter and with its compiler.
package=pcre2
build() {
    ./configure --disable-shared --enable-pcre2-16 --enable-pcre2-32 --enable-jit CC="$CC" \
        CFLAGS="$FLAGS" && make -j2
}
suite() {
    # RunGrepTest expects an order of what pcre2grep and its child print, which the system's load decides.
    make check >check.log || make check >check.log || true
    grep -E '^(PASS|FAIL|SKIP|ERROR|# [A-Z]+):' check.log | sort
    grep -hE 'OK|FAIL|[Dd]iffer' RunTest.log | sort
    tail -n 3 pcre2_jit_test.log
}
