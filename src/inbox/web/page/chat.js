// Draws the conversation of a run from the lines of its log, each of which comes once and in order.
// All text is inserted as text, never as markup.

import { noteShift } from "/cards.js";
import { h } from "/parts.js";
import { ToolView, describeCost, describeLength, excerpt, visible } from "/tools.js";

const ENTRIES_SHOWN = 3_000; // a run of days; what is older leaves the page
const RECEIPTS = { sent: "sent", queued: "queued", started: "started", completed: "done", cancelled: "dropped" };
const PRIORITIES = { now: "now", later: "after the turn" };
const ASKING = /^(AskUserQuestion|mcp__pml__ask_user\w*)$/; // their panel says it all

/** Draws paragraphs, fenced code, `code` and **bold**; anything else stays as it was written. */
function drawText(text) {
	const parts = visible(text).split(/^```[^\n]*\n?/m);
	return parts.flatMap((part, at) => {
		if (at % 2 === 1) return [h("pre.code-block", { tabIndex: 0, role: "region", "aria-label": "Code" }, part.replace(/\n$/, ""))];
		return part.split(/\n{2,}/).filter((paragraph) => paragraph.trim()).map((paragraph) => h("p", ...drawInline(paragraph.replace(/^\n|\n$/g, ""))));
	});
}

const drawInline = (text) =>
	text.split(/(`[^`\n]+`|\*\*[^*\n]+\*\*)/).map((piece) => {
		if (/^`.+`$/.test(piece)) return h("code", piece.slice(1, -1));
		return /^\*\*.+\*\*$/.test(piece) ? h("b", piece.slice(2, -2)) : piece;
	});

const resultText = (content) => (typeof content === "string" ? content : (content ?? []).map((block) => block.text ?? `(${block.type})`).join("\n"));

const STATES = {
	parked: "Parked: the agent waits for an answer and costs nothing. Answer above, and it goes on.",
	lost: "The process of this run is gone.",
	done: "The run is over.",
	failed: "The agent failed.",
	stopped: "The run was stopped.",
};

export class Chat {
	/** `onSlot(id, slot)` puts the panel of an ask into its place; `onMessage(uuid)` hears what the run has taken. */
	constructor(root, { onSlot, onMessage }) {
		Object.assign(this, { root, onSlot, onMessage, project: "" });
		this.clear();
	}

	clear() {
		this.tools = new Map(); // id -> ToolView
		this.said = new Map(); // uuid -> the receipt of a person's message
		this.calls = new Map(); // ask -> the call that waits for it
		this.live = null; // { element, text }: what the model is saying
		this.root.replaceChildren();
	}

	add(element, at) {
		element.dataset.at = at ?? 0;
		this.root.append(element);
		if (this.root.children.length > ENTRIES_SHOWN) this.dropOldest();
		return element;
	}

	/** What waits for a person stays. */
	dropOldest() {
		const oldest = [...this.root.children].find((element) => !element.querySelector("[data-state=pending]"));
		if (!oldest) return;
		this.tools.delete(oldest.dataset.tool);
		oldest.remove();
		noteShift(this.root);
	}

	/** Inserts what has no place in the log after what happened before it. */
	insertByTime(element, at) {
		const later = [...this.root.children].find((other) => Number(other.dataset.at) > at);
		element.dataset.at = at;
		this.root.insertBefore(element, later ?? null);
		noteShift(element);
	}

	take(line, at) {
		const isSub = Boolean(line.parent_tool_use_id);
		switch (line.type) {
			case "pml":
				return this.takeOwn(line, at);
			case "assistant":
				return this.takeAssistant(line.message?.content ?? [], at, isSub);
			case "user":
				return this.takeResults(line.message?.content, at);
			case "command_lifecycle":
				return this.setReceipt(line.command_uuid, line.state);
			case "result":
				return this.takeTurn(line, at);
		}
	}

	takeOwn(line, at) {
		switch (line.event) {
			case "text":
				this.live ??= { element: this.add(h("div.agent.live"), at), text: "" };
				this.live.text += line.text;
				return this.drawLive();
			case "message":
				return this.takeMessage(line, at);
			case "ask":
				return this.takeAsk(line, at);
			case "answered":
				return this.setWaiting(line.id, "running");
			case "note":
				return this.add(h("p.note", visible(line.text)), at);
			case "omitted":
				return this.add(h("p.note", `A line of ${Math.ceil(line.bytes / 1024)} kB was left out.`), at);
			case "state": {
				const name = line.state?.outcome ?? line.state?.name;
				if (STATES[name]) this.add(h("p.note.end", STATES[name]), at);
			}
		}
	}

	// --- what the model says ---

	/** Draws at most once for each frame, however fast the pieces come. */
	drawLive() {
		if (this.isDrawing) return;
		this.isDrawing = true;
		requestAnimationFrame(() => {
			this.isDrawing = false;
			this.live?.element.replaceChildren(...drawText(this.live.text));
		});
	}

	endLive(text = this.live?.text) {
		if (!this.live) return null;
		const { element } = this.live;
		this.live = null;
		element.classList.remove("live");
		element.replaceChildren(...drawText(text));
		return element;
	}

	takeAssistant(blocks, at, isSub) {
		const text = blocks.filter((block) => block.type === "text").map((block) => block.text).join("\n\n");
		if (text.trim()) {
			const isLive = !isSub && this.live;
			if (isLive) this.endLive(text);
			else this.add(h(isSub ? "div.agent.sub" : "div.agent", ...drawText(text)), at);
		}
		for (const block of blocks) {
			if (block.type !== "tool_use" || this.tools.has(block.id)) continue;
			if (!isSub) this.endLive();
			const tool = new ToolView(block, { at, project: this.project });
			tool.element.classList.toggle("sub", isSub);
			this.tools.set(block.id, tool);
			this.add(tool.element, at);
		}
	}

	takeResults(content, at) {
		if (!Array.isArray(content)) return;
		for (const block of content) {
			const tool = block.type === "tool_result" && this.tools.get(block.tool_use_id);
			if (tool) tool.end(block.is_error ? "failed" : "done", { at, result: resultText(block.content) });
		}
	}

	takeTurn(line, at) {
		this.endLive();
		for (const tool of this.tools.values()) if (["running", "waiting"].includes(tool.state) && line.stop_reason !== "tool_deferred") tool.end("gone");
		const facts = [line.num_turns > 1 && `${line.num_turns} steps`, line.duration_ms && describeLength(line.duration_ms), describeCost(line.total_cost_usd)];
		const isFailed = line.is_error || line.subtype !== "success";
		const why = isFailed && (line.errors?.join("\n") || line.result || line.subtype);
		const headline = line.stop_reason === "tool_deferred" ? "Put off" : isFailed ? "Turn failed" : "Turn done";
		const entry = h("div.turn", h("span", [headline, ...facts].filter(Boolean).join(" · ")));
		entry.classList.toggle("failed", Boolean(isFailed));
		this.add(entry, at);
		if (why) this.add(h("p.note.failed", excerpt(visible(why))), at);
	}

	// --- what the person says ---

	takeMessage({ uuid, text, images, priority }, at) {
		this.onMessage(uuid);
		if (this.said.has(uuid)) return;
		const receipt = h("span.receipt", RECEIPTS.sent);
		const more = [images > 0 && `${images} image${images > 1 ? "s" : ""}`, PRIORITIES[priority]].filter(Boolean).join(" · ");
		const element = h("div.said", { "data-message": uuid }, h("div.bubble", visible(text)), h("div.below", more && h("span", more), receipt));
		this.said.set(uuid, receipt);
		this.add(element, at);
	}

	setReceipt(uuid, state) {
		const receipt = this.said.get(uuid);
		if (!receipt || !RECEIPTS[state]) return;
		receipt.textContent = RECEIPTS[state];
		receipt.dataset.state = state;
	}

	// --- what a person is asked ---

	takeAsk({ id, call }, at) {
		this.endLive();
		this.calls.set(id, call);
		this.setWaiting(id, "waiting");
		const known = [...this.root.children].find((element) => element.dataset.ask === id);
		this.onSlot(id, known ?? this.add(h("div.slot", { "data-ask": id }), at));
	}

	setWaiting(id, state) {
		const tool = this.tools.get(this.calls.get(id));
		if (!tool || !["running", "waiting"].includes(tool.state)) return;
		tool.setState(state);
		tool.element.hidden = ASKING.test(tool.name);
	}

	/** Called once a second. */
	tick() {
		for (const tool of this.tools.values()) if (tool.state === "running") tool.tick();
	}
}
