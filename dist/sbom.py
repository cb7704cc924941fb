#!/usr/bin/env python3
"""Prints the bill of materials of pml itself, as CycloneDX 1.6: every crate that is linked for a target.

    dist/sbom.py x86_64-unknown-linux-gnu

What pml installs is another matter: `pml sbom`.
"""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def linked(metadata):
    """Returns the ids of the crates that are linked: neither those of tests nor those of build scripts."""
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    waiting, found = [metadata["resolve"]["root"]], set()
    while waiting:
        crate = waiting.pop()
        if crate in found:
            continue
        found.add(crate)
        for dependency in nodes[crate]["deps"]:
            if any(kind["kind"] is None for kind in dependency["dep_kinds"]):
                waiting.append(dependency["pkg"])
    return found, nodes


def component(package, checksums):
    """Describes one crate."""
    name, version = package["name"], package["version"]
    purl = f"pkg:cargo/{name}@{version}"
    described = {"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl}
    if checksum := checksums.get((name, version)):
        described["hashes"] = [{"alg": "SHA-256", "content": checksum}]
    if license := package.get("license"):
        # Cargo still takes the old way to write "or".
        described["licenses"] = [{"expression": license.replace("/", " OR ")}]
    return described


def main():
    target = sys.argv[1]
    command = ["cargo", "metadata", "--format-version", "1", "--locked", "--filter-platform", target]
    metadata = json.loads(subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout)
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())
    checksums = {(entry["name"], entry["version"]): entry.get("checksum") for entry in lock["package"]}
    packages = {package["id"]: package for package in metadata["packages"]}
    found, nodes = linked(metadata)
    described = {crate: component(packages[crate], checksums) for crate in found}
    own = described.pop(metadata["resolve"]["root"])
    own["type"] = "application"
    ref = {crate: entry["bom-ref"] for crate, entry in described.items()} | {metadata["resolve"]["root"]: own["bom-ref"]}
    dependencies = [
        {"ref": ref[crate], "dependsOn": sorted(ref[to] for to in nodes[crate]["dependencies"] if to in ref)}
        for crate in found
    ]
    bill = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": own, "properties": [{"name": "pml:target", "value": target}]},
        "components": sorted(described.values(), key=lambda entry: entry["purl"]),
        "dependencies": sorted(dependencies, key=lambda entry: entry["ref"]),
    }
    print(json.dumps(bill, indent=2))


main()
