// Lists everything through `pml stdio` by the official TypeScript SDKs and prints the names that client read, as JSON.
//
//     node lists.mjs MODE SDKS PML
//
// The arguments are those of `client.mjs`. What must be seen stands in `tests/it/unreadable_definitions.rs`.

import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const [mode, sdks, pml] = process.argv.slice(2);
const require = createRequire(join(sdks, "package.json"));
const load = (name) => import(pathToFileURL(require.resolve(name)));

const [client_module, stdio_module] =
  mode === "v1"
    ? ["@modelcontextprotocol/sdk/client/index.js", "@modelcontextprotocol/sdk/client/stdio.js"]
    : ["@modelcontextprotocol/client", "@modelcontextprotocol/client/stdio"];
const { Client } = await load(client_module);
const { StdioClientTransport } = await load(stdio_module);
const negotiation = ["v1", "legacy", "auto"].includes(mode) ? mode : { pin: mode };
const client = new Client({ name: "interop", version: "1" }, { versionNegotiation: { mode: negotiation } });
await client.connect(new StdioClientTransport({ command: pml, args: ["stdio"], env: process.env, cwd: process.cwd() }));
const seen = {
  tools: (await client.listTools()).tools.map((tool) => tool.name),
  prompts: (await client.listPrompts()).prompts.map((prompt) => prompt.name),
  resources: (await client.listResources()).resources.map((resource) => [resource.uri, resource.name]),
  templates: (await client.listResourceTemplates()).resourceTemplates.map((template) => template.name),
};
await client.close();
console.log(JSON.stringify(seen));
