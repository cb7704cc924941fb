// Drives a server by the official TypeScript SDKs through everything it has, and prints what that client saw.
//
//     node differential.mjs MODE SDKS PREFIX COMMAND [ARGUMENT ...]
//
// MODE is `v1`, or a mode of the client of v2: `legacy`, `auto`, `2026-07-28`. SDKS is the folder where they are
// installed. PREFIX is what a proxy puts before the names of this server, or `-` where the server is asked directly.
// The working directory and the environment are the server's.
//
// The transcript is one JSON object per line: first every step with its answer, then what the server said and asked by
// itself, in its order. Ids, moments and random words are replaced, so that two transcripts of one server are equal.
// What a step could not do stands in the transcript too: nothing but a broken script ends this program with an error.

import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

// Longer than anything here may take on a busy machine; reaching it is a failure.
const DEADLINE_MS = 100_000;

// How long something is waited for that a server says by itself. Reaching it is written down as a difference.
const PATIENCE_MS = 10_000;

// How many resources of a list are read: enough to meet each kind.
const READ_AT_MOST = 8;

const [mode, sdks, given, command, ...args] = process.argv.slice(2);
const prefix = given === "-" ? "" : given;

// Modules are resolved where the SDKs are installed, not beside this file.
const require = createRequire(join(sdks, "package.json"));
const load = (name) => import(pathToFileURL(require.resolve(name)));

// The arguments of the tools, once per call; a tool that is not here is called without any.
const ARGUMENTS = {
  // server-everything
  echo: [{ message: "\u{1f980} \u202e \"quoted\"\n\\" }, {}, { message: 7 }],
  "get-annotated-message": [
    { messageType: "error", includeImage: true },
    { messageType: "success" },
    { messageType: "debug", includeImage: false },
    { messageType: "no such type" },
  ],
  "get-resource-links": [{ count: 3 }, { count: 11 }],
  "get-resource-reference": [
    { resourceType: "Text", resourceId: 1 },
    { resourceType: "Blob", resourceId: 2 },
    { resourceType: "Text", resourceId: -1 },
  ],
  "get-structured-content": [{ location: "Chicago" }, { location: "Atlantis" }],
  "get-sum": [{ a: 1e300, b: -0.5 }, { a: 2 }],
  "gzip-file-as-resource": [
    { name: "hello.gz", data: "data:text/plain,hello", outputType: "resource" },
    { name: "linked.gz", data: "data:text/plain,hello", outputType: "resourceLink" },
  ],
  "trigger-sampling-request": [{ prompt: "Say something", maxTokens: 5 }],
  "trigger-url-elicitation": [
    { url: "https://example.com/consent", message: "Open it", elicitationId: "fixed" },
    { url: "https://example.com/consent", message: "Open it", elicitationId: "fixed", errorPath: true },
  ],
  "trigger-sampling-request-async": [{ prompt: "Say something", maxTokens: 5 }],
  // The servers of these tests.
  add: [{ a: 2, b: 3.5 }, { a: "no number", b: 1 }],
  ask: [{ question: "What is your name?" }],
  ask_url: [{ url: "https://example.com/consent" }],
  sample: [{ prompt: "Say something" }],
  ask_everything: [{ question: "All of it?" }],
};

// Tools that have a step of their own, and one that tells the environment, which a proxy makes.
const APART = new Set([
  "get-env",
  "trigger-long-running-operation",
  "toggle-simulated-logging",
  "toggle-subscriber-updates",
  "simulate-research-query",
  "log",
  "touch",
  "work",
]);

// The values of prompt arguments and of the variables of templates.
const VALUES = { city: "Paris", department: "Sales", name: "Eve", resourceType: "Text", resourceId: "3" };

// What the members of a Modern result are made of; a Legacy server behind a proxy has them too.
const ERA = ["resultType", "ttlMs", "cacheScope"];

const STRANGERS = /\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b|\b[0-9a-f]{32}\b/g;

/** Replaces what differs from run to run; an id keeps one name wherever it stands. */
class Names {
  ids = new Map();

  text(text) {
    return text
      .replace(STRANGERS, (id) => {
        if (!this.ids.has(id)) this.ids.set(id, `ID-${this.ids.size + 1}`);
        return this.ids.get(id);
      })
      .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?/g, "MOMENT")
      .replace(/created at \d+:\d\d:\d\d.*$/gm, "created at MOMENT")
      // Which level a simulated message has is drawn by lot.
      .replace(/^(Debug|Info|Notice|Warning|Error|Critical|Alert|Emergency)[- ]level[- ]message/, "SIMULATED message");
  }

  value(value, key) {
    if (typeof value === "string") {
      if (key === "blob") return { decoded: this.text(Buffer.from(value, "base64").toString("latin1")) };
      return this.text(value);
    }
    if (Array.isArray(value)) return value.map((one) => this.value(one));
    if (value === null || typeof value !== "object") return value;
    const members = Object.entries(value).map(([name, one]) => [name, this.value(one, name)]);
    return Object.fromEntries(members);
  }
}

/** Without the members that only one era has. */
function withoutEra(result) {
  if (result === null || typeof result !== "object") return result;
  const rest = Object.fromEntries(Object.entries(result).filter(([name]) => !ERA.includes(name)));
  if (rest._meta) {
    const meta = Object.entries(rest._meta).filter(([name]) => name !== "io.modelcontextprotocol/serverInfo");
    if (meta.length === 0) delete rest._meta;
    else rest._meta = Object.fromEntries(meta);
  }
  return rest;
}

/** Everything that came, as it stood on the wire. */
class Record {
  names = new Names();
  steps = [];
  heard = [];
  changed = new Set();
  answers = [];
  tokens = new Map();
  sent = new Map();
  cancelled = new Set();
  label = "connect";

  /** Hears what goes through a transport, before the client makes something of it. */
  tap(transport) {
    const send = transport.send.bind(transport);
    transport.send = (message, options) => {
      if (message.method !== undefined && message.id !== undefined) this.sent.set(message.id, this.label);
      const token = message.params?._meta?.progressToken;
      if (token !== undefined) this.tokens.set(token, this.label);
      return send(message, options);
    };
    // A client calls whoever listened before it.
    transport.onmessage = (message) => this.receive(message);
    return transport;
  }

  receive(message) {
    const { method, params } = message;
    if (method === undefined) {
      // A question in a result is written down where it is answered; some servers answer what was cancelled.
      const counts = message.result?.resultType !== "input_required" && !this.cancelled.has(this.sent.get(message.id));
      if (counts) this.answers.push(message);
    } else if (message.id !== undefined) {
      // Likewise a question in a request.
    } else if (method === "notifications/tools/list_changed") {
      // A proxy whose list was complete from the beginning has nothing to tell where a server has.
    } else if (method.endsWith("/list_changed")) {
      // A proxy may tell of several changes at once.
      this.changed.add(method);
    } else if (method === "notifications/progress") {
      const label = this.tokens.get(params.progressToken);
      const rest = { ...params, progressToken: label ?? "UNKNOWN" };
      // How many steps a call makes before its cancellation reaches it is a matter of the clock.
      const late = label === "cancellation" && params.progress > 1;
      if (!late) this.say({ method, params: rest });
    } else if (method === "notifications/message") {
      const { level, ...rest } = withoutSubscription(params);
      const random = typeof params.data === "string" && /[- ]level[- ]message/.test(params.data);
      this.say({ method, params: { level: random ? "ANY" : level, ...rest } });
    } else if (method !== "notifications/subscriptions/acknowledged") {
      this.say({ method, params: withoutSubscription(params) });
    }
  }

  say(something) {
    this.heard.push(this.names.value(something));
    this.woken?.();
  }

  /** Waits until something was said; what does not come is written down. */
  async until(what, condition) {
    const end = Date.now() + PATIENCE_MS;
    while (!this.heard.some(condition)) {
      const left = end - Date.now();
      if (left <= 0) return this.steps.push({ step: what, missing: true });
      await new Promise((wake) => {
        this.woken = wake;
        setTimeout(wake, Math.min(left, 100));
      });
    }
  }

  /** Runs a step and writes down its answers. */
  async step(label, act, pick = (answers) => answers) {
    this.label = label;
    this.answers = [];
    let trouble;
    try {
      await act();
    } catch (error) {
      // An answer of the server is in the record; what the client refuses by itself is not.
      if (this.answers.length === 0) trouble = `${error.code ?? error.name}: ${error.message}`;
    }
    const answers = this.answers.map(({ result, error }) => (error ? { error } : { result: withoutEra(result) }));
    const line = { step: label, answers: this.names.value(pick(answers)) };
    if (trouble) line.trouble = this.names.text(trouble);
    this.steps.push(line);
    return answers;
  }
}

function withoutSubscription(params) {
  const meta = params?._meta;
  if (!meta || !("io.modelcontextprotocol/subscriptionId" in meta)) return params;
  const { "io.modelcontextprotocol/subscriptionId": _, ...rest } = meta;
  const { _meta, ...others } = params;
  return Object.keys(rest).length === 0 ? others : { ...others, _meta: rest };
}

/** Fills in a form: each field by its kind. */
function filled(schema) {
  const value = (field) => {
    if (field.default !== undefined) return field.default;
    if (field.oneOf) return field.oneOf[0].const;
    if (field.enum) return field.enum[0];
    if (field.type === "array") return [(field.items.anyOf?.[0].const ?? field.items.enum?.[0])];
    if (field.type === "boolean") return true;
    if (field.type === "integer" || field.type === "number") return field.minimum ?? 7;
    if (field.format === "email") return "ada@example.com";
    if (field.format === "uri") return "https://example.com/";
    if (field.format === "date") return "1815-12-10";
    return "Ada";
  };
  return Object.fromEntries(Object.entries(schema.properties).map(([name, field]) => [name, value(field)]));
}

const ROOTS = [{ uri: "file:///one", name: "One" }, { uri: "file:///two" }];

/** Answers what a server asks of its client, always alike. */
function answering(record) {
  let roots = ROOTS;
  const asked = (method, params) => {
    const { _meta, ...rest } = params ?? {};
    record.say({ asked: method, params: rest, during: record.label });
  };
  return {
    more: () => (roots = [...ROOTS, { uri: "file:///three", name: "Three" }]),
    "elicitation/create": ({ params }) => {
      asked("elicitation/create", params);
      if (params.mode === "url") return { action: "accept" };
      return { action: "accept", content: filled(params.requestedSchema) };
    },
    "sampling/createMessage": ({ params }) => {
      asked("sampling/createMessage", params);
      return { model: "fixed", role: "assistant", content: { type: "text", text: "sampled" }, stopReason: "endTurn" };
    },
    "roots/list": ({ params }) => {
      asked("roots/list", params);
      return { roots };
    },
  };
}

const about = { name: "differential", version: "1" };
const capabilities = { roots: { listChanged: true }, sampling: {}, elicitation: { form: {}, url: {} } };

async function connect(record, answers) {
  const parameters = { command, args, env: process.env, cwd: process.cwd(), stderr: "ignore" };
  let client;
  let transport;
  if (mode === "v1") {
    const { Client } = await load("@modelcontextprotocol/sdk/client/index.js");
    const { StdioClientTransport } = await load("@modelcontextprotocol/sdk/client/stdio.js");
    const types = await load("@modelcontextprotocol/sdk/types.js");
    client = new Client(about, { capabilities });
    client.setRequestHandler(types.ElicitRequestSchema, answers["elicitation/create"]);
    client.setRequestHandler(types.CreateMessageRequestSchema, answers["sampling/createMessage"]);
    client.setRequestHandler(types.ListRootsRequestSchema, answers["roots/list"]);
    transport = new StdioClientTransport(parameters);
    client.any = types.ResultSchema;
  } else {
    const { Client } = await load("@modelcontextprotocol/client");
    const { StdioClientTransport } = await load("@modelcontextprotocol/client/stdio");
    const negotiation = ["legacy", "auto"].includes(mode) ? mode : { pin: mode };
    client = new Client(about, { versionNegotiation: { mode: negotiation }, capabilities });
    for (const method of ["elicitation/create", "sampling/createMessage", "roots/list"]) {
      client.setRequestHandler(method, answers[method]);
    }
    transport = new StdioClientTransport(parameters);
  }
  await client.connect(record.tap(transport));
  return client;
}

/** The script. */
async function drive(client, record, answers) {
  const has = client.getServerCapabilities() ?? {};
  const modern = mode !== "v1" && client.getProtocolEra() === "modern";
  const own = (name) => name.startsWith(prefix);
  const bare = (named) => ({ ...named, name: named.name.slice(prefix.length) });
  const whole = (name) => prefix + name;
  const fresh = { cacheMode: "refresh" };
  const call = (name, given, options) => {
    const params = { name: whole(name), arguments: given };
    return mode === "v1" ? client.callTool(params, undefined, options) : client.callTool(params, options);
  };

  /** Lists all pages and writes down what stands on them together. */
  const list = async (step, key, ask, named) => {
    const together = (found) => {
      const items = found.flatMap(({ result }) => result?.[key] ?? []);
      return named ? items.filter((item) => own(item.name)).map(bare) : items;
    };
    const found = await record.step(
      step,
      async () => {
        let cursor;
        do {
          ({ nextCursor: cursor } = await ask(cursor === undefined ? {} : { cursor }));
        } while (cursor !== undefined);
      },
      (found) => (found.some(({ error }) => error) ? found : together(found)),
    );
    return together(found);
  };

  record.steps.push({ step: "capabilities", answers: record.names.value(has) });
  // The first call starts a server that is behind a proxy.
  const tools = await list("tools/list", "tools", (params) => client.listTools(params, fresh), true);
  const named = new Set(tools.map(({ name }) => name));
  if (named.has("echo")) await record.step("the first call", () => call("echo", { message: "hello" }));
  // Only this server asks for the roots by itself, a while after its start.
  if (named.has("get-roots-list")) {
    await record.until("the roots are asked for", ({ params }) => `${params?.data}`.startsWith("Roots updated"));
  }
  if (has.logging && !modern) await record.step("logging/setLevel debug", () => client.setLoggingLevel("debug"));

  for (const { name } of tools) {
    if (APART.has(name)) continue;
    for (const given of ARGUMENTS[name] ?? [{}]) {
      await record.step(`tools/call ${name} ${JSON.stringify(given)}`, () => call(name, given));
    }
  }
  await record.step("a tool that does not exist", () => call("no-such-tool", {}));

  const resources = await list("resources/list", "resources", (params) => client.listResources(params, fresh));
  const templates = await list("resources/templates/list", "resourceTemplates", (params) =>
    client.listResourceTemplates(params, fresh),
  );
  for (const { uri } of resources.slice(0, READ_AT_MOST)) {
    await record.step(`resources/read ${uri}`, () => client.readResource({ uri }, fresh));
  }
  for (const { uriTemplate } of templates) {
    for (const value of ["3", "nothing"]) {
      const uri = uriTemplate.replace(/\{[^}]+\}/g, value);
      await record.step(`resources/read ${uri}`, () => client.readResource({ uri }, fresh));
    }
    const variable = uriTemplate.match(/\{([^}]+)\}/)?.[1] ?? "none";
    for (const value of ["3", "P", "nothing"]) {
      const ref = { type: "ref/resource", uri: uriTemplate };
      const argument = { name: variable, value };
      await record.step(`complete ${uriTemplate} ${value}`, () => client.complete({ ref, argument }));
    }
  }
  await record.step("a resource that does not exist", () => client.readResource({ uri: "no://such/resource" }));

  const prompts = await list("prompts/list", "prompts", (params) => client.listPrompts(params, fresh), true);
  for (const prompt of prompts) {
    const entries = (prompt.arguments ?? []).map(({ name }) => [name, VALUES[name] ?? "some"]);
    const given = Object.fromEntries(entries);
    const name = whole(prompt.name);
    await record.step(`prompts/get ${prompt.name}`, () => client.getPrompt({ name, arguments: given }));
    await record.step(`prompts/get ${prompt.name} without arguments`, () => client.getPrompt({ name }));
    for (const [argument] of entries) {
      for (const value of ["", "E", "3"]) {
        const params = {
          ref: { type: "ref/prompt", name },
          argument: { name: argument, value },
          context: { arguments: given },
        };
        await record.step(`complete ${prompt.name} ${argument} ${value}`, () => client.complete(params));
      }
    }
  }
  await record.step("a prompt that does not exist", () => client.getPrompt({ name: whole("no-such-prompt") }));

  if (has.resources?.subscribe || modern) {
    const uri = resources[0]?.uri;
    const updated = ({ method, params }) => method === "notifications/resources/updated" && params.uri === uri;
    let subscription;
    if (modern) {
      await record.step("subscriptions/listen", async () => {
        subscription = await client.listen({ resourceSubscriptions: [uri], promptsListChanged: true });
      }, () => []);
    } else {
      await record.step("resources/subscribe", () => client.subscribeResource({ uri }));
    }
    const touch = named.has("touch") ? "touch" : "toggle-subscriber-updates";
    await record.step("subscribed resources change", () => call(touch, named.has("touch") ? { uri } : {}));
    await record.until("the update is told", updated);
    if (touch !== "touch") await record.step("they rest again", () => call(touch, {}));
    if (modern) await subscription?.close();
    else await record.step("resources/unsubscribe", () => client.unsubscribeResource({ uri }));
    if (touch === "touch") await record.step("nobody is told of this change", () => call(touch, { uri }));
  }

  if (named.has("toggle-simulated-logging")) {
    await record.step("the server logs", () => call("toggle-simulated-logging", {}));
    const logged = ({ params }) => `${params?.data}`.startsWith("SIMULATED");
    await record.until("a log message comes", logged);
    await record.step("the server stops to log", () => call("toggle-simulated-logging", {}));
  }
  if (named.has("log")) {
    for (const level of ["debug", "error"]) {
      if (has.logging && !modern) await record.step(`logging/setLevel ${level}`, () => client.setLoggingLevel(level));
      await record.step(`log at ${level}`, () => call("log", {}));
    }
  }

  const [work, whole_work, long_work] = named.has("work")
    ? ["work", { steps: 3 }, { steps: 100_000 }]
    : ["trigger-long-running-operation", { duration: 0.3, steps: 3 }, { duration: 100, steps: 1000 }];
  if (named.has(work)) {
    await record.step("progress", () => call(work, whole_work, { onprogress: () => {} }));
    const leave = new AbortController();
    await record.step("cancellation", () => {
      const onprogress = () => {
        record.cancelled.add("cancellation");
        leave.abort("enough");
      };
      return call(work, long_work, { onprogress, signal: leave.signal });
    });
    if (named.has("echo")) await record.step("after it", () => call("echo", { message: "still here" }));
  }

  if (!modern) {
    answers.more();
    const before = record.heard.length;
    await record.step("roots change", () => client.sendRootsListChanged());
    if (named.has("get-roots-list")) {
      const told = (said) => record.heard.indexOf(said) >= before && `${said.params?.data}`.startsWith("Roots updated");
      await record.until("the roots are asked for again", told);
      await record.step("the new roots", () => call("get-roots-list", {}));
    }
    if (named.has("roots")) await record.step("the new roots", () => call("roots", {}));
  }

  if (named.has("simulate-research-query") && mode === "v1") {
    const params = { name: whole("simulate-research-query"), arguments: { topic: "python", ambiguous: true } };
    const summary = [];
    // Answers to polls come as often as the clock will have it; what the client makes of them does not.
    await record.step("a task", async () => {
      const stream = client.experimental.tasks.callToolStream(params, undefined, { task: { ttl: 60_000 } });
      for await (const { type, task, result, error } of stream) {
        const last = summary.at(-1);
        const line = { type, status: task?.status, result, error: error?.message };
        if (JSON.stringify(last) !== JSON.stringify(line)) summary.push(line);
      }
    }, () => summary);
    await record.step("tasks/list", () => client.experimental.tasks.listTasks(), (found) =>
      found.map(({ result, error }) => error ?? (result.tasks ?? []).map(({ status }) => status)),
    );
  }

  await record.step("a method that does not exist", () => client.request({ method: "no/such", params: {} }, client.any ?? loose), (found) =>
    // The words and the code are those of whoever answers.
    found.map(({ error }) => error !== undefined),
  );
  if (!modern) await record.step("ping", () => client.ping());
}

/** A schema of the client of v2 that takes anything. */
const loose = { "~standard": { version: 1, vendor: "any", validate: (value) => ({ value }) } };

const deadline = setTimeout(() => {
  console.error(`the deadline is over in step ${record.label}`);
  process.exit(1);
}, DEADLINE_MS);
const record = new Record();
const answers = answering(record);
const client = await connect(record, answers);
await drive(client, record, answers);
await client.close();
clearTimeout(deadline);
for (const line of record.steps) console.log(JSON.stringify(line));
for (const line of record.heard) console.log(JSON.stringify({ heard: line }));
console.log(JSON.stringify({ changed: [...record.changed].sort() }));
