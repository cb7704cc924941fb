"""Measures the first model request of real clients in front of pml: bytes with and without `tools`.

Usage: context_cost.py PML FAKE_SERVER CLIENT PROGRAM
Starts an API on the loopback interface that keeps the longest body it is sent and answers with an error, lets CLIENT
(`claude`, `codex` or `gemini`) open a conversation with pml as its only server, and prints the bytes.
"""

import http.server, json, os, subprocess, sys, tempfile, threading, time

pml, fake, client, program = sys.argv[1:5]
SERVERS, TOOLS = 10, 20


class Api(http.server.BaseHTTPRequestHandler):
    longest = b""

    def do_POST(self):
        length = int(self.headers.get("content-length") or 0)
        body = self.rfile.read(length)
        if len(body) > len(Api.longest):
            Api.longest = body
        answer = b'{"type":"error","error":{"type":"invalid_request_error","message":"enough"}}'
        self.send_response(400)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def do_GET(self):
        self.do_POST()

    def log_message(self, *_):
        pass


def tool(number):
    text = ("Searches the records of this service and returns what was found, newest first. "
            "Filters narrow what is returned; a page holds at most fifty records. ")
    properties = {name: {"type": "string", "description": f"The {name} that is looked for, as it is written there."}
                  for name in ("query", "filter", "project", "page")}
    return {"name": f"operation_{number:02}", "description": text + f"Operation {number}.",
            "inputSchema": {"type": "object", "properties": properties, "required": ["query"]}}


def measure(listed):
    Api.longest = b""
    with tempfile.TemporaryDirectory() as home:
        project = os.path.join(home, "project")
        os.mkdir(project)
        tools = os.path.join(home, "tools.json")
        with open(tools, "w") as file:
            json.dump({"tools": [tool(number) for number in range(TOOLS)]}, file)
        server = {"command": fake, "args": ["--answer", "tools/list", tools]}
        if listed:
            server["tools"] = listed
        servers = {f"service{number}": server for number in range(SERVERS)}
        with open(os.path.join(project, ".pml.json"), "w") as file:
            json.dump({"permissions": {"allow": ["*"]}, "mcpServers": servers}, file)
        env = {"PATH": os.environ["PATH"], "HOME": home, "TERM": "dumb", "NO_PROXY": "127.0.0.1,localhost"}
        for name in servers:
            subprocess.run([pml, "approve", "--yes", name], cwd=project, env=env, check=True, capture_output=True)
        api = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Api)
        threading.Thread(target=api.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{api.server_port}"
        entry = {"command": pml, "args": ["stdio"]}
        if client == "claude":
            with open(os.path.join(home, "mcp.json"), "w") as file:
                json.dump({"mcpServers": {"pml": entry}}, file)
            env |= {"ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "dummy", "IS_SANDBOX": "1",
                    "DISABLE_TELEMETRY": "1", "DISABLE_ERROR_REPORTING": "1", "DISABLE_AUTOUPDATER": "1",
                    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "MCP_TIMEOUT": "120000",
                    **({"ENABLE_TOOL_SEARCH": os.environ["ENABLE_TOOL_SEARCH"]} if "ENABLE_TOOL_SEARCH" in os.environ else {})}
            line = [program, "-p", "hello", "--strict-mcp-config", "--mcp-config", os.path.join(home, "mcp.json")]
        elif client == "codex":
            os.mkdir(os.path.join(home, ".codex"))
            with open(os.path.join(home, ".codex/config.toml"), "w") as file:
                file.write(f'model = "gpt-5"\nmodel_provider = "local"\n[model_providers.local]\nname = "local"\n'
                           f'base_url = "{url}/v1"\nwire_api = "responses"\nrequest_max_retries = 0\nstream_max_retries = 0\n'
                           f'[mcp_servers.pml]\ncommand = "{pml}"\nargs = ["stdio"]\nstartup_timeout_sec = 120\n')
            line = [program, "exec", "--skip-git-repo-check", "hello"]
        else:
            os.mkdir(os.path.join(home, ".gemini"))
            with open(os.path.join(home, ".gemini/settings.json"), "w") as file:
                json.dump({"mcpServers": {"pml": entry | {"trust": True, "timeout": 120000}},
                           "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}}}, file)
            env |= {"GEMINI_API_KEY": "dummy", "GOOGLE_GEMINI_BASE_URL": url}
            line = [program, "-p", "hello"]
        try:
            done = subprocess.run(line, cwd=project, env=env, stdin=subprocess.DEVNULL, capture_output=True, timeout=240, text=True)
            said = (done.stdout + done.stderr)[-400:]
        except subprocess.TimeoutExpired as error:
            said = f"timeout {error.stdout} {error.stderr}"[-400:]
        api.shutdown()
        names = sum(Api.longest.count(f"operation_{number:02}".encode()) for number in range(TOOLS))
        print(json.dumps({"client": client, "tools": listed or "all", "bytes": len(Api.longest), "named": names}), flush=True)
        if not Api.longest:
            print(said, flush=True)


measure(None)
measure(["operation_00", "operation_01"])
