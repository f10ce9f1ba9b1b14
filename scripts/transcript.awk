# A terminal's transcript, as `script` records it, made readable. By these rules
# and no others:
#
#   1. a line that was painted several times is what stood there last; colours go
#   2. lines of one kind that follow each other are one line with their number:
#      what cargo compiles, downloads or checks; what apt-get says of packages;
#      functions in the table of `differential`; what make compiles
#   3. where cargo tests, each set of tests is one line: its file, how many passed,
#      how long it took; sets without tests, tests that passed or are ignored, and
#      blank lines go. Failures stay as they are.
{
    sub(/\r$/, "")
    line = ""
    parts = split($0, painted, "\r")
    for (i = 1; i <= parts; i++) {
        # Erased to its end, from the start or wholly: what stood there is gone.
        if (painted[i] ~ /^\033\[0?K|\033\[2K/) line = ""
        sub(/^.*\033\[2K/, "", painted[i])
        gsub(/\033\[[0-9;?]*[A-Za-z]|\033[()][A-Z0-9]/, "", painted[i])
        if (painted[i] != "") line = painted[i]
    }
    sub(/[ \t]+$/, "", line)
    if (line ~ /^ +(Running|Doc-tests) /) {
        set = line
        sub(/^ +(Running|Doc-tests) /, "", set)
        testing = 1
        next
    }
    if (testing && (line == "" || line ~ /^running [0-9]+ tests?$/)) next
    if (testing && line ~ /^test .* \.\.\. (ok|ignored)/) next
    if (testing && line ~ /^test result: ok\. 0 passed; 0 failed; 0 ignored/) next
    if (testing && line ~ /^test result: ok\./) {
        sub(/^test result: ok\. /, "", line)
        sub(/ 0 failed;/, "", line)
        sub(/ 0 ignored;/, "", line)
        sub(/ 0 measured; 0 filtered out;/, "", line)
        line = "     " set ": " line
    } else if (line ~ /^[0-9][0-9]:[0-9][0-9]:[0-9][0-9] /)
        testing = 0
    kind = kind_of(line)
    if (kind != before) flush_run()
    if (kind == "") print line
    else {
        count++
        last = line
    }
    before = kind
}
END { flush_run() }

function kind_of(line) {
    if (line ~ /^ +(Compiling|Downloaded|Downloading|Checking|Adding|Locking) /) return "cargo"
    if (line ~ /^(Get:[0-9]+|Selecting previously|Preparing to unpack|Unpacking|Setting up|Processing triggers|\(Reading database) ?/)
        return "apt-get"
    if (line ~ /^[a-z_0-9.]+( +[0-9]+)+ +[0-9]+% +[0-9]+$/) return "differential"
    if (line ~ /^(cc|gcc|ar|rm|ld|mkdir|objcopy|cp) -?[^ ]/) return "make"
    if (line ~ /^ok +[a-z_0-9]+$/) return "ok"
    return ""
}

function flush_run() {
    if (count == 1) print last
    else if (count > 1) print "[" count " lines: " before "]"
    count = 0
}
