"""Reads payloads of Block Kit with the models of the official SDK of Slack: block_kit.py FILE...

Prints, for each file, what the models complain about, and whether they write the same blocks back.
"""

import json
import sys

from slack_sdk.models.blocks import Block
from slack_sdk.models.views import View


def pruned(value):
    """Leaves out what the models leave out: members that say what is so anyhow."""
    if isinstance(value, dict):
        return {name: pruned(member) for name, member in value.items() if not (name == "emoji" and member is False)}
    if isinstance(value, list):
        return [pruned(member) for member in value]
    return value


def judged(payload):
    complaints = []
    found = []
    for place, given in enumerate(payload["blocks"]):
        try:
            block = Block.parse(given)
            if block is None:
                complaints.append(f"block {place} is unknown: {given['type']}")
                continue
            block.validate_json()
            written = block.to_dict()
            if pruned(json.loads(json.dumps(written))) != pruned(given):
                found.append({"block": place, "given": given, "written": written})
        except Exception as error:  # every complaint counts, of whichever class
            complaints.append(f"block {place}: {error}")
    if payload.get("type") == "modal":
        try:
            View(**payload).validate_json()
        except Exception as error:
            complaints.append(f"view: {error}")
    return {"complaints": complaints, "different": found}


print(json.dumps({name: judged(json.load(open(name, encoding="utf-8"))) for name in sys.argv[1:]}))
