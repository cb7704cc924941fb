// Drives `pml stdio` by the official TypeScript SDKs and prints what that client saw, as JSON.
//
//     node client.mjs MODE SDKS PML
//
// MODE is `v1`, or a mode of the client of v2: `legacy`, `auto`, `2026-07-28`. SDKS is the folder where they are
// installed. The working directory and the environment are pml's. What must be seen stands in `tests/it/clients.rs`.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

// Longer than anything here may take on a busy machine; reaching it is a failure.
const DEADLINE_MS = 60_000;

const [mode, sdks, pml] = process.argv.slice(2);

// Modules are resolved where the SDKs are installed, not beside this file.
const require = createRequire(join(sdks, "package.json"));
const load = (name) => import(pathToFileURL(require.resolve(name)));

async function connect(changed) {
  const about = { name: "interop", version: "1" };
  const parameters = { command: pml, args: ["stdio"], env: process.env, cwd: process.cwd() };
  const listChanged = { tools: { autoRefresh: false, debounceMs: 0, onChanged: changed } };
  if (mode === "v1") {
    const { Client } = await load("@modelcontextprotocol/sdk/client/index.js");
    const { StdioClientTransport } = await load("@modelcontextprotocol/sdk/client/stdio.js");
    const client = new Client(about, { listChanged });
    await client.connect(new StdioClientTransport(parameters));
    return client;
  }
  const { Client } = await load("@modelcontextprotocol/client");
  const { StdioClientTransport } = await load("@modelcontextprotocol/client/stdio");
  const negotiation = ["legacy", "auto"].includes(mode) ? mode : { pin: mode };
  const client = new Client(about, { versionNegotiation: { mode: negotiation }, listChanged });
  await client.connect(new StdioClientTransport(parameters));
  return client;
}

async function scenario(client, heard) {
  const seen = { server: client.getServerVersion().name };
  // A client may keep a list; what is looked for here is what pml says now.
  const listed = async () => (await client.listTools(undefined, { cacheMode: "refresh" })).tools;
  const call = (name, args, options) =>
    mode === "v1"
      ? client.callTool({ name, arguments: args }, undefined, options)
      : client.callTool({ name, arguments: args }, options);
  const proceed = (asked, decision, name = "pml_continue") => {
    const whole = { workflow_id: asked.structuredContent.approval_context.workflow_id, ...decision };
    return call(name, name === "pml_continue" ? whole : { continue_workflow: whole });
  };
  const names = (tools) => tools.map((tool) => tool.name).filter((name) => !name.startsWith("asked__"));
  const promising = (tools) => tools.filter((tool) => tool.outputSchema).map((tool) => tool.name);
  const text = (result) => result.content[0].text;
  const question = (asked) => {
    assert.notEqual(asked.isError, true);
    const { approval_required, approval_context, message, instructions } = asked.structuredContent;
    assert.deepEqual(asked.content.map((block) => block.text), [message, instructions]);
    return [approval_required, approval_context.type, approval_context.tool, message];
  };

  const tools = await listed();
  seen.names = names(tools);
  seen.promising = promising(tools);
  seen.sum = (await call("free__add", { a: 2, b: 3.5 })).structuredContent;

  let asked = await call("asked__structured", {});
  seen.question = question(asked);
  seen.continued = (await proceed(asked, { approved: true }, "asked__structured")).structuredContent;
  seen.promising_once_approved = promising(await listed());
  seen.again = (await call("asked__structured", {})).structuredContent;

  asked = await call("asked__closed", { a: "x" });
  seen.narrower = question(asked);
  seen.closed = text(await proceed(asked, { approved: true }, "asked__closed"));

  seen.progress = [];
  const onprogress = ({ progress, total, message }) => {
    seen.progress.push(`${progress}/${total} ${message}`);
    if (progress === total) writeFileSync(until, "");
  };
  // The answer waits for the last step: these SDKs drop steps that arrive together with it.
  const until = join(process.cwd(), "every-step-was-seen");
  await call("asked__progress", { steps: 3, until }, { onprogress });

  asked = await call("fresh__connect", {});
  seen.aborted = text(await proceed(asked, { approved: false }));
  asked = await call("fresh__connect", {});
  seen.connected = (await proceed(asked, { approved: true })).structuredContent.tools;
  await heard;
  seen.names_once_connected = names(await listed());

  // The client holds a list that promises an output; then the approval is taken back.
  execFileSync(pml, ["uninstall", "asked"], { stdio: "ignore" });
  asked = await call("asked__structured", {});
  seen.question_despite_a_promise = [asked.isError, text(asked)];
  const workflow_id = asked.content[1].text.match(/"workflow_id":"([^"]+)"/)[1];
  const refused = await call("asked__structured", { continue_workflow: { workflow_id, approved: false } });
  seen.aborted_despite_a_promise = text(refused);

  const denied = await call("free__roll_dice", {});
  seen.denied = [denied.isError, text(denied).split("\n")[0]];
  await call("free__nothing", {}).catch((error) => {
    seen.unknown = error.code;
  });
  return seen;
}

const deadline = setTimeout(() => {
  console.error("the deadline is over");
  process.exit(1);
}, DEADLINE_MS);
let changed;
const heard = new Promise((resolve) => (changed = resolve));
const client = await connect(() => changed());
const seen = await scenario(client, heard);
await client.close();
clearTimeout(deadline);
console.log(JSON.stringify(seen));
