#!/usr/bin/env bash
# Builds the Python wheel: the binary as a program, `uvx --from pml-mcp pml demo`.
#
#   dist/wheel.sh
#   PML_PROFILE=dev dist/wheel.sh      as cargo builds it for tests: quicker, larger
#
# maturin is taken from the PATH, else from PyPI by uvx. PML_TARGET and PML_DIST_OUT as in dist/archive.sh.
. "$(dirname "$0")/common.sh"

out=$(out)
if command -v maturin > /dev/null 2>&1; then
    maturin=(maturin)
else
    command -v uvx > /dev/null 2>&1 || fail "maturin and uv are missing: one of them is needed to build a wheel"
    maturin=(uvx --quiet maturin@1.16.0)
fi
options=(--manifest-path "$root/Cargo.toml" --bindings bin --locked --profile "${PML_PROFILE:-dist}" --out "$out")
[ -n "${PML_TARGET:-}" ] && options+=(--target "$PML_TARGET")
(cd "$root" && "${maturin[@]}" build --quiet "${options[@]}" >&2)
ls "$out"/pml_mcp-"$(version)"-*.whl
