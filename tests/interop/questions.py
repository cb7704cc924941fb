"""Answers what a server asks in the middle of its calls, by the official Python SDK, and prints what that client saw.

    questions.py MODE PREFIX COMMAND [ARGUMENT ...]

MODE is `session` (the client session of both SDK lines), or a mode of the client of SDK 2: `legacy`, `2026-07-28`.
PREFIX is what a proxy puts before the names of the server, or `-`. What must be seen stands in `tests/it/cells.rs`.
"""

import contextlib
import json
import os
import sys

import anyio
import mcp
from mcp import ClientSession, StdioServerParameters, stdio_client, types

# Longer than anything here may take on a busy machine; reaching it is a failure.
DEADLINE_SECONDS = 60


class Answers:
    """Answers always alike, and remembers what was asked."""

    def __init__(self):
        self.asked = []

    async def elicitation(self, _about, params):
        self.asked.append(["elicitation/create", params.message])
        return types.ElicitResult(action="accept", content={"name": "Ada", "age": 36})

    async def sampling(self, _about, params):
        self.asked.append(["sampling/createMessage", params.messages[0].content.text])
        content = types.TextContent(type="text", text="sampled")
        return types.CreateMessageResult(role="assistant", content=content, model="fixed", stopReason="endTurn")

    async def roots(self, _about):
        self.asked.append(["roots/list", ""])
        return types.ListRootsResult(roots=[types.Root(uri="file:///one"), types.Root(uri="file:///two")])


@contextlib.asynccontextmanager
async def connected(mode, server, answers):
    callbacks = {
        "elicitation_callback": answers.elicitation,
        "sampling_callback": answers.sampling,
        "list_roots_callback": answers.roots,
    }
    if mode == "session":
        async with stdio_client(server) as (read, write):
            async with ClientSession(read, write, **callbacks) as session:
                await session.initialize()
                yield session
        return
    async with mcp.Client(server, mode=mode, **callbacks) as client:
        yield client


async def scenario(client, answers, prefix):
    seen = {}

    async def call(name, arguments, **more):
        return (await client.call_tool(prefix + name, arguments, **more)).content[0].text

    tools = (await client.list_tools()).tools
    names = {tool.name.removeprefix(prefix) for tool in tools if tool.name.startswith(prefix)}
    seen["listed"] = sorted(names & {"ask", "sample", "roots", "ask_everything", "work", "echo"})
    seen["ask"] = await call("ask", {"question": "What is your name?"})
    seen["sample"] = await call("sample", {"prompt": "Say something"})
    seen["roots"] = await call("roots", {})
    seen["ask_everything"] = await call("ask_everything", {"question": "All of it?"})
    steps = []

    async def progress(done, total, message):
        steps.append(f"{done:g}/{total:g} {message}")

    seen["worked"] = await call("work", {"steps": 3}, progress_callback=progress)
    # A client may drop steps that arrive together with the answer.
    seen["rises"] = steps == sorted(steps) and "1/3 step 1" in steps
    with anyio.move_on_after(0.5) as scope:
        await call("work", {"steps": 100_000})
    seen["cancelled"] = scope.cancelled_caught
    seen["echo"] = await call("echo", {"message": "still here"})
    # Several questions at once may come in any order.
    seen["asked"] = sorted(answers.asked)
    return seen


async def main(mode, prefix, command, *arguments):
    server = StdioServerParameters(command=command, args=list(arguments), env=dict(os.environ), cwd=os.getcwd())
    answers = Answers()
    with anyio.fail_after(DEADLINE_SECONDS):
        async with connected(mode, server, answers) as client:
            seen = await scenario(client, answers, "" if prefix == "-" else prefix)
    print(json.dumps(seen))


anyio.run(main, *sys.argv[1:])
