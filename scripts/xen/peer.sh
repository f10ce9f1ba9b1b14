#!/bin/sh
# The host's end of the guests' connections: QEMU starts it for each one, in the folder of
# the run, with the connection as standard input and output.
#
#   peer.sh down   sends the file `data`
#   peer.sh up     receives up to the end, answers with the SHA-256 digest
set -eu

case $1 in
down) exec cat data ;;
up) exec sha256sum ;;
esac
