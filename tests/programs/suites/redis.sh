# redis, and its own tests of data types.
package=redis
needs=tclsh:tcl
build() {
    make -j2 MALLOC=libc CC="$CC" OPTIMIZATION="$FLAGS" CFLAGS= REDIS_CFLAGS= V=1
}
suite() {
    for unit in unit/type/string unit/type/list unit/type/hash unit/type/set unit/type/zset \
        unit/type/stream unit/scripting unit/sort unit/bitops unit/expire; do
        ./runtest --clients 1 --single $unit >unit.log 2>&1 || true
        sed 's/\x1b\[[0-9;]*m//g' unit.log | grep -aE '^\[(ok|err|exception)\]' |
            sed 's/ ([0-9]* ms)//' | sort
    done
}
