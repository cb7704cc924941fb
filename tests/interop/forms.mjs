// Answers pml's dialogs by the official TypeScript SDKs and prints what that client saw, as JSON.
//
//     node forms.mjs MODE SDKS PML
//
// MODE is `v1`, or a mode of the client of v2: `legacy`, `auto`, `2026-07-28`. SDKS is the folder where they are
// installed. The working directory and the environment are pml's. What must be seen stands in `tests/it/forms.rs`.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";

// Longer than anything here may take on a busy machine; reaching it is a failure.
const DEADLINE_MS = 60_000;

// Longer than pml's shortest reading time of a person.
const READING_MS = 500;

const [mode, sdks, pml] = process.argv.slice(2);

// Modules are resolved where the SDKs are installed, not beside this file.
const require = createRequire(join(sdks, "package.json"));
const load = (name) => import(pathToFileURL(require.resolve(name)));

/** Fills in forms in the order it was told to, and remembers them. */
class Person {
  replies = [];
  forms = [];

  async fill({ params }) {
    // The words a field takes; none where it takes any text.
    const choices = (field) => (field.oneOf ?? field.items?.anyOf ?? []).map((choice) => choice.const);
    const fields = Object.entries(params.requestedSchema.properties);
    const line = params.message.split("\n")[0];
    this.forms.push([line, Object.fromEntries(fields.map(([name, field]) => [name, choices(field)]))]);
    const reply = this.replies.shift();
    if (typeof reply === "object") return { action: "accept", content: reply };
    if (reply === "read and decline") await sleep(READING_MS);
    return { action: "decline" };
  }
}

async function connect(person) {
  const about = { name: "interop", version: "1" };
  const parameters = { command: pml, args: ["stdio"], env: process.env, cwd: process.cwd() };
  const capabilities = { elicitation: { form: {} } };
  if (mode === "v1") {
    const { Client } = await load("@modelcontextprotocol/sdk/client/index.js");
    const { StdioClientTransport } = await load("@modelcontextprotocol/sdk/client/stdio.js");
    const { ElicitRequestSchema } = await load("@modelcontextprotocol/sdk/types.js");
    const client = new Client(about, { capabilities });
    client.setRequestHandler(ElicitRequestSchema, (request) => person.fill(request));
    await client.connect(new StdioClientTransport(parameters));
    return client;
  }
  const { Client } = await load("@modelcontextprotocol/client");
  const { StdioClientTransport } = await load("@modelcontextprotocol/client/stdio");
  const negotiation = ["legacy", "auto"].includes(mode) ? mode : { pin: mode };
  const client = new Client(about, { versionNegotiation: { mode: negotiation }, capabilities });
  client.setRequestHandler("elicitation/create", (request) => person.fill(request));
  await client.connect(new StdioClientTransport(parameters));
  return client;
}

async function scenario(client, person) {
  const seen = {};
  const call = async (name, args, ...replies) => {
    person.replies = replies;
    const result = await client.callTool({ name, arguments: args });
    assert.deepEqual(person.replies, [], `${name} did not ask: ${JSON.stringify(result)}`);
    return result;
  };
  const text = (result) => result.content[0].text;
  const decide = (decision) => ({ decision });

  // A client that has listed the tools checks results against what they promise.
  await client.listTools();
  seen.aborted = text(await call("fake__structured", {}, decide("abort")));
  seen.declined = text(await call("fake__structured", {}, "read and decline"));
  const unavailable = await call("fake__structured", {}, "decline at once");
  seen.unavailable = unavailable.structuredContent.approval_required;
  seen.continued = (await call("fake__structured", {}, decide("continue"))).structuredContent;
  seen.again = (await call("fake__structured", {})).structuredContent;
  seen.narrower = text(await call("fake__closed", { a: "x" }, decide("continue")));
  seen.session = text(await call("fake__closed", { a: "x" }, decide("session")));
  seen.in_session = text(await call("fake__closed", { a: "y" }));
  await client.listTools();

  const which = { question: "Which way?", options: [{ label: "Left", description: "shorter" }, { label: "Right" }] };
  const chosen = await call("ask_user", which, { answer1: "Right" });
  seen.chosen = [text(chosen), chosen.structuredContent.by];
  seen.other = text(await call("ask_user", which, { answer1: "Other…" }, { answer1_other: "Back" }));
  seen.plain = text(await call("ask_user", { question: "Your name?" }, { answer1: "Ada" }));
  seen.empty = (await call("ask_user", which, {})).structuredContent.status;
  seen.unasked = (await call("ask_user", which, "decline at once")).structuredContent.status;

  const options = [{ label: "A", description: "first" }, { label: "B", description: "second" }];
  const questions = [
    { question: "One of them?", header: "One", options, multiSelect: false },
    { question: "Some of them?", header: "Some", options, multiSelect: true },
  ];
  const replies = [{ answer1: "A", answer2: ["A", "B", "Other…"] }, { answer2_other: "C" }];
  const several = await call("ask_user_questions", { questions }, ...replies);
  seen.several = several.structuredContent.answers;
  seen.forms = person.forms;
  return seen;
}

const deadline = setTimeout(() => {
  console.error("the deadline is over");
  process.exit(1);
}, DEADLINE_MS);
const person = new Person();
const client = await connect(person);
const seen = await scenario(client, person);
await client.close();
clearTimeout(deadline);
console.log(JSON.stringify(seen));
