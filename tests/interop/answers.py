"""Measures the time from an answer given in one process to the result of the call that waits in another.

    answers.py PML

A client that can show forms calls a tool which asks before every call, and leaves the dialog open; each time
`pml approve CODE` answers from a process of its own. Prints p50 and p99 from two moments to the arrival of the
result: when the answer was recorded (to the millisecond, by `pml log`), and when `pml approve` was started. The
answer comes at a random moment, as from a person: the process that waits looks for answers in intervals, and an answer
right after the question would always meet the beginning of one. Not a test: numbers depend on the machine.
"""

import json
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import time

ASKS = 200

# Longer than the interval at which a waiting process looks for answers.
LONGEST_PAUSE_SECONDS = 0.3


class Client:
    def __init__(self, pml, home):
        self.child = subprocess.Popen(
            [pml, "stdio"], cwd=home / "project", env=environment(home), stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        about = {"name": "answers", "version": "1"}
        params = {"protocolVersion": "2025-06-18", "capabilities": {"elicitation": {}}, "clientInfo": about}
        self.send({"id": "open", "method": "initialize", "params": params})
        self.wait(lambda message: message.get("id") == "open")
        self.send({"method": "notifications/initialized"})

    def send(self, message):
        self.child.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.child.stdin.flush()

    def wait(self, wanted):
        while True:
            message = json.loads(self.child.stdout.readline())
            if wanted(message):
                return message

    def close(self):
        self.child.stdin.close()
        self.child.wait()


def environment(home):
    return {"PATH": os.environ["PATH"], "HOME": str(home), "PML_LOG": "error"}


def percentiles(what, times):
    ordered = sorted(times)
    p50, p99 = (ordered[min(len(ordered) * share // 100, len(ordered) - 1)] for share in (50, 99))
    print(f"{what}: p50 {p50:.1f} ms, p99 {p99:.1f} ms, longest {ordered[-1]:.1f} ms")


def asked_and_answered(client, pml, home, number):
    """Returns the code of the ask, when `pml approve` was started, and when the result came."""
    params = {"name": "sample__add", "arguments": {"a": number, "b": 1}}
    client.send({"id": number, "method": "tools/call", "params": params})
    form = client.wait(lambda message: message.get("method") == "elicitation/create")
    code = re.search(r"code (\w+)$", form["params"]["message"])[1]
    time.sleep(random.uniform(0, LONGEST_PAUSE_SECONDS))
    began_at = time.time()
    approve = subprocess.Popen(
        [pml, "approve", code],
        cwd=home,
        env=environment(home),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    # The result is waited for first: that the command ends must not hide when it came.
    result = client.wait(lambda message: message.get("id") == number and "method" not in message)
    came_at = time.time()
    said, _ = approve.communicate()
    assert approve.returncode == 0, said
    assert result["result"]["structuredContent"] == {"sum": number + 1}, result
    return code, began_at, came_at


def main(pml):
    pml = os.path.abspath(pml)
    with tempfile.TemporaryDirectory() as folder:
        home = pathlib.Path(folder)
        (home / "project").mkdir()
        config = {
            "permissions": {"allow": ["sample"], "ask": ["sample:add"]},
            "mcpServers": {"sample": {"command": pml, "args": ["sample-server"]}},
        }
        (home / "project" / ".pml.json").write_text(json.dumps(config))
        client = Client(pml, home)
        # The first one starts the server.
        asked_and_answered(client, pml, home, 0)
        asks = [asked_and_answered(client, pml, home, number) for number in range(1, ASKS + 1)]
        client.close()
        log = subprocess.run([pml, "log", "--json"], cwd=home, env=environment(home), capture_output=True, check=True)
        recorded_at = {ask["code"]: ask["answeredAt"] for ask in json.loads(log.stdout)["workflows"]}
        percentiles("from the recorded answer", [came_at * 1000 - recorded_at[code] for code, _, came_at in asks])
        percentiles("from the start of `pml approve`", [(came_at - began_at) * 1000 for _, began_at, came_at in asks])


main(*sys.argv[1:])
