#!/bin/sh
# From a fresh clone to a served model: sets the machine up, builds, serves on 127.0.0.1:8080 and
# prints what to try. Ctrl-C stops it.
#
#   sh deploy/quickstart.sh
#   PLEACH_LISTEN=127.0.0.1:9000 PLEACH_MODEL=/path/to/model.gguf sh deploy/quickstart.sh
set -eu

root="$(cd "$(dirname "$0")/.." && pwd)"
listen="${PLEACH_LISTEN:-127.0.0.1:8080}"

# A model given by a relative path is meant from here, but cargo reads its settings in the clone.
case "${PLEACH_MODEL:-/}" in
    /*) ;;
    *) PLEACH_MODEL="$PWD/$PLEACH_MODEL" ;;
esac
cd "$root"

set --
. "$root/deploy/setup.sh"

# Asked before the build: it takes minutes.
if ! python3 - "$listen" <<'PYTHON'
import socket, sys
host, _, port = sys.argv[1].rpartition(":")
host = host.strip("[]")
try:
    listener = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((host, int(port)))
except (OSError, ValueError) as error:
    sys.exit(f"quickstart: cannot listen on {sys.argv[1]}: {error}")
PYTHON
then
    echo "quickstart: try another port: PLEACH_LISTEN=127.0.0.1:8081 sh deploy/quickstart.sh" >&2
    exit 1
fi

echo "quickstart: building (the first time takes minutes: llama.cpp is built too)" >&2
cargo build --release --bin pleach
pleach="$CARGO_TARGET_DIR/release/pleach"

# Waits beside the daemon (which takes this shell's place) until it is ready or gone.
tell_when_ready() {
    while ! curl --silent --fail --output /dev/null "http://$listen/readyz"; do
        kill -0 "$$" 2>/dev/null || return 0
        sleep 0.3
    done
    model="$(basename "$PLEACH_MODEL" .gguf)"
    cat <<TEXT

Pleach serves $model on http://$listen. In another terminal, try:

curl http://$listen/v1/chat/completions -H 'Content-Type: application/json' -d '{"model": "$model", "messages": [{"role": "user", "content": "Name three colours."}], "max_tokens": 60}'

curl -N http://$listen/v1/chat/completions -H 'Content-Type: application/json' -d '{"model": "$model", "messages": [{"role": "user", "content": "Tell me a short story."}], "max_tokens": 200, "temperature": 0.7, "stream": true}'

curl http://$listen/v1/completions -H 'Content-Type: application/json' -d '{"model": "$model", "prompt": "The capital city of France is called", "max_tokens": 8}'

Ctrl-C stops it.
TEXT
}

tell_when_ready &
exec "$pleach" serve --model "$PLEACH_MODEL" --listen "$listen"
