# libcrypto without assembly, and its own tests of it.
package=openssl
needs=perl:perl
build() {
    ./Configure linux-x86_64 no-asm no-shared no-tests CC="$CC" CFLAGS="$FLAGS" && make -j2 build_sw
}
suite() {
    ./apps/openssl version
    for digest in md5 sha1 sha256 sha512 sha3-256 blake2b512 sm3 ripemd160; do
        ./apps/openssl dgst -$digest CHANGES.md 2>&1
    done
}
