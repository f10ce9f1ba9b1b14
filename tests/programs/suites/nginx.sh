# nginx with zlib and pcre2, all three compiled here. Its own tests are another project's, which
# Debian does not have: a server answers (nginx.conf) what curl asks, over HTTP/1.0, 1.1 and 2.
package=nginx
beside="zlib pcre2"
needs=curl:curl
build() {
    # As Debian has them: what takes no other library.
    ./configure --prefix=. --with-cc="$CC" --with-cc-opt="$FLAGS" \
        --with-zlib="$PWD/zlib" --with-zlib-opt="$FLAGS" \
        --with-pcre="$PWD/pcre2" --with-pcre-opt="$FLAGS" --with-pcre-jit \
        --with-threads --with-file-aio --with-http_v2_module --with-http_dav_module \
        --with-http_sub_module --with-http_addition_module --with-http_gunzip_module \
        --with-http_gzip_static_module --with-http_slice_module --with-http_random_index_module
    make -j2
}

# Without dates, and without the numbers that separate ranges: these count temporary files.
steady() {
    LC_ALL=C sed '/^[Dd]ate:/d; s/0000000000[0-9]\{10\}/NUMBER/g'
}

# ask CURL-ARGUMENT...: status, headers and bodies.
ask() {
    echo "== $*"
    rm -f run/headers run/answer
    curl -sS --max-time 300 --unix-socket run/front -D run/headers -o run/answer \
        -w '%{http_code} %{http_version} %{size_download} bytes %{num_connects} connections\n' "$@" 2>&1
    tr -d '\r' <run/headers | steady
    [ ! -e run/answer ] || steady <run/answer | sha256sum
}

site() {
    mkdir -p run site/part site/ssi store packed
    echo 'The quick brown fox jumps over the lazy dog.' >site/index.html
    seq -f 'line %g: the quick brown fox jumps over the lazy dog' 20000 >site/words.txt
    cp objs/ngx_modules.c site/code.c
    head -c 300000 zlib/deflate.c >site/data.bin
    seq -s ',' -f '{"n":%g}' 500 | sed 's/.*/[&]/' >site/list.json
    for n in $(seq 40); do seq "$n" $((n * 50)) >"site/$n.txt"; done
    echo '<p>nothing here</p>' >site/lost.html
    echo 'hidden' >site/x.hidden
    echo 'before' >site/part/head.txt
    echo 'after' >site/part/foot.txt
    cat >site/ssi/page.html <<'END'
<!--# set var="who" value="world" -->hello <!--# echo var="who" -->
<!--# if expr="$arg_a = /^b(.*)/" -->b<!--# else -->other<!--# endif -->
<!--# include virtual="/part/head.txt" --><!--# include file="none" -->
<!--# echo var="missing" default="none" --> <!--# echo var="arg_e" encoding="url" -->
END
    gzip -9nc site/words.txt >packed/words.txt.gz
    echo 'me:{PLAIN}open' >conf/users
    cp "$suites/nginx.conf" conf/exercise.conf
    # Tags and dates are of the files.
    find site packed -exec touch -d '2026-01-02 03:04:05 UTC' {} +
}

suite() {
    site
    ./objs/nginx -p "$PWD/" -c conf/exercise.conf >run/stdout 2>&1 &
    server=$!
    for n in $(seq 600); do
        curl -s --unix-socket run/front -o run/answer http://x/ && break
        sleep 0.1
    done
    # It logs after it has answered.
    for n in $(seq 600); do
        [ ! -s run/access.log ] || break
        sleep 0.1
    done
    : >run/access.log
    requests
    kill -QUIT "$server"
    wait "$server"
    echo "status $?"
    echo "== what it logged"
    sort run/access.log
    grep -c . run/error.log
}

requests() {
    # Files, names, methods.
    ask http://x/
    ask -I http://x/words.txt
    ask http://x/words.txt
    ask http://x/none
    ask http://x/x.hidden
    ask http://x/list/
    ask http://x/json/
    ask 'http://x/%77ords.txt?x#y'
    ask --path-as-is http://x/a/../part/./head.txt
    ask --path-as-is http://x/../../etc/passwd
    ask http://x/part
    ask -X POST -d a=b http://x/index.html
    ask -X WHAT http://x/
    ask -X OPTIONS http://x/
    ask --http1.0 http://x/words.txt
    ask -H 'Host:' http://x/
    ask -H 'Content-Length: x' http://x/
    ask -H "X-Class: $(seq -s . 300)" http://x/
    ask -H "X-Class: $(seq -s . 9000)" http://x/
    # Ranges, conditions.
    for range in 0-0 0-99 100- -100 999999999- 5-2 0-9,20-29 0-9,5-14,-7 1-2,4-5,7-8,10-11; do
        ask -r "$range" http://x/data.bin
    done
    ask -r 10-20 -H 'If-Range: "none"' http://x/data.bin
    ask -H 'If-Modified-Since: Fri, 02 Jan 2026 03:04:05 GMT' http://x/data.bin
    ask -H 'If-Unmodified-Since: Thu, 01 Jan 2026 00:00:00 GMT' http://x/data.bin
    ask -H 'If-None-Match: W/"a", "b"' http://x/data.bin
    ask -H 'If-Match: "a"' http://x/data.bin
    # One connection for many.
    ask 'http://x/[1-40].txt'
    ask --no-keepalive -H 'Connection: close' http://x/1.txt http://x/2.txt
    # Many connections at once.
    mkdir -p run/many
    curl -sSZ --unix-socket run/front 'http://x/[1-40].txt' 'http://x/proxy/[1-40].txt' \
        -o 'run/many/front#1' -o 'run/many/proxy#1'
    find run/many -type f | wc -l
    cat run/many/* | sha256sum
    # Compression, on the way and before it.
    for file in words.txt list.json code.c 1.txt; do
        ask -H 'Accept-Encoding: gzip' "http://x/$file"
        ask --compressed "http://x/$file"
    done
    ask -H 'Accept-Encoding: gzip;q=0' http://x/words.txt
    ask -H 'Accept-Encoding: gzip' http://x/static/words.txt
    ask http://x/static/words.txt
    # Expressions, variables, rewriting, pages made of parts.
    ask 'http://x/re/word/1234?q=5'
    ask http://x/re/word/12345
    ask http://x/inner/re/a/1
    ask http://x/old/index.htm
    for query in 'animal=cat' 'animal=dog' 'id=1&from=10.1.2.3' 'id=7&from=10.9.9.9' 'from=2001:db8::1' \
        'id=abc&from=192.168.0.1'; do
        ask -A twin -b 'a=1; c=2' "http://x/vars?$query"
    done
    ask http://x/try/index
    ask http://x/try/nothing
    ask 'http://x/ssi/page.html?a=bcd&e=%20x'
    ask http://x/ssi/page.html
    ask http://x/sub/words.txt
    ask http://x/around/index.html
    ask http://x/slow/words.txt
    ask http://x/mirror/index.html
    # Names and passwords.
    ask http://x/private/index.html
    ask -u me:open http://x/private/index.html
    ask -u me:shut http://x/private/index.html
    # Uploads, in pieces too.
    ask -T site/data.bin http://x/files/a/data
    ask -H 'Transfer-Encoding: chunked' -T site/words.txt http://x/files/words
    ask -X MKCOL http://x/files/b/
    ask -X COPY -H 'Destination: http://x/files/b/words' http://x/files/words
    ask -X MOVE -H 'Destination: http://x/files/b/data' http://x/files/a/data
    ask -X DELETE http://x/files/words
    ask -T /dev/null http://x/files/empty
    (cd store && find . -type f -exec sha256sum {} + | sort)
    ask -H 'Expect: 100-continue' --data-binary @site/words.txt http://x/files/words
    # Through itself.
    for way in proxy plain failover kept; do
        ask "http://x/$way/echo?a" -d body
        ask "http://x/$way/words.txt"
        ask "http://x/$way/words.txt"
        ask -H 'Accept-Encoding: gzip' "http://x/$way/list.json"
        ask -r 5-500000 "http://x/$way/words.txt"
        ask "http://x/$way/none"
        ask "http://x/$way/[1-20].txt"
    done
    ask --data-binary @site/data.bin http://x/proxy/echo
    # HTTP/2 and its compressed headers.
    ask --http2-prior-knowledge --unix-socket run/two http://x/words.txt
    ask --http2-prior-knowledge --unix-socket run/two -I http://x/data.bin
    ask --http2-prior-knowledge --unix-socket run/two -r 0-9,50-59 http://x/data.bin
    ask --http2-prior-knowledge --unix-socket run/two -H "X-Long: $(seq -s . 700)" http://x/echo
    ask --http2-prior-knowledge --unix-socket run/two --compressed http://x/words.txt
    ask --http2-prior-knowledge --unix-socket run/two http://x/proxy/words.txt
    for file in 1 11 21 31; do
        ask --http2-prior-knowledge --unix-socket run/two "http://x/$file.txt"
    done
    # What is no HTTP/2.
    ask --unix-socket run/two http://x/words.txt
}
