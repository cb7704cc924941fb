#!/usr/bin/env bash
# Publishes the npm packages that dist/npm.sh packed.
#
#   dist/npm-publish.sh DIRECTORY [OPTION OF npm publish…]
#
# The platforms come first: the wrapper needs them. The name of a platform begins with a letter where the wrapper has its
# version, which may have hyphens of its own. A pre-release is published as `next`, so that no one gets it unasked.
set -euo pipefail

[ $# -ge 1 ] || { printf 'usage: %s DIRECTORY [OPTION…]\n' "$0" >&2; exit 2; }
directory=$1
shift
shopt -s nullglob
platforms=("$directory"/pml-mcp-[a-z]*.tgz)
wrapper=("$directory"/pml-mcp-[0-9]*.tgz)
[ ${#platforms[@]} -gt 0 ] || { printf 'error: %s has no package of a platform\n' "$directory" >&2; exit 2; }
[ ${#wrapper[@]} -eq 1 ] || { printf 'error: %s has %d wrappers, not one\n' "$directory" "${#wrapper[@]}" >&2; exit 2; }

version=$(basename "${wrapper[0]}" .tgz)
version=${version#pml-mcp-}
case "$version" in
    *-*) set -- --tag next "$@" ;;
esac
for package in "${platforms[@]}" "${wrapper[@]}"; do
    npm publish "$@" "$package"
done
