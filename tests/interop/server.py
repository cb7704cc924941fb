"""A server on the official Python SDK, of either line, with something of everything; `differential.mjs` drives it.

    server.py

Its tools, resources and prompts have the names and the answers of `server.mjs` and of `tests/it/support/sdk_server.rs`,
as far as the SDK lets them. Under SDK 2 questions are resolved before a tool runs, which is what works in both eras.
"""

import importlib.metadata
from typing import Annotated

import anyio
import pydantic

TWO = importlib.metadata.version("mcp").startswith("2.")

if TWO:
    from mcp.server.mcpserver import Audio, Context, Elicit, Image, ListRoots, MCPServer, Resolve, Sample
    from mcp_types import (
        CallToolResult,
        Completion,
        CreateMessageResult,
        EmbeddedResource,
        ListRootsResult,
        ResourceLink,
        SamplingMessage,
        TextContent,
        TextResourceContents,
    )
else:
    from mcp.server.fastmcp import Context, FastMCP as MCPServer
    from mcp.server.fastmcp.utilities.types import Audio, Image
    from mcp.types import (
        CallToolResult,
        Completion,
        CreateMessageResult,
        EmbeddedResource,
        ListRootsResult,
        ResourceLink,
        SamplingMessage,
        TextContent,
        TextResourceContents,
    )

server = MCPServer("everything-python", instructions="A server for tests")


class Sum(pydantic.BaseModel):
    sum: float


class Person(pydantic.BaseModel):
    name: str
    age: int = pydantic.Field(default=36, description="In years", ge=0, le=200)


@server.tool(description="Says it again")
def echo(message: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=message)])


@server.tool(description="Adds", title="Addition")
def add(a: float, b: float) -> Sum:
    return Sum(sum=a + b)


@server.tool(description="Fails")
def fail() -> str:
    raise ValueError("it went wrong")


@server.tool(description="Every kind of content")
def content() -> CallToolResult:
    link = ResourceLink(type="resource_link", uri="demo://text", name="text", mimeType="text/plain")
    inner = TextResourceContents(uri="demo://text", mimeType="text/plain", text="embedded")
    annotated = TextContent.model_validate(
        {"type": "text", "text": "annotated", "annotations": {"audience": ["user"], "priority": 0.5}, "_meta": {"x/y": 1}}
    )
    return CallToolResult(
        content=[
            annotated,
            Image(data=b"image", format="png").to_image_content(),
            Audio(data=b"audio", format="wav").to_audio_content(),
            link,
            EmbeddedResource(type="resource", resource=inner),
        ]
    )


def name_of(person):
    return f"{person.name} is {person.age}"


if TWO:

    async def person(question: str) -> Elicit[Person]:
        return Elicit(question, Person)

    async def sampled(prompt: str) -> Sample:
        message = SamplingMessage(role="user", content=TextContent(type="text", text=prompt))
        return Sample([message], max_tokens=9)

    async def client_roots() -> ListRoots:
        return ListRoots()

    @server.tool(description="Asks by a form")
    def ask(question: str, answer: Annotated[Person, Resolve(person)]) -> str:
        return name_of(answer)

    @server.tool(description="Asks a model")
    def sample(prompt: str, answer: Annotated[CreateMessageResult, Resolve(sampled)]) -> str:
        return f"{answer.model}: {answer.content.text}"

    @server.tool(description="Asks for the roots")
    def roots(answer: Annotated[ListRootsResult, Resolve(client_roots)]) -> str:
        return " ".join(str(root.uri) for root in answer.roots)

    @server.tool(description="Asks twice, the second time because of the first")
    def ask_everything(
        question: str,
        answer: Annotated[Person, Resolve(person)],
        found: Annotated[ListRootsResult, Resolve(client_roots)],
    ) -> str:
        return f"{name_of(answer)} with {len(found.roots)} roots"

else:

    @server.tool(description="Asks by a form")
    async def ask(question: str, context: Context) -> str:
        answer = await context.elicit(question, Person)
        return name_of(answer.data) if answer.action == "accept" else answer.action

    @server.tool(description="Asks for consent on a page")
    async def ask_url(url: str, context: Context) -> str:
        answer = await context.elicit_url("Open it", url, "fixed")
        return answer.action

    @server.tool(description="Asks a model")
    async def sample(prompt: str, context: Context) -> str:
        message = SamplingMessage(role="user", content=TextContent(type="text", text=prompt))
        answer = await context.session.create_message([message], max_tokens=9)
        return f"{answer.model}: {answer.content.text}"

    @server.tool(description="Asks for the roots")
    async def roots(context: Context) -> str:
        answer = await context.session.list_roots()
        return " ".join(str(root.uri) for root in answer.roots)

    @server.tool(description="Asks twice, the second time because of the first")
    async def ask_everything(question: str, context: Context) -> str:
        answer = await context.elicit(question, Person)
        found = await context.session.list_roots()
        return f"{name_of(answer.data)} with {len(found.roots)} roots"


@server.tool(description="Tells its progress")
async def work(steps: int, context: Context) -> str:
    for step in range(1, steps + 1):
        await context.report_progress(step, steps, f"step {step}")
        await anyio.sleep(0.02)
    return "worked"


@server.tool(description="Logs at two levels")
async def log(context: Context) -> str:
    await context.info("of no importance")
    await context.error("of importance")
    return "logged"


@server.tool(description="Tells that a resource changed")
async def touch(uri: str, context: Context) -> str:
    if TWO:
        await context.notify_resource_updated(uri)
    else:
        await context.session.send_resource_updated(uri)
    return "touched"


@server.resource("demo://text", name="text", title="A text", mime_type="text/plain")
def text() -> str:
    return "a text\n"


@server.resource("demo://blob", name="blob", mime_type="application/octet-stream")
def blob() -> bytes:
    return bytes(range(256))


@server.resource("demo://items/{item}", name="items", mime_type="text/plain")
def items(item: str) -> str:
    if item == "nothing":
        raise ValueError("there is no such item")
    return f"item {item}"


@server.prompt(title="A greeting")
def greet(name: str, city: str = "Paris") -> str:
    return f"Greet {name} of {city}."


@server.prompt()
def plain() -> str:
    return "Plain."


@server.completion()
async def complete(reference, argument, context):
    known = ["Paris", "Prague", "Evora", "3"]
    return Completion(values=[value for value in known if value.startswith(argument.value)], hasMore=False)


if not TWO:

    @server._mcp_server.subscribe_resource()
    async def subscribe(uri) -> None:
        pass

    @server._mcp_server.unsubscribe_resource()
    async def unsubscribe(uri) -> None:
        pass

    @server._mcp_server.set_logging_level()
    async def set_level(level) -> None:
        pass


server.run()
