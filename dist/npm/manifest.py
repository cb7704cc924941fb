#!/usr/bin/env python3
"""Prints the package.json of an npm package of pml.

    manifest.py wrapper VERSION
    manifest.py platform NAME VERSION SYSTEM PROCESSOR LIBRARY     LIBRARY is - where there is only one
"""

import json
import os
import sys

# The platforms that a release builds.
PLATFORMS = ["linux-x64", "linux-arm64", "linux-x64-musl", "darwin-x64", "darwin-arm64"]

SHARED = {
    "description": "One MCP server in front of many: every install gated by a rule or a person",
    "license": "MIT OR Apache-2.0",
    "keywords": ["mcp", "proxy", "permissions", "agent"],
}

# Where it is built, such as https://github.com/owner/name: npm takes a provenance only for the repository that is named.
REPOSITORY = os.environ.get("PML_REPOSITORY", "")
if REPOSITORY:
    SHARED["repository"] = {"type": "git", "url": f"git+{REPOSITORY}.git"}


def main():
    match sys.argv[1:]:
        case ["wrapper", version]:
            manifest = {
                "name": "pml-mcp",
                "version": version,
                **SHARED,
                "bin": {"pml": "pml.js"},
                "engines": {"node": ">=18"},
                "files": ["pml.js", "README.md", "LICENSE-*"],
                "optionalDependencies": {f"pml-mcp-{platform}": version for platform in PLATFORMS},
            }
        case ["platform", name, version, system, processor, library]:
            manifest = {
                "name": name,
                "version": version,
                **SHARED,
                "os": [system],
                "cpu": [processor],
                **({} if library == "-" else {"libc": [library]}),
                "files": ["bin/pml", "LICENSE-*"],
                # It is only found by `pml-mcp`, never put on the PATH by itself.
                "preferUnplugged": True,
            }
        case _:
            sys.exit(__doc__)
    print(json.dumps(manifest, indent=2))


main()
