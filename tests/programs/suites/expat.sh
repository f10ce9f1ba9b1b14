# expat's own tests of the parser.
package=expat
needs='autoreconf:autoconf aclocal:automake libtoolize:libtool'
build() {
    cd expat
    autoreconf -fi
    ./configure --disable-shared --without-docbook CC="$CC" CFLAGS="$FLAGS"
    make -j2 -C lib
    make -j2 -C tests runtests
}
suite() {
    expat/tests/runtests -v | grep -v '^Expat version'
}
