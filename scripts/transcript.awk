# A terminal's transcript, as `script` records it, made readable. By these rules
# and no others:
#
#   1. a line that was painted several times is what stood there last; colours go
#   2. lines of one kind that follow each other are one line with their number:
#      what cargo compiles, downloads or checks; what apt-get says of packages;
#      functions in the table of `differential`; tests that passed
#   3. "running N tests" and blank lines go where cargo tests
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
    kind = ""
    if (line ~ /^ +(Compiling|Downloaded|Downloading|Checking|Adding|Locking) /) {
        kind = "cargo"
    } else if (line ~ /^(Get:[0-9]+|Selecting previously|Preparing to unpack|Unpacking|Setting up|Processing triggers|\(Reading database) ?/) {
        kind = "apt-get"
    } else if (line ~ /^[a-z_0-9.]+( +[0-9]+)+ +[0-9]+% +[0-9]+$/) {
        kind = "differential"
    } else if (line ~ /^test .* \.\.\. ok$/ || line ~ /^test .* \.\.\. ok <.*>$/) {
        kind = "test ... ok"
        testing = 1
    } else if (line ~ /^running [0-9]+ tests?$/) {
        testing = 1
        next
    } else if (line == "" && testing)
        next
    else if (line ~ /^ +(Running|Doc-tests) /)
        testing = 1
    else if (line !~ /^test /)
        testing = 0
    if (kind != before) flush_run()
    if (kind == "") print line
    else {
        count++
        last = line
    }
    before = kind
}
END { flush_run() }

function flush_run() {
    if (count == 1) print last
    else if (count > 1) print "[" count " lines: " before "]"
    count = 0
}
