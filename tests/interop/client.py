"""Drives `pml stdio` by the official Python SDK and prints what that client saw, as JSON.

    client.py MODE PML

MODE is `session` (the client session of both SDK lines), or a mode of the client of SDK 2: `legacy`, `auto`,
`2026-07-28`. The working directory and the environment are pml's. What must be seen stands in `tests/it/clients.rs`.
"""

import contextlib
import json
import os
import pathlib
import re
import sys

import anyio
import mcp
from mcp import ClientSession, StdioServerParameters, stdio_client

try:
    from mcp import MCPError
except ImportError:
    from mcp import McpError as MCPError

# Longer than anything here may take on a busy machine; reaching it is a failure.
DEADLINE_SECONDS = 60


def plain(model):
    """The object as it stands on the wire."""
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


class Changes:
    """Hears of changed tools, whichever way they are told."""

    def __init__(self):
        self.heard = anyio.Event()

    async def message(self, message):
        message = getattr(message, "root", message)
        if getattr(message, "method", None) == "notifications/tools/list_changed":
            self.heard.set()

    async def follow(self, subscription):
        async for _event in subscription:
            self.heard.set()


@contextlib.asynccontextmanager
async def connected(mode, server, changes):
    """Yields the client and the name the server gave itself."""
    if mode == "session":
        async with stdio_client(server) as (read, write):
            async with ClientSession(read, write, message_handler=changes.message) as session:
                opened = plain(await session.initialize())
                yield session, opened["serverInfo"]["name"]
        return
    async with mcp.Client(server, mode=mode, message_handler=changes.message) as client:
        # A pinned version asks nothing of the server, so the client knows no name.
        name = client.server_info.name if client.server_info else "pml"
        if client.protocol_version < "2026-07-28":
            yield client, name
            return
        async with client.listen(tools_list_changed=True) as subscription, anyio.create_task_group() as tasks:
            tasks.start_soon(changes.follow, subscription)
            yield client, name
            tasks.cancel_scope.cancel()


async def scenario(client, changes, pml):
    seen = {}

    async def listed():
        # A client may keep a list; what is looked for here is what pml says now.
        fresh = {} if isinstance(client, ClientSession) else {"cache_mode": "refresh"}
        return [plain(tool) for tool in (await client.list_tools(**fresh)).tools]

    async def call(name, arguments, **more):
        return plain(await client.call_tool(name, arguments, **more))

    async def proceed(asked, decision, name="pml_continue"):
        decision = {"workflow_id": asked["structuredContent"]["approval_context"]["workflow_id"], **decision}
        return await call(name, decision if name == "pml_continue" else {"continue_workflow": decision})

    def names(tools):
        return [tool["name"] for tool in tools if not tool["name"].startswith("asked__")]

    def promising(tools):
        return [tool["name"] for tool in tools if "outputSchema" in tool]

    def question(asked):
        assert asked.get("isError", False) is False, asked
        structured = asked["structuredContent"]
        context = structured["approval_context"]
        assert [block["text"] for block in asked["content"]] == [structured["message"], structured["instructions"]]
        return [structured["approval_required"], context["type"], context["tool"], structured["message"]]

    def text(result):
        return result["content"][0]["text"]

    tools = await listed()
    seen["names"] = names(tools)
    seen["promising"] = promising(tools)
    seen["sum"] = (await call("free__add", {"a": 2, "b": 3.5}))["structuredContent"]

    asked = await call("asked__structured", {})
    seen["question"] = question(asked)
    seen["continued"] = (await proceed(asked, {"approved": True}, "asked__structured"))["structuredContent"]
    seen["promising_once_approved"] = promising(await listed())
    seen["again"] = (await call("asked__structured", {}))["structuredContent"]

    asked = await call("asked__closed", {"a": "x"})
    seen["narrower"] = question(asked)
    seen["closed"] = text(await proceed(asked, {"approved": True}, "asked__closed"))

    steps = []

    async def progress(done, total, message):
        steps.append(f"{done:g}/{total:g} {message}")
        if done == total:
            until.touch()

    # The answer waits for the last step: a client may drop steps that arrive together with it.
    until = pathlib.Path.cwd() / "every-step-was-seen"
    await call("asked__progress", {"steps": 3, "until": str(until)}, progress_callback=progress)
    seen["progress"] = steps

    asked = await call("fresh__connect", {})
    seen["aborted"] = text(await proceed(asked, {"approved": False}))
    asked = await call("fresh__connect", {})
    seen["connected"] = (await proceed(asked, {"approved": True}))["structuredContent"]["tools"]
    await changes.heard.wait()
    seen["names_once_connected"] = names(await listed())

    # The client holds a list that promises an output; then the approval is taken back.
    await anyio.run_process([pml, "uninstall", "asked"])
    asked = await call("asked__structured", {})
    seen["question_despite_a_promise"] = [asked["isError"], text(asked)]
    workflow = re.search(r'"workflow_id":"([^"]+)"', asked["content"][1]["text"])[1]
    decision = {"workflow_id": workflow, "approved": False}
    seen["aborted_despite_a_promise"] = text(await call("asked__structured", {"continue_workflow": decision}))

    denied = await call("free__roll_dice", {})
    seen["denied"] = [denied["isError"], text(denied).split("\n")[0]]
    try:
        await call("free__nothing", {})
    except MCPError as error:
        seen["unknown"] = error.error.code
    return seen


async def main(mode, pml):
    server = StdioServerParameters(command=pml, args=["stdio"], env=dict(os.environ), cwd=os.getcwd())
    changes = Changes()
    with anyio.fail_after(DEADLINE_SECONDS):
        async with connected(mode, server, changes) as (client, name):
            seen = {"server": name, **await scenario(client, changes, pml)}
    print(json.dumps(seen))


anyio.run(main, *sys.argv[1:])
