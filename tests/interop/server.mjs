// A server on the official TypeScript SDK, of either line, with something of everything; `differential.mjs` drives it.
//
//     node server.mjs LINE SDKS
//
// LINE is `v1` (Legacy era), `v2` (either era) or `modern` (the SDK of v2, which refuses `initialize`). SDKS is the
// folder where they are installed. Its tools, resources and prompts are those of `server.py`.

import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [line, sdks] = process.argv.slice(2);

// Modules are resolved where the SDKs are installed, not beside this file.
const require = createRequire(join(sdks, "package.json"));
const load = (name) => import(pathToFileURL(require.resolve(name)));

const { z } = await load("zod");
const STEP_MS = 20;
const KNOWN = ["Paris", "Prague", "Evora", "3"];

const person = {
  type: "object",
  properties: {
    name: { type: "string", title: "Name" },
    age: { type: "integer", title: "Age", description: "In years", default: 36, minimum: 0, maximum: 200 },
  },
  required: ["name"],
};
const text = (text) => ({ content: [{ type: "text", text }] });
const named = ({ name, age }) => `${name} is ${age}`;
const sampling = (prompt) => ({
  messages: [{ role: "user", content: { type: "text", text: prompt } }],
  maxTokens: 9,
});
const uris = (roots) => roots.map(({ uri }) => uri).join(" ");

/** Asks in the middle of a call, as the era wants it: by requests, or by a result that wants answers. */
async function asking(server, extra, { mcp, questions }) {
  if (line === "v1") {
    const answers = {};
    for (const [key, { method, params }] of Object.entries(questions)) {
      if (method === "elicitation/create") answers[key] = await server.server.elicitInput(params);
      if (method === "sampling/createMessage") answers[key] = await server.server.createMessage(params);
      if (method === "roots/list") answers[key] = await server.server.listRoots();
    }
    return { answers };
  }
  const answers = extra.mcpReq.inputResponses;
  if (answers && Object.keys(questions).every((key) => key in answers)) return { answers };
  const { inputRequired } = mcp;
  const builders = {
    "elicitation/create": (params) => (params.mode === "url" ? inputRequired.elicitUrl(params) : inputRequired.elicit(params)),
    "sampling/createMessage": inputRequired.createMessage,
    "roots/list": inputRequired.listRoots,
  };
  const requests = Object.entries(questions).map(([key, { method, params }]) => [key, builders[method](params)]);
  // Characters that an echo must not touch.
  const requestState = "st.ate/with+special=chars and spaces \"quotes\"\n\ttab \u{1f980}";
  return { wanted: inputRequired({ inputRequests: Object.fromEntries(requests), requestState }) };
}

function build(mcp) {
  const { McpServer, ResourceTemplate, completable } = mcp;
  const capabilities = { logging: {}, resources: { subscribe: true, listChanged: true } };
  const server = new McpServer({ name: "everything-typescript", version: "1" }, { capabilities });
  const tool = (name, description, shape, run, more = {}) =>
    server.registerTool(name, { description, inputSchema: z.object(shape), ...more }, run);
  /** A tool that asks and makes a text of the answers. */
  const asker = (name, description, shape, questions, told) =>
    tool(name, description, shape, async (given, extra) => {
      const { answers, wanted } = await asking(server, extra, { mcp, questions: questions(given) });
      return wanted ?? text(told(answers));
    });

  tool("echo", "Says it again", { message: z.string() }, ({ message }) => text(message));
  tool(
    "add",
    "Adds",
    { a: z.number(), b: z.number() },
    ({ a, b }) => ({ ...text(JSON.stringify({ sum: a + b })), structuredContent: { sum: a + b } }),
    { title: "Addition", outputSchema: z.object({ sum: z.number() }) },
  );
  tool("fail", "Fails", {}, () => {
    throw new Error("it went wrong");
  });
  tool("content", "Every kind of content", {}, () => ({
    content: [
      { type: "text", text: "annotated", annotations: { audience: ["user"], priority: 0.5 }, _meta: { "x/y": 1 } },
      { type: "image", data: "aW1hZ2U=", mimeType: "image/png" },
      { type: "audio", data: "YXVkaW8=", mimeType: "audio/wav" },
      { type: "resource_link", uri: "demo://text", name: "text", mimeType: "text/plain" },
      { type: "resource", resource: { uri: "demo://text", mimeType: "text/plain", text: "embedded" } },
    ],
    _meta: { "x/result": [1, null] },
  }));

  const form = (message) => ({ method: "elicitation/create", params: { mode: "form", message, requestedSchema: person } });
  asker("ask", "Asks by a form", { question: z.string() }, ({ question }) => ({ person: form(question) }), ({ person }) =>
    person.action === "accept" ? named(person.content) : person.action,
  );
  asker(
    "ask_url",
    "Asks for consent on a page",
    { url: z.string() },
    ({ url }) => {
      const params = { mode: "url", message: "Open it", url };
      if (line === "v1") params.elicitationId = "fixed";
      return { consent: { method: "elicitation/create", params } };
    },
    ({ consent }) => consent.action,
  );
  asker(
    "sample",
    "Asks a model",
    { prompt: z.string() },
    ({ prompt }) => ({ said: { method: "sampling/createMessage", params: sampling(prompt) } }),
    ({ said }) => `${said.model}: ${said.content.text}`,
  );
  asker("roots", "Asks for the roots", {}, () => ({ found: { method: "roots/list" } }), ({ found }) => uris(found.roots));
  asker(
    "ask_everything",
    "Asks for several things at once",
    { question: z.string() },
    ({ question }) => ({ person: form(question), found: { method: "roots/list" } }),
    ({ person, found }) => `${named(person.content)} with ${found.roots.length} roots`,
  );

  tool("work", "Tells its progress", { steps: z.number() }, async ({ steps }, extra) => {
    const { signal, _meta } = line === "v1" ? extra : extra.mcpReq;
    const tell = line === "v1" ? extra.sendNotification : extra.mcpReq.notify;
    const progressToken = _meta?.progressToken;
    for (let step = 1; step <= steps && !signal.aborted; step++) {
      const params = { progressToken, progress: step, total: steps, message: `step ${step}` };
      if (progressToken !== undefined) await tell({ method: "notifications/progress", params });
      await new Promise((wake) => setTimeout(wake, STEP_MS));
    }
    return text("worked");
  });
  tool("log", "Logs at two levels", {}, async (_, extra) => {
    const log = (level, data) =>
      line === "v1" ? server.sendLoggingMessage({ level, data }) : extra.mcpReq.log(level, data);
    await log("info", "of no importance");
    await log("error", "of importance");
    return text("logged");
  });
  tool("touch", "Tells that a resource changed", { uri: z.string() }, async ({ uri }) => {
    await server.server.sendResourceUpdated({ uri });
    return text("touched");
  });
  let grown = 0;
  tool("grow", "Adds a tool, a resource and a prompt", {}, () => {
    grown += 1;
    server.registerPrompt(`grown-${grown}`, { description: "Grown" }, () => ({
      messages: [{ role: "user", content: { type: "text", text: "grown" } }],
    }));
    return text("grew");
  });

  const plain = { mimeType: "text/plain" };
  server.registerResource("text", "demo://text", { title: "A text", ...plain }, (uri) => ({
    contents: [{ uri: `${uri}`, ...plain, text: "a text\n" }],
  }));
  const every = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte)).toString("base64");
  server.registerResource("blob", "demo://blob", { mimeType: "application/octet-stream" }, (uri) => ({
    contents: [{ uri: `${uri}`, mimeType: "application/octet-stream", blob: every }],
  }));
  const complete = (value) => KNOWN.filter((known) => known.startsWith(value));
  const template = new ResourceTemplate("demo://items/{item}", { list: undefined, complete: { item: complete } });
  server.registerResource("items", template, plain, (uri, { item }) => {
    if (item === "nothing") throw new Error("there is no such item");
    return { contents: [{ uri: `${uri}`, ...plain, text: `item ${item}` }] };
  });

  const argsSchema = { name: completable(z.string(), complete), city: completable(z.string(), complete).optional() };
  const greeting = { title: "A greeting", argsSchema: line === "v1" ? argsSchema : z.object(argsSchema) };
  server.registerPrompt("greet", greeting, ({ name, city }) => ({
    messages: [{ role: "user", content: { type: "text", text: `Greet ${name} of ${city ?? "Paris"}.` } }],
  }));
  server.registerPrompt("plain", { description: "Without arguments" }, () => ({
    messages: [{ role: "user", content: { type: "text", text: "Plain." } }],
  }));
  return server;
}

if (line === "v1") {
  const { McpServer, ResourceTemplate } = await load("@modelcontextprotocol/sdk/server/mcp.js");
  const { completable } = await load("@modelcontextprotocol/sdk/server/completable.js");
  const { StdioServerTransport } = await load("@modelcontextprotocol/sdk/server/stdio.js");
  const { SubscribeRequestSchema, UnsubscribeRequestSchema } = await load("@modelcontextprotocol/sdk/types.js");
  const server = build({ McpServer, ResourceTemplate, completable });
  const subscribed = new Set();
  const tell = server.server.sendResourceUpdated.bind(server.server);
  server.server.sendResourceUpdated = (params) => (subscribed.has(params.uri) ? tell(params) : undefined);
  server.server.setRequestHandler(SubscribeRequestSchema, ({ params }) => (subscribed.add(params.uri), {}));
  server.server.setRequestHandler(UnsubscribeRequestSchema, ({ params }) => (subscribed.delete(params.uri), {}));
  await server.connect(new StdioServerTransport());
} else {
  const mcp = await load("@modelcontextprotocol/server");
  const { serveStdio } = await load("@modelcontextprotocol/server/stdio");
  serveStdio(() => build(mcp), { legacy: line === "modern" ? "reject" : "serve" });
}
