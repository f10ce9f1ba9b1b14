# openssl's libcrypto, all of it in C, and its own tests of that library: the groups from 02 to 30.
package=openssl
build() {
    ./Configure linux-x86_64 no-asm no-shared no-module CC="$CC" CFLAGS="$FLAGS"
    make -j2 build_sw
}
suite() {
    make run_tests TESTS='02 03 04 05 06 10 15 20 25 30' HARNESS_JOBS=2 >run_tests.log 2>&1 ||
        echo "status $?"
    # How long it took, and dots of the width of the longest name.
    sed -n 's/ *\.\.\.* */ /; s/ *[0-9]* ms$//; /^[0-9][0-9]-test_/p; /^All tests/p; /^Result/p' run_tests.log |
        sort
    for algorithm in md5 sha1 sha256 sha512 sha3-256 blake2b512 sm3 ripemd160; do
        ./apps/openssl dgst -"$algorithm" CHANGES.md
    done
    for cipher in aes-128-cbc aes-256-ctr camellia-256-cbc chacha20 aria-192-ofb sm4-cfb des-ede3-cbc; do
        ./apps/openssl enc -"$cipher" -K "$(seq -s '' -w 10 41)" -iv "$(seq -s '' -w 10 25)" \
            -in CHANGES.md 2>/dev/null | sha256sum
    done
}
