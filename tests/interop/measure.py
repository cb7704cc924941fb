"""Measures what pml adds to a server: the time to the first `tools/list`, and the time of a call.

    measure.py PML

Installs the filesystem server by pml into a temporary home, then drives the installed program directly and through
pml in turn, and prints medians and ratios. Not a test: numbers depend on the machine. Build pml with `--release`.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

STARTS = 21
CALLS = 500
PACKAGE = "@modelcontextprotocol/server-filesystem@2026.8.31"


class Client:
    def __init__(self, command, home):
        self.child = subprocess.Popen(
            command,
            cwd=home / "project",
            env={**os.environ, "HOME": str(home)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.last = 0

    def request(self, method, params):
        self.last += 1
        self.send({"id": self.last, "method": method, "params": params})
        while True:
            message = json.loads(self.child.stdout.readline())
            if message.get("id") == self.last and "method" not in message:
                return message["result"]

    def send(self, message):
        self.child.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.child.stdin.flush()

    def open(self):
        about = {"name": "measure", "version": "1"}
        self.request("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about})
        self.send({"method": "notifications/initialized"})

    def call(self, name):
        result = self.request("tools/call", {"name": name, "arguments": {"path": "a.txt"}})
        assert result["content"][0]["text"] == "hello\n", result

    def close(self):
        self.child.stdin.close()
        self.child.wait()


def timed(action):
    begin = time.perf_counter()
    action()
    return (time.perf_counter() - begin) * 1000


def first_list(command, home):
    begin = time.perf_counter()
    client = Client(command, home)
    client.open()
    tools = client.request("tools/list", {})["tools"]
    took = (time.perf_counter() - begin) * 1000
    assert len(tools) > 5
    client.close()
    return took


def main(pml):
    with tempfile.TemporaryDirectory() as folder:
        home = pathlib.Path(folder)
        project = home / "project"
        project.mkdir()
        (project / "a.txt").write_text("hello\n")
        server = {"command": "npx", "args": ["-y", PACKAGE, "."]}
        config = {"permissions": {"allow": ["filesystem"]}, "mcpServers": {"filesystem": server}}
        (project / ".pml.json").write_text(json.dumps(config))
        through = [os.path.abspath(pml), "stdio"]
        client = Client(through, home)
        client.open()
        client.call("filesystem__read_text_file")
        client.close()
        program = next(home.rglob("server-filesystem/dist/index.js"))
        direct = ["node", str(program), "."]

        starts = [(first_list(direct, home), first_list(through, home)) for _ in range(STARTS)]
        shown("start to first tools/list", starts)

        clients = [Client(direct, home), Client(through, home)]
        names = ["read_text_file", "filesystem__read_text_file"]
        for client, name in zip(clients, names, strict=True):
            client.open()
            for _ in range(20):
                client.call(name)
        calls = [
            tuple(timed(lambda: client.call(name)) for client, name in zip(clients, names, strict=True))
            for _ in range(CALLS)
        ]
        shown("one call", calls)
        for client in clients:
            client.close()


def shown(what, pairs):
    direct, through = (statistics.median(side) for side in zip(*pairs, strict=True))
    print(f"{what}: direct {direct:.3f} ms, through pml {through:.3f} ms, ratio {through / direct:.3f}")


main(*sys.argv[1:])
