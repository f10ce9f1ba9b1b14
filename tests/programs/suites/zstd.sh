# zstd's fuzzers of the library, and its own script of the command line.
package=libzstd
needs=file:file
build() {
    # What is written in assembly is left out: it would not be rewritten.
    make -j2 -C tests CC="$CC" CFLAGS="$FLAGS" CPPFLAGS=-DZSTD_DISABLE_ASM ZSTD_NO_ASM=1 \
        fuzzer zstreamtest datagen
    make -j2 -C programs CC="$CC" CFLAGS="$FLAGS" CPPFLAGS=-DZSTD_DISABLE_ASM ZSTD_NO_ASM=1 \
        zstd-release
}
suite() {
    ./tests/fuzzer -s7 -t1 -i300 2>&1 | tail -n 1
    ./tests/zstreamtest -s7 -t1 -i100 2>&1 | tail -n 1
    for level in 1 3 9 19; do
        ./tests/datagen -g3000000 -s7 | ./programs/zstd -q -$level | tee "$level.zst" | sha256sum
        ./programs/zstd -dcq "$level.zst" | sha256sum
    done
}
