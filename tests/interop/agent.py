"""Calls the tools of pml by the official Python SDK, as it is told line by line.

    agent.py MODE PML

MODE is as in `client.py`. A line on stdin is `{"id": …, "tool": …, "arguments": {…}}`, a line on stdout the
`{"id": …, "result": {…}}` of one of them, in the order in which they come; calls run at the same time. The first line on
stdout is `{"id": null, "result": null}`, once the session is open. The end of stdin closes it. The working directory and
the environment are pml's. What must come stands in `tests/it/python_agent.rs`.
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
        async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
            await session.initialize()
            yield session
        return
    async with mcp.Client(server, mode=mode) as client:
        yield client


def say(number, result):
    print(json.dumps({"id": number, "result": result}), flush=True)


async def call(client, number, tool, arguments):
    result = await client.call_tool(tool, arguments)
    say(number, result.model_dump(by_alias=True, mode="json", exclude_none=True))


async def main(mode, pml):
    server = StdioServerParameters(command=pml, args=["stdio"], env=dict(os.environ), cwd=os.getcwd())
    async with connected(mode, server) as client, anyio.create_task_group() as tasks:
        # The client checks results against the definitions it has listed, as that of an agent does.
        await client.list_tools()
        say(None, None)
        async for line in anyio.wrap_file(sys.stdin):
            wanted = json.loads(line)
            tasks.start_soon(call, client, wanted["id"], wanted["tool"], wanted["arguments"])
        tasks.cancel_scope.cancel()


anyio.run(main, *sys.argv[1:])
