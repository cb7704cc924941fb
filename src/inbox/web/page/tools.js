// Draws a tool call in one line, with what it was given and what it returned folded below it.

import { h } from "/parts.js";

const SUMMARY_SHOWN = 160;
const DETAIL_SHOWN = 6_000;
const DIFF_LINES_SHOWN = 400;

const MARKS = { done: "✓", failed: "✕", waiting: "?", gone: "–" };
const SAID = { running: "running", waiting: "waits for you", done: "done", failed: "failed", gone: "did not end" };

// What steers a line or cannot be seen; joiners of letters and of emoji stay.
const UNSEEN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** Makes visible what an agent could hide or turn around in a text. */
export const visible = (text) => String(text).replace(/\r\n?/g, "\n").replace(UNSEEN, (letter) => `\\u{${letter.codePointAt(0).toString(16)}}`);

export const excerpt = (text, most = DETAIL_SHOWN) => (text.length > most ? `${text.slice(0, most)}\n… ${text.length - most} more characters` : text);

export function describeLength(ms) {
	const seconds = Math.max(0, ms) / 1000;
	if (seconds < 10) return `${seconds.toFixed(1)} s`;
	if (seconds < 60) return `${Math.floor(seconds)} s`;
	const minutes = Math.floor(seconds / 60);
	if (minutes < 60) return `${minutes} min ${Math.floor(seconds % 60)} s`;
	return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** Returns how long a run took, or takes so far. */
export const describeElapsed = (run) => describeLength((run.driven ? Math.floor(Date.now() / 1000) * 1000 : run.changedAt) - run.createdAt);

export const describeCost = (cost) => (cost == null ? "" : `$${cost < 1 ? cost.toFixed(3) : cost.toFixed(2)}`);

/** Returns the name that people read: `mcp__github__search` is `github: search`. */
function toolName(name) {
	const [, server, tool] = /^mcp__(.+?)__(.+)$/.exec(name) ?? [];
	return server ? `${server}: ${tool}` : name;
}

/** Returns what a call is about, in one line. */
function toolSubject(input, project) {
	const known = ["command", "file_path", "notebook_path", "pattern", "path", "url", "query", "description", "prompt", "question", "skill"];
	const key = known.find((name) => typeof input?.[name] === "string") ?? Object.keys(input ?? {}).find((name) => typeof input[name] === "string");
	let text = key ? input[key] : input?.questions?.[0]?.question ?? "";
	if (project && text.startsWith(`${project}/`)) text = text.slice(project.length + 1);
	text = visible(text).trim();
	const line = text.split("\n")[0];
	return line.length > SUMMARY_SHOWN || line !== text ? `${line.slice(0, SUMMARY_SHOWN)} …` : line;
}

/** Draws an edit as lines that go and lines that come; null for what is no edit. */
function drawDiff(input) {
	const edits = Array.isArray(input?.edits) ? input.edits : [input];
	const lines = [];
	for (const edit of edits) {
		const { old_string: before = "", new_string: after = edit?.content } = edit ?? {};
		if (typeof after !== "string" || typeof before !== "string") return null;
		if (before) lines.push(...visible(before).split("\n").map((line) => h("del", `- ${line}`)));
		lines.push(...visible(after).split("\n").map((line) => h("ins", `+ ${line}`)));
	}
	const rest = lines.length - DIFF_LINES_SHOWN;
	return h("pre.diff", ...lines.slice(0, DIFF_LINES_SHOWN), rest > 0 && `… ${rest} more lines`);
}

const scrolls = (label) => ({ tabIndex: 0, role: "region", "aria-label": label });

export class ToolView {
	constructor({ id, name, input }, { at, project }) {
		Object.assign(this, { at, input, name: String(name), result: null });
		this.mark = h("span.mark", { "aria-hidden": "true" });
		this.said = h("span.hidden-text");
		this.time = h("span.time");
		const subject = toolSubject(input, project);
		const summary = h("summary", this.mark, h("b", visible(toolName(this.name))), h("span.subject", subject), this.said, this.time);
		// Most details are never opened: they are drawn when they are.
		this.element = h("details.tool", { "data-tool": id, toggle: () => this.drawDetails() }, summary);
		this.setState("running");
	}

	setState(state) {
		this.state = state;
		this.element.dataset.state = state;
		this.mark.classList.toggle("spinner", state === "running");
		this.mark.textContent = MARKS[state] ?? "";
		this.said.textContent = ` ${SAID[state]} `;
		this.tick();
	}

	/** Shows how long it takes. Called once a second while it runs. */
	tick(now = Date.now()) {
		if (!this.at || this.state === "gone") return;
		if (this.state === "running" && now - this.at < 1000) return;
		if (this.state === "waiting") return;
		this.time.textContent = describeLength((this.endedAt ?? Math.floor(now / 1000) * 1000) - this.at);
	}

	end(state, { at = null, result = "" } = {}) {
		this.endedAt = at ?? this.at;
		this.result = result;
		this.setState(state);
		this.drawDetails();
	}

	drawDetails() {
		if (!this.element.open) return;
		const json = JSON.stringify(this.input, null, 2) ?? "";
		const diff = /^(Edit|Write|MultiEdit|NotebookEdit)$/.test(this.name) ? drawDiff(this.input) : null;
		const given = diff ?? h("pre", scrolls("Input"), excerpt(visible(this.name === "Bash" && typeof this.input?.command === "string" ? this.input.command : json)));
		const parts = [h("span.label", diff ? "change" : "input"), given];
		if (this.result) parts.push(h("span.label", "result"), h("pre.result", scrolls("Result"), excerpt(visible(this.result))));
		this.element.replaceChildren(this.element.firstElementChild, h("div.tool-body", ...parts));
	}
}
