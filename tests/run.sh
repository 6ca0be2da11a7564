#!/bin/sh
# Sets the machine up and runs every check and test. From any folder: sh tests/run.sh
set -eu

root="$(cd "$(dirname "$0")/.." && pwd)"
cd "$root"

set -- --for-tests
. "$root/deploy/setup.sh"

# The Python that speaks to the daemon as clients do: the openai library, and jinja2 to compare
# chat templates with.
set -- openai==3.57.0 jinja2==3.1.6
python="$pleach_cache/python"
if python3 -c 'import ensurepip, venv' >/dev/null 2>&1; then
    [ -x "$python/bin/python" ] || python3 -m venv "$python"
    "$python/bin/python" -m pip install --quiet --disable-pip-version-check "$@"
    export PLEACH_PYTHON="$python/bin/python"
else
    python3 -m pip install --quiet --disable-pip-version-check --target "$python-packages" \
        --upgrade "$@"
    export PYTHONPATH="$python-packages${PYTHONPATH:+:$PYTHONPATH}"
    export PLEACH_PYTHON=python3
fi

echo "tests: format" >&2
cargo fmt --check
echo "tests: lints" >&2
cargo clippy --all-targets -- -D warnings
echo "tests: tests" >&2
cargo test --no-fail-fast
