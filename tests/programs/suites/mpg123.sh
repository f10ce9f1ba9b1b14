# mpg123 and its own tests, which need no sound; then each of its decoders with frames of the three
# layers, whose bits are by chance. The decoders' assembly is its authors', which `twin cc` leaves.
package=mpg123
build() {
    ./configure --disable-shared --with-cpu=x86-64 --with-audio=dummy CC="$CC" CFLAGS="$FLAGS" &&
        make -j2 && make -j2 check TESTS=
}

# frames HEADER BYTES COUNT
frames() {
    awk -v header="$1" -v bytes="$2" -v count="$3" 'BEGIN {
        n = 7
        for (frame = 0; frame < count; frame++) {
            line = header
            for (i = 4; i < bytes; i++) {
                n = (n * 69069 + 1) % 4294967296
                line = line sprintf("\\%03o", int(n / 65536) % 256)
            }
            print line
        }
    }' | while read -r line; do
        # shellcheck disable=SC2059
        printf "$line"
    done
}

suite() {
    make check >check.log || true
    grep -E '^(PASS|FAIL|SKIP|XFAIL|ERROR|# [A-Z]+):' check.log | sort
    # Sampled at 44,100 Hz: 256, 128 and 128 kbit/s.
    frames '\377\377\200\104' 276 60 >layer1.mp3
    frames '\377\375\200\104' 417 60 >layer2.mp3
    frames '\377\373\220\104' 417 60 >layer3.mp3
    src/mpg123 --list-cpu
    for decoder in $(src/mpg123 --list-cpu | sed 's/.*: //'); do
        for way in '-e s16' '-e s32' '-e f32' '-e u8' '-2' '-4' '-m' '--pitch 0.1'; do
            for layer in 1 2 3; do
                # shellcheck disable=SC2086
                src/mpg123 -q --cpu "$decoder" $way -s "layer$layer.mp3" | sha256sum |
                    sed "s/-/$decoder $way, layer $layer/"
            done
        done
    done
}
