"""Lists everything through `pml stdio` by the official Python SDK and prints the names that client read, as JSON.

    lists.py MODE PML

The arguments are those of `client.py`. What must be seen stands in `tests/it/unreadable_definitions.rs`.
"""

import contextlib
import json
import os
import sys

import anyio
import mcp
from mcp import ClientSession, StdioServerParameters, stdio_client


@contextlib.asynccontextmanager
async def connected(mode, server):
    if mode == "session":
        async with stdio_client(server) as (read, write):
            async with ClientSession(read, write) as session:
                await session.initialize()
                yield session
        return
    async with mcp.Client(server, mode=mode) as client:
        yield client


def plain(model):
    """The object as it stands on the wire."""
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


async def main(mode, pml):
    server = StdioServerParameters(command=pml, args=["stdio"], env=dict(os.environ), cwd=os.getcwd())
    with anyio.fail_after(60):
        async with connected(mode, server) as client:
            tools = plain(await client.list_tools())["tools"]
            prompts = plain(await client.list_prompts())["prompts"]
            resources = plain(await client.list_resources())["resources"]
            templates = plain(await client.list_resource_templates())["resourceTemplates"]
    seen = {
        "tools": [tool["name"] for tool in tools],
        "prompts": [prompt["name"] for prompt in prompts],
        "resources": [[resource["uri"], resource["name"]] for resource in resources],
        "templates": [template["name"] for template in templates],
    }
    print(json.dumps(seen))


anyio.run(main, *sys.argv[1:])
