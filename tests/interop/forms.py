"""Answers pml's dialogs by the official Python SDK and prints what that client saw, as JSON.

    forms.py MODE PML

MODE is `session` (the client session of both SDK lines), or a mode of the client of SDK 2: `legacy`, `auto`,
`2026-07-28`. The working directory and the environment are pml's. What must be seen stands in `tests/it/forms.rs`.
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

# Longer than pml's shortest reading time of a person.
READING_SECONDS = 0.5


def plain(model):
    """The object as it stands on the wire."""
    return model.model_dump(by_alias=True, mode="json", exclude_none=True)


def choices(field):
    """The words a field takes; none where it takes any text."""
    titled = field.get("oneOf") or field.get("items", {}).get("anyOf") or []
    return [choice["const"] for choice in titled]


class Person:
    """Fills in forms in the order it was told to, and remembers them."""

    def __init__(self):
        self.replies = []
        self.forms = []

    async def fill(self, _about, params):
        form = plain(params)
        fields = form["requestedSchema"]["properties"]
        line = form["message"].split("\n")[0]
        self.forms.append([line, {name: choices(field) for name, field in fields.items()}])
        reply = self.replies.pop(0)
        if isinstance(reply, dict):
            return types.ElicitResult(action="accept", content=reply)
        if reply == "read and decline":
            await anyio.sleep(READING_SECONDS)
        return types.ElicitResult(action="decline")


@contextlib.asynccontextmanager
async def connected(mode, server, person):
    if mode == "session":
        async with stdio_client(server) as (read, write):
            async with ClientSession(read, write, elicitation_callback=person.fill) as session:
                await session.initialize()
                yield session
        return
    async with mcp.Client(server, mode=mode, elicitation_callback=person.fill) as client:
        yield client


async def scenario(client, person):
    seen = {}

    async def call(name, arguments, *replies):
        person.replies = list(replies)
        result = plain(await client.call_tool(name, arguments))
        assert person.replies == [], f"{name} did not ask: {result}"
        return result

    def text(result):
        return result["content"][0]["text"]

    def decide(word):
        return {"decision": word}

    # A client that has listed the tools checks results against what they promise.
    await client.list_tools()
    seen["aborted"] = text(await call("fake__structured", {}, decide("abort")))
    seen["declined"] = text(await call("fake__structured", {}, "read and decline"))
    unavailable = await call("fake__structured", {}, "decline at once")
    seen["unavailable"] = unavailable["structuredContent"]["approval_required"]
    seen["continued"] = (await call("fake__structured", {}, decide("continue")))["structuredContent"]
    seen["again"] = (await call("fake__structured", {}))["structuredContent"]
    seen["narrower"] = text(await call("fake__closed", {"a": "x"}, decide("continue")))
    seen["session"] = text(await call("fake__closed", {"a": "x"}, decide("session")))
    seen["in_session"] = text(await call("fake__closed", {"a": "y"}))
    await client.list_tools()

    options = [{"label": "Left", "description": "shorter"}, {"label": "Right"}]
    which = {"question": "Which way?", "options": options}
    chosen = await call("ask_user", which, {"answer1": "Right"})
    seen["chosen"] = [text(chosen), chosen["structuredContent"]["by"]]
    seen["other"] = text(await call("ask_user", which, {"answer1": "Other…"}, {"answer1_other": "Back"}))
    seen["plain"] = text(await call("ask_user", {"question": "Your name?"}, {"answer1": "Ada"}))
    seen["empty"] = (await call("ask_user", which, {}))["structuredContent"]["status"]
    seen["unasked"] = (await call("ask_user", which, "decline at once"))["structuredContent"]["status"]

    options = [{"label": "A", "description": "first"}, {"label": "B", "description": "second"}]
    questions = [
        {"question": "One of them?", "header": "One", "options": options, "multiSelect": False},
        {"question": "Some of them?", "header": "Some", "options": options, "multiSelect": True},
    ]
    replies = {"answer1": "A", "answer2": ["A", "B", "Other…"]}, {"answer2_other": "C"}
    several = await call("ask_user_questions", {"questions": questions}, *replies)
    seen["several"] = several["structuredContent"]["answers"]
    seen["forms"] = person.forms
    return seen


async def main(mode, pml):
    server = StdioServerParameters(command=pml, args=["stdio"], env=dict(os.environ), cwd=os.getcwd())
    person = Person()
    with anyio.fail_after(DEADLINE_SECONDS):
        async with connected(mode, server, person) as client:
            seen = await scenario(client, person)
    print(json.dumps(seen))


anyio.run(main, *sys.argv[1:])
