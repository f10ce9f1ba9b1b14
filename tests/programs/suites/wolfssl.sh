# wolfssl with its authors' assembly, that of its arithmetic for single sizes, too, and its own tests of
# algorithms.
package=wolfssl
needs='autoreconf:autoconf automake:automake libtoolize:libtool'
build() {
    ./autogen.sh && ./configure --disable-shared --enable-intelasm --enable-sp=yes,4096,ec384,ec521 \
        --enable-sp-asm --enable-all-crypto CC="$CC" CFLAGS="$FLAGS" && make -j2
}
suite() {
    ./wolfcrypt/test/testwolfcrypt
}
