# redis, its Lua and its own tests of a server, those without a clock in them: types, commands,
# scripts, files. Names and results of the tests are compared.
package=redis
needs=tclsh:tcl
tests="printver dump auth protocol keyspace scan info-command type/string type/incr type/list
    type/list-2 type/list-3 type/set type/zset type/hash type/stream type/stream-cgroups sort multi
    quit acl acl-v2 pubsub pubsubshard scripting functions introspection-2 limits bitops bitfield geo
    hyperloglog lazyfree tracking networking violations cluster-scripting other"
build() {
    make -j2 -C src CC="$CC" OPTIMIZATION="$FLAGS" DEBUG= MALLOC=libc
}
suite() {
    ./runtest --clients 2 --tags -slow $(for test in $tests; do echo "--single unit/$test"; done) \
        --single integration/rdb --single integration/convert-ziplist-zset-on-load \
        --single integration/convert-zipmap-hash-on-load --single integration/redis-cli \
        >runtest.log 2>&1 || echo "status $?"
    # Colours, and how long it took.
    sed 's/\x1b\[[0-9;]*m//g; s/ ([0-9]* ms)$//' runtest.log |
        grep -E '^\[(ok|err|exception|skip|ignore|timeout)\]' | sort
}
