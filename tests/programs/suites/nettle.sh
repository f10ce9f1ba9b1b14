# nettle with its own assembly, and its own tests. Not `symbols`, which wants no global names but
# nettle's: the runtime has names of its own.
package=nettle
needs='m4:m4'
build() {
    ./configure --disable-shared --disable-documentation CC="$CC" CFLAGS="$FLAGS" && make -j2
    sed -i 's/symbols-test//' testsuite/Makefile
}
suite() {
    for part in testsuite examples; do
        make -C $part check >$part.log 2>&1 || echo "$part: $?"
        grep -E '^(PASS|FAIL|SKIP):' $part.log | sort
    done
}
