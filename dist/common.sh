# What the scripts of this folder share; sourced, not run.
# shellcheck shell=bash

set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

say() { printf '== %s\n' "$*" >&2; }
fail() {
    printf 'error: %s\n' "$*" >&2
    exit 2
}

# The version that Cargo.toml names.
version() {
    sed -n 's/^version = "\(.*\)"$/\1/p' "$root/Cargo.toml" | head -n 1
}

# The target that cargo builds for here, unless `PML_TARGET` names another one.
target() {
    printf '%s\n' "${PML_TARGET:-$(rustc -vV | sed -n 's/^host: //p')}"
}

# Where the packages of a script go: `PML_DIST_OUT`, or target/packages.
out() {
    local directory=${PML_DIST_OUT:-$root/target/packages}
    mkdir -p "$directory"
    printf '%s\n' "$directory"
}

# The binary that is handed out: `PML_BINARY`, or one that is built now.
binary() {
    if [ -n "${PML_BINARY:-}" ]; then
        [ -x "$PML_BINARY" ] || fail "PML_BINARY is no program: $PML_BINARY"
        printf '%s\n' "$PML_BINARY"
        return
    fi
    local target
    target=$(target)
    say "building pml for $target"
    (cd "$root" && cargo build --quiet --locked --profile dist --bin pml --target "$target" >&2)
    printf '%s\n' "${CARGO_TARGET_DIR:-$root/target}/$target/dist/pml"
}

# GNU tar, which macOS calls gtar: only it writes the same bytes for the same files.
gnu_tar() {
    local name
    for name in gtar tar; do
        if "$name" --version 2> /dev/null | grep -q 'GNU tar'; then
            printf '%s\n' "$name"
            return
        fi
    done
    fail "GNU tar is missing"
}

# A name of npm for a target: system, processor and C library.
npm_platform() {
    case $1 in
        x86_64-unknown-linux-gnu) echo "linux x64 glibc" ;;
        aarch64-unknown-linux-gnu) echo "linux arm64 glibc" ;;
        x86_64-unknown-linux-musl) echo "linux x64 musl" ;;
        x86_64-apple-darwin) echo "darwin x64 -" ;;
        aarch64-apple-darwin) echo "darwin arm64 -" ;;
        *) fail "there is no npm package for $1" ;;
    esac
}
