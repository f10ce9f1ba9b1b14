#!/bin/sh
# Shows what twin does with a real driver: every command is printed before it is run.
#
#   scripts/demo.sh BIN_DIR E1000.KO KERNEL_DIR OUT_DIR
#
# E1000.KO is the stock kernel's, which the testbed is made for. KERNEL_DIR has the kernel
# package of this system's release: VERSION, modules/.
set -eu

bin=$1
twin=$bin/twin
module=$2
kernel=$3
out=$4
mkdir -p "$out"

say() {
    printf '\n== %s\n' "$*"
}

run() {
    printf '$ %s\n' "$*"
    "$@"
}

printf 'The driver: %s of %s\n' "$(basename "$module")" \
    "$(cat "$(dirname "$module")/VERSION" 2>/dev/null || echo "$module")"

say 'Rewritten: every access to memory translated, the result verified before it is left behind'
run "$twin" rewrite "$module" -o "$out/e1000.twin.o"
run "$twin" rewrite --scheme paper "$module" -o "$out/e1000.paper.o"

say 'Verified again, from the files alone'
run "$twin" verify "$out/e1000.twin.o" "$out/e1000.paper.o"

say 'What was done at each site'
run "$twin" rewrite "$module" -o "$out/e1000.twin.o" --report "$out/e1000.json"
printf '%s sites in %s; the first site through the heap in the receive path:\n\n' \
    "$(grep -c '^{"file"' "$out/e1000.json")" "$out/e1000.json"
"$twin" explain "$module" --function e1000_clean_rx_irq |
    awk '/^\.text/ { if (shown) exit; shown = / heap / } shown'

own=$kernel/modules/kernel/drivers/net/ethernet/intel/e1000/e1000.ko
say "For the kernel of this system's release: the module of $(cat "$kernel/VERSION") for it, and for the hypervisor"
run "$twin" rewrite --target linux "$own" -o "$out/e1000.twin.ko"
run "$twin" verify --target linux "$out/e1000.twin.ko"
run "$twin" rewrite "$own" -o "$out/e1000.own.o"
run "$twin" verify "$out/e1000.own.o"

say 'Executed: functions of the driver, natively and rewritten, on the same random memory'
images=20
printf '$ %s --images %s\n' "$bin/differential" "$images"
"$bin/differential" --images "$images" --stepped 2 >"$out/differential.txt" || {
    cat "$out/differential.txt"
    exit 1
}
tail -n 1 "$out/differential.txt"

say 'How long rewriting takes, from start to exit, verification and files included'
# date +%N is GNU, as is the rest of this system.
started=$(date +%s%N)
rounds=10
for _ in 1 2 3 4 5 6 7 8 9 10; do
    "$twin" rewrite "$module" -o "$out/e1000.twin.o"
done
ended=$(date +%s%N)
echo "$(((ended - started) / rounds / 1000000)) ms, mean of $rounds runs"

say 'Left behind'
ls -l "$out"
echo "Next: $twin explain $module | less"

say 'What the driver consists of, and so what was treated'
run "$twin" stats "$module"

say "At work: the driver's slow-down with the paper's scheme, beside native"
run "$twin" run "$module" --path native,twin --scheme paper --packets 20000

say 'The four ways of a packet (paper, figures 5 to 8), interleaved: 20,000 each way on each'
run "$twin" run "$module" --path all --packets 20000

say '1,000,000 packets each way through the hypervisor instance: none lost, none corrupted, no upcalls'
run "$twin" run "$module" --path twin --packets 1000000
