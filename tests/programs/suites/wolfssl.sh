# wolfssl and its own tests of algorithms. It calls its authors' assembly, which `twin cc` leaves as it is.
package=wolfssl
needs='autoreconf:autoconf automake:automake libtoolize:libtool'
build() {
    ./autogen.sh && ./configure --disable-shared --enable-intelasm --enable-sp=yes,4096,ec384,ec521 \
        --enable-sp-asm --enable-all-crypto CC="$CC" CFLAGS="$FLAGS" && make -j2
}
suite() {
    ./wolfcrypt/test/testwolfcrypt
}
