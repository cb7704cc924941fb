#!/usr/bin/env bash
# Packs the binary with its papers, man pages and completions, and writes checksums and the bill of materials.
#
#   dist/archive.sh                                       for this machine
#   PML_TARGET=x86_64-unknown-linux-musl dist/archive.sh  where `rustup target add` has installed that target
#
# PML_BINARY names a binary that is there already, PML_DIST_OUT another folder than target/packages.
. "$(dirname "$0")/common.sh"

program=$(binary)
target=$(target)
out=$(out)
name="pml-$(version)-$target"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

mkdir -p "$work/$name/man" "$work/$name/completions"
install -m 755 "$program" "$work/$name/pml"
for paper in README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE .pml.json.example; do
    install -m 644 "$root/$paper" "$work/$name/$paper"
done
"$program" man "$work/$name/man" > /dev/null
for shell in bash zsh fish; do
    "$program" completions "$shell" > "$work/$name/completions/pml.$shell"
done

# The same input gives the same bytes: names in order, one owner, the time of the last commit.
time=$(git -C "$root" log -1 --format=%ct 2> /dev/null || echo 0)
"$(gnu_tar)" --directory "$work" --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$time" -cf - "$name" \
    | gzip -n -9 > "$out/$name.tar.gz"
"$root/dist/sbom.py" "$target" > "$out/$name.cdx.json"
sum=(sha256sum)
command -v sha256sum > /dev/null 2>&1 || sum=(shasum -a 256)
(cd "$out" && "${sum[@]}" "$name.tar.gz" "$name.cdx.json" > "$name.sha256")
printf '%s\n' "$out/$name.tar.gz" "$out/$name.cdx.json" "$out/$name.sha256"
