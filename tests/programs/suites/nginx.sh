# nginx serves files: its own suite is no part of its source package.
package=nginx
needs=curl:curl
build() {
    ./configure --with-cc="${CC}" --with-cc-opt="$FLAGS" --without-http_rewrite_module \
        --without-http_gzip_module && make -j2
}
suite() {
    objs/nginx -V 2>&1 | head -n 1
}
