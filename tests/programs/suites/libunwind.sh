# libunwind and its own tests: contexts, signals, exceptions, processes that are traced. Two of them
# fail where no core is dumped. Its few lines of assembly stay as they are: `twin cc` takes none.
package=libunwind
build() {
    # The compiler's name is the last of the words.
    case $CC in
    *clang*) CXX=${CC%clang*}clang++${CC##*clang} ;;
    *) CXX=${CC%gcc*}g++${CC##*gcc} ;;
    esac
    ./configure --disable-documentation CC="$CC" CXX="$CXX" CFLAGS="$FLAGS" CXXFLAGS="$FLAGS" &&
        make -j2
}
suite() {
    make -k check >check.log || true
    grep -E '^(PASS|FAIL|SKIP|XFAIL|ERROR|# [A-Z]+):' check.log | sort
}
