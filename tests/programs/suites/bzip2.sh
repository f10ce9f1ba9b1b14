# bzip2 compresses and decompresses its own samples.
package=bzip2
build() {
    make CC="$CC" CFLAGS="$FLAGS -D_FILE_OFFSET_BITS=64" libbz2.a bzip2 bzip2recover
}
suite() {
    make -s CC="$CC" CFLAGS="$FLAGS -D_FILE_OFFSET_BITS=64" test >test.log && tail -n 1 words3
    for sample in sample[123].ref; do
        for effort in 1 5 9; do
            ./bzip2 -$effort <"$sample" | tee "$sample.$effort" | sha256sum
            ./bzip2 -ds <"$sample.$effort" | cmp - "$sample" && echo "$sample -$effort: back"
        done
    done
    head -c 3000 sample1.bz2 | ./bzip2 -t 2>&1 | head -n 3
}
