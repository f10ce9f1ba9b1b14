#!/bin/sh
# The host's end of the guests' connections: QEMU starts it for each one, in the folder of
# the run, with the connection as standard input and output.
#
#   peer.sh down      sends the file `data`
#   peer.sh up        receives up to the end, answers with the SHA-256 digest
#   peer.sh payload   receives dom0's symbols (a tar archive), answers with the livepatch
set -eu

case $1 in
down) exec cat data ;;
up) exec sha256sum ;;
payload) exec sh ./make-payload 2>payload.log ;;
esac
