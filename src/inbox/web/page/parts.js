// Draws the parts of a card that have no state of their own, and says in words how one stands.

const HASH_SHOWN = 22;
const SCROLLS_FROM = 900; // characters of arguments that may need the scrolling box

export const KINDS = { questions: "Question", install: "Install", connect: "Connect", permit: "Permission", use: "Use", trust: "Trust" };

export const ROADS = {
	web: "on the page",
	cli: "in the terminal",
	dialog: "in the client's dialog",
	elicitation: "in the client's form",
	prompt: "by a slash command",
	continuation: "through the agent",
	chat: "in a chat",
	rule: "by a rule",
};

/** Makes an element, `h("p.class", { property, "an-attribute", listener() {} }, ...children)`. */
export function h(name, ...rest) {
	const [tag, ...classes] = name.split(".");
	const element = document.createElement(tag);
	element.className = classes.join(" ");
	const properties = rest[0]?.constructor === Object ? rest.shift() : {};
	for (const [key, value] of Object.entries(properties)) {
		if (typeof value === "function") element.addEventListener(key, value);
		else if (key.includes("-") || key === "role") element.setAttribute(key, value);
		else element[key] = value;
	}
	element.append(...rest.filter((child) => child));
	return element;
}

export const button = (name, click, properties, ...children) => h(`button${name}`, { type: "button", click, ...properties }, ...children);
export const hidden = (text) => h("span.hidden-text", text);

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const date = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });

/** Returns `14:03`, with the day before it when that is not today. */
export function formatTime(ms) {
	const day = date.format(ms);
	return day === date.format(Date.now()) ? clock.format(ms) : `${day}, ${clock.format(ms)}`;
}

export const projectName = (card) => card.asker.project?.split(/[/\\]/).filter(Boolean).at(-1) ?? "no project";

export const isQuestions = (card) => card.kind === "questions";

/** Returns how an ask ended: a mark, a headline, and what follows it in quiet text. */
export function describeOutcome(card, { beaten }) {
	const { road, who, at, text = "" } = card.answered ?? {};
	const where = ROADS[road] ?? road;
	const when = road && `${where}${who ? ` (${who})` : ""}, ${formatTime(at)}`;
	const late = `${isQuestions(card) ? "nothing was assumed" : "nothing was allowed"} · ${formatTime(card.deadline ?? card.createdAt)}`;
	if (beaten && road) {
		const mark = card.state === "answered" ? "spinner" : "done";
		return [mark, `Answered ${where}: ${text} · ${formatTime(at)}`, "the first answer counts, yours was not recorded"];
	}
	switch (card.state) {
		case "answered":
			return ["spinner", "Answer sent, waiting for the agent…", [text, when, !card.asker.alive && card.keepsText].filter(Boolean).join(" · ")];
		case "used":
			return ["done", `${road === "rule" ? "A rule" : "You"} answered: ${text}`, when];
		case "refused":
			return ["refused", text ? `Refused: ${text}` : "Refused", when];
		case "expired":
			return ["gone", isQuestions(card) ? "Question timed out" : "Approval timed out", late];
		default:
			return ["gone", "Withdrawn: the agent no longer waits for this", card.gone];
	}
}

export const MARKS = { done: "✓", refused: "✕", gone: "–" };

/** Draws the free text of a question without options; returns the field. */
export function drawText(element, question, { answer, index, changed, keydown }) {
	const input = () => {
		answer.text = field.value;
		changed();
	};
	const field = h("textarea", { value: answer.text, placeholder: "Your answer", "data-text": index, "aria-label": question.question, input, keydown });
	element.append(field);
	return field;
}

/** Draws the options of a question and Other; returns the first input. */
export function drawOptions(element, question, { answer, index, id, changed, keydown }) {
	const type = question.selection === "several" ? "checkbox" : "radio";
	const labels = question.options.map((option) => option.label);
	answer.labels = answer.labels.filter((label) => labels.includes(label));
	const change = () => {
		answer.labels = labels.filter((_, at) => inputs[at].checked);
		answer.other = other.checked;
		changed();
	};
	const inputs = question.options.map(({ label }, at) =>
		h("input", { type, name: id, id: `${id}-${at}`, checked: answer.labels.includes(label), "data-label": label, change }),
	);
	const other = h("input", { type, name: id, id: `${id}-other`, checked: answer.other, "data-other-choice": index, change });
	// A click of the pointer on Other wants to write; the arrow keys only pass over it.
	other.addEventListener("click", (event) => event.pointerType && other.checked && text.focus());
	const input = () => {
		answer.text = text.value;
		other.checked = text.value.trim() !== "";
		change();
	};
	const text = h("input", {
		type: "text",
		value: answer.text,
		placeholder: "In your own words",
		autocomplete: "off",
		"data-other": index,
		"aria-label": `Other: ${question.header ?? question.question}`,
		input,
		keydown,
	});
	if (type === "checkbox") element.append(h("p.hint", "Choose any number."));
	question.options.forEach(({ label, description }, at) =>
		element.append(h("label.option", { htmlFor: inputs[at].id }, inputs[at], h("span", label, description && h("small", description)))),
	);
	element.append(h("div.option", other, h("span", h("label", { htmlFor: other.id }, "Other"), text)));
	return inputs[0];
}

export function describeAsker(card) {
	const { client, project, run } = card.asker;
	const parts = [h("span.chip", KINDS[card.kind] ?? card.kind), h("b", client ?? "Unknown client")];
	if (run) parts.push(h("a.run", { href: `/runs/${encodeURIComponent(run)}` }, `run ${run}`));
	return [...parts, h("span", { title: project ?? "" }, projectName(card)), h("span.code", hidden("code "), card.code)];
}

export function describeDeadline(deadline) {
	const seconds = Math.ceil((deadline - Date.now()) / 1000);
	const isSoon = seconds < 60;
	if (!deadline) return { text: "no deadline" };
	if (seconds <= 0) return { text: "time is up", isSoon };
	if (seconds >= 3600) return { text: `until ${formatTime(deadline)}` };
	return { text: `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`, isSoon, label: "expires in " };
}

export function describeMissing(question, { labels, other, text }) {
	if (!question.options?.length) return text.trim() ? "" : "Please write an answer.";
	if (other) return text.trim() ? "" : "Other is chosen, but its text is empty.";
	return labels.length > 0 ? "" : "Please choose an answer.";
}

export function describeFailure({ status, body, retryAfter }) {
	if (status === 0) return "No reply: it may or may not have arrived. Trying again is safe, only the first answer counts.";
	if (status === 401) return "Not sent: this page's key is no longer valid. Run `pml serve --open` in a terminal.";
	if (status === 413) return "Not sent: the answer is too long.";
	if (status === 429) return `Not sent: too many requests. Try again in ${retryAfter ? `${retryAfter} s` : "a moment"}.`;
	return `Not sent: ${body?.reason ?? body?.error ?? `the server answered ${status}`}`;
}

export function drawLines(card) {
	const lines = [...card.lines];
	if (!isQuestions(card) && card.asker.project) lines.push({ label: "project", text: card.asker.project, style: "plain" });
	const rows = lines.map((line) => {
		const isBlock = line.style === "command" || line.style === "arguments";
		return h(isBlock ? "div.block" : "div.row", h("dt", line.label), h(`dd.${line.style}`, drawLineText(line, isBlock)));
	});
	return rows.length > 0 ? h("dl.lines", ...rows) : "";
}

function drawLineText({ label, text, style }, isBlock) {
	if (style === "hash" && text.length > HASH_SHOWN + 4) return drawHash(label, text);
	if (!isBlock) return text;
	// What scrolls must be reachable by the keyboard.
	const scrolls = style === "arguments" && text.length > SCROLLS_FROM;
	return h("pre", scrolls ? { tabIndex: 0, role: "region", "aria-label": label } : {}, text);
}

function drawHash(label, text) {
	const short = `${text.slice(0, HASH_SHOWN)}…`;
	const shown = h("code", short);
	const click = () => {
		const isWhole = toggle.ariaExpanded === "true";
		toggle.ariaExpanded = String(!isWhole);
		shown.textContent = isWhole ? short : text;
		toggle.firstChild.textContent = isWhole ? "whole" : "shorter";
	};
	const toggle = button(".link", click, { "aria-expanded": "false", "data-whole": "" }, "whole", hidden(` ${label}`));
	return h("span", shown, " ", toggle);
}

/** Draws everything a settled card asked, for reading only. */
export function drawWhole(card) {
	const head = h("div.who", ...describeAsker(card), h("span.left", `asked ${formatTime(card.createdAt)}`));
	const asked = card.questions.flatMap(({ question, options }) => [
		h("p", question),
		options?.length && h("ul", ...options.map((option) => h("li", option.label))),
	]);
	return h("div.whole", head, ...asked, drawLines(card));
}
