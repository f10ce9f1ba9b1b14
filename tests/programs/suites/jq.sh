# jq's own tests, without its library of regular expressions.
package=jq
needs='autoreconf:autoconf aclocal:automake libtoolize:libtool'
build() {
    autoreconf -fi
    ./configure --disable-shared --disable-maintainer-mode --disable-docs --without-oniguruma \
        CC="$CC" CFLAGS="$FLAGS"
    make -j2
}
suite() {
    for test in mantest jqtest shtest utf8test base64test; do
        NO_VALGRIND=1 sh tests/$test >$test.log 2>&1
        echo "$test $?"
        grep -vE '^Test #|/tmp/|^\+ ' $test.log
    done
}
