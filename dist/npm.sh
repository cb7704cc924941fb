#!/usr/bin/env bash
# Packs the npm packages: `pml-mcp`, which finds the binary, and one package with the binary of this platform.
#
#   dist/npm.sh
#
# Neither has an install script: npm chooses the platform by `os`, `cpu` and `libc`. PML_BINARY, PML_TARGET and
# PML_DIST_OUT as in dist/archive.sh; PML_REPOSITORY names the repository that they are built from. A release packs `pml-mcp` once and one platform on each machine.
. "$(dirname "$0")/common.sh"

program=$(binary)
read -r system processor library <<< "$(npm_platform "$(target)")"
out=$(out)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

version=$(version)
platform="pml-mcp-$system-$processor"
[ "$library" = musl ] && platform="$platform-musl"

mkdir -p "$work/platform/bin" "$work/wrapper"
install -m 755 "$program" "$work/platform/bin/pml"
install -m 644 "$root/LICENSE-MIT" "$root/LICENSE-APACHE" "$work/platform/"
"$root/dist/npm/manifest.py" platform "$platform" "$version" "$system" "$processor" "$library" \
    > "$work/platform/package.json"

install -m 644 "$root/README.md" "$root/LICENSE-MIT" "$root/LICENSE-APACHE" "$work/wrapper/"
install -m 755 "$root/dist/npm/pml.js" "$work/wrapper/pml.js"
"$root/dist/npm/manifest.py" wrapper "$version" > "$work/wrapper/package.json"

for package in platform wrapper; do
    (cd "$work/$package" && npm pack --silent --pack-destination "$out") | sed "s|^|$out/|"
done
