# Lua: its source package has no tests, so a program of ours (lua.lua), as source and compiled.
# Its authors have tests: LUA_TESTS names their directory (of the same version), if it is there.
package=lua5.4
build() {
    make -C src CC="$CC" CFLAGS="$FLAGS -DLUA_COMPAT_5_3 -DLUA_USE_LINUX" \
        MYLIBS='-Wl,-E -ldl' lua luac
}
suite() {
    # Addresses differ from run to run.
    without="sed s/0x[0-9a-f]*$//"
    ./src/lua "$suites/lua.lua" | $without
    ./src/luac -o x.luac "$suites/lua.lua" && sha256sum x.luac && ./src/lua x.luac | $without
    ./src/luac -l -l "$suites/lua.lua" | sed 's/0x[0-9a-f]*//g' | sha256sum
    [ -z "${LUA_TESTS:-}" ] || own
}
own() {
    cp -r "$LUA_TESTS" own
    # `_U`: the tests for users, which need no test functions inside the interpreter.
    (cd own && ../src/lua -e '_U=true' all.lua) >own.log 2>&1
    echo "status $?"
    # Times, sizes, random seeds and choices differ.
    grep -E '^(OK|final OK|testing|lua|.*\.lua:)' own.log | sed 's/0x[0-9a-f]*//g; s/[0-9]* *ms//; s/ ([01])$//'
}
