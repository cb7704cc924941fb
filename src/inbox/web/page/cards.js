// Draws one card and keeps it up to date in place, so that an event never takes away what a
// person is typing. All text of a card is inserted as text, never as markup.

import { postAnswer } from "/stream.js";

const GRACE_MS = 300;
const HINT_MS = 4000;
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

const button = (name, click, properties, ...children) => h(`button${name}`, { type: "button", click, ...properties }, ...children);
const hidden = (text) => h("span.hidden-text", text);

const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const date = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });

/** Returns `14:03`, with the day before it when that is not today. */
export function formatTime(ms) {
	const day = date.format(ms);
	return day === date.format(Date.now()) ? clock.format(ms) : `${day}, ${clock.format(ms)}`;
}

export const projectName = (card) => card.asker.project?.split(/[/\\]/).filter(Boolean).at(-1) ?? "no project";

const isQuestions = (card) => card.kind === "questions";

/** Returns how an ask ended: a mark, a headline, and what follows it in quiet text. */
function describeOutcome(card, { beaten }) {
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

const MARKS = { done: "✓", refused: "✕", gone: "–" };

// --- what moved under the pointer ---

let shifts = []; // { node, at }: everything after `node` moved at that time
let shownAt = 0; // when the list itself came into sight

/** Notes that the layout below `node` changed, so that a click meant for another card is ignored. */
export function noteShift(node) {
	const at = performance.now();
	shifts = shifts.filter((shift) => at - shift.at < GRACE_MS);
	shifts.push({ node, at });
}

export function noteShown() {
	shownAt = performance.now();
}

function hasMoved(element, since) {
	const isBelow = (node) => node === element || node.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING;
	return shownAt > since || shifts.some(({ node, at }) => at > since && isBelow(node));
}

// --- drafts ---

function writeDraft(id, draft) {
	try {
		if (draft) sessionStorage.setItem(`draft:${id}`, JSON.stringify(draft));
		else sessionStorage.removeItem(`draft:${id}`);
	} catch {
		// The storage can be full; the draft then lives as long as the page.
	}
}

// --- the card ---

let drawnCards = 0;

export class CardView {
	/** `accept(card)` takes a newer card from a reply; `announce(text)` speaks to screen readers. */
	constructor(card, { accept, announce }) {
		Object.assign(this, { accept, announce });
		this.drawn = {}; // the JSON from which each part was drawn
		this.draft = { answers: [], reason: "", refusing: false, ...JSON.parse(sessionStorage.getItem(`draft:${card.id}`)) };
		this.uid = `card${++drawnCards}`; // Waiting and History can both show the same ask
		this.element = h("article", { tabIndex: -1, "aria-labelledby": `${this.uid}-title` });
		Object.assign(this.element.dataset, { id: card.id, code: card.code, kind: card.kind });
		this.update(card);
	}

	update(card) {
		const wasPending = this.card?.state === "pending";
		this.card = card;
		Object.assign(this.element.dataset, { state: card.state, rev: card.rev });
		if (card.state === "pending") return this.drawPending();
		if (wasPending) {
			this.unsent = this.isSent ? "" : this.draftText();
			this.settledAt = Date.now();
			writeDraft(card.id, null);
		}
		this.drawSettled();
	}

	// --- pending ---

	drawPending() {
		const { card } = this;
		if (!this.parts) {
			this.parts = {
				head: h("div.who"),
				title: h("h2", { id: `${this.uid}-title` }),
				keeps: h("p.keeps"),
				lines: h("div"),
				questions: h("div"),
				actions: h("div"),
				message: h("div.message", { hidden: true }),
			};
			this.drawn = {};
			this.element.className = "card";
			this.element.replaceChildren(...Object.values(this.parts));
		}
		const { head, title, keeps, lines, questions, actions } = this.parts;
		this.redraw([card.asker, card.deadline], head, () => {
			this.left = h("span.left");
			head.replaceChildren(...describeAsker(card), this.left);
			this.tick();
		});
		this.redraw(card.title, title, () => (title.textContent = card.title));
		this.redraw([card.asker.alive, card.keepsText], keeps, () => {
			const text = card.asker.alive ? "" : card.keepsText ?? "";
			keeps.hidden = !text;
			keeps.textContent = text.charAt(0).toUpperCase() + text.slice(1);
		});
		this.redraw(card.lines, lines, () => lines.replaceChildren(drawLines(card)));
		this.redraw(card.questions, questions, () => this.drawQuestions(questions));
		this.redraw([card.choices, card.alwaysWrites], actions, () => this.drawActions(actions));
	}

	/** Draws one part again only where its data changed. */
	redraw(data, part, draw) {
		const at = Object.values(this.parts).indexOf(part);
		const json = JSON.stringify(data ?? null);
		if (this.drawn[at] === json) return;
		this.drawn[at] = json;
		draw();
		if (part !== this.parts.head) noteShift(this.element);
	}

	/** Shows how long an answer still counts. Called once a second. */
	tick() {
		if (!this.parts) return;
		const { text, isSoon = false, label = "" } = describeDeadline(this.card.deadline);
		if (this.left.dataset.text === text) return;
		this.left.dataset.text = text;
		this.left.classList.toggle("soon", isSoon);
		this.left.replaceChildren(hidden(label), text);
	}

	drawQuestions(into) {
		this.fields = this.card.questions.map((question, index) => this.drawQuestion(question, index));
		into.replaceChildren(...this.fields.map((field) => field.element));
	}

	drawQuestion(question, index) {
		const { questions, title } = this.card;
		const answer = (this.draft.answers[index] ??= { labels: [], other: false, text: "" });
		const id = `${this.uid}-q${index}`;
		const isAlone = questions.length === 1;
		const legend = h(
			isAlone && question.question === title ? "legend.hidden-text" : "legend",
			!isAlone && h("span.step", `${index + 1} of ${questions.length}`),
			question.header && h("span.chip", question.header),
			question.question,
		);
		const complaint = h("p.complaint", { id: `${id}-complaint`, hidden: true });
		const element = h("fieldset", { "data-question": index, "aria-describedby": complaint.id }, legend);
		const changed = () => {
			writeDraft(this.card.id, this.draft);
			this.complain(index, "");
			this.clearMessage();
		};
		const keydown = (event) => {
			const isLine = event.target.tagName === "INPUT";
			if (event.key !== "Enter" || event.isComposing || !(isLine || event.ctrlKey || event.metaKey)) return;
			event.preventDefault();
			this.send();
		};
		const draw = question.options?.length ? drawOptions : drawText;
		const first = draw(element, question, { answer, index, id, changed, keydown });
		element.append(complaint);
		return { element, first, complaint };
	}

	drawActions(into) {
		const { card, draft } = this;
		const abort = card.choices.find((choice) => choice.decision === "abort");
		const label = isQuestions(card) ? "Do not answer" : abort?.label ?? "Abort";
		const buttons = card.choices.filter((choice) => choice !== abort).map((choice, index) => this.drawChoice(choice, index));
		if (isQuestions(card)) buttons.push(button(".choice.main", () => this.send(), { "data-send": "" }, h("b", "Send")));
		const boxId = `${this.uid}-reason`;
		const open = () => this.toggleReason(!draft.refusing);
		const close = () => this.toggleReason(false);
		const abortNow = (event) => this.decide("abort", event);
		this.opener = button(".choice.no", open, { "data-refuse": "", "aria-controls": boxId }, h("b", `${label}…`), abort && h("small", abort.grants));
		this.reason = h("input", {
			type: "text",
			id: `${boxId}-text`,
			value: draft.reason,
			autocomplete: "off",
			"data-reason": "",
			input: () => {
				draft.reason = this.reason.value;
				writeDraft(card.id, draft);
			},
			keydown: (event) => {
				if (event.isComposing || !["Enter", "Escape"].includes(event.key)) return;
				event.preventDefault();
				event.stopPropagation();
				if (event.key === "Enter") abortNow(event);
				else close();
			},
		});
		this.reasonBox = h(
			"div.reason",
			{ id: boxId },
			h("label", { htmlFor: this.reason.id }, "Why? The agent reads it. ", h("span.quiet", "(optional)")),
			h("div.reason-row", this.reason, button(".danger", abortNow, { "data-decision": "abort" }, label), button(".plain", close, {}, "Back")),
		);
		const group = { role: "group", "aria-label": "Your decision" };
		into.replaceChildren(h(isQuestions(card) ? "div.actions.send-row" : "div.actions", group, ...buttons, this.opener), this.reasonBox);
		this.showReason();
	}

	drawChoice({ decision, label, grants }, index) {
		const writes = decision === "always" && this.card.alwaysWrites;
		const saysAll = writes && grants?.includes(writes.rule) && grants.includes(writes.file);
		return button(
			index === 0 ? ".choice.main" : ".choice",
			(event) => this.decide(decision, event),
			{ "data-decision": decision },
			h("b", label),
			grants && h("small", grants),
			writes && !saysAll && h("small", "writes ", h("code", writes.rule), " into ", h("code", writes.file)),
		);
	}

	showReason() {
		this.reasonBox.hidden = !this.draft.refusing;
		this.opener.setAttribute("aria-expanded", String(this.draft.refusing));
	}

	toggleReason(isOpen) {
		this.draft.refusing = isOpen;
		writeDraft(this.card.id, this.draft);
		this.showReason();
		(isOpen ? this.reason : this.opener).focus();
	}

	// --- answering ---

	decide(decision, event) {
		if (hasMoved(this.element, event.timeStamp - GRACE_MS)) {
			this.showMessage("This card only just appeared or moved, so nothing was sent. Press again.");
			this.hint = setTimeout(() => this.clearMessage(), HINT_MS);
			return;
		}
		const reason = decision === "abort" && this.draft.reason.trim();
		this.post(reason ? { decision, reason } : { decision });
	}

	send(isSo) {
		const { questions } = this.card;
		const problems = questions.map((question, index) => describeMissing(question, this.draft.answers[index]));
		problems.forEach((problem, index) => this.complain(index, problem));
		const missing = this.fields.filter((_, index) => problems[index]);
		if (missing.length > 0 && !isSo) {
			const more = missing.length < questions.length && ["Send it so", () => this.send(true)];
			this.showMessage(`Not sent: ${missing.length} of ${questions.length} unanswered.`, { more });
			missing[0].first.focus();
			return;
		}
		const answers = this.draft.answers.map(({ labels, other, text }, index) => {
			const isFree = other || !questions[index].options?.length;
			const own = isFree && text.trim();
			return labels.length || own ? { labels, text: own || null } : null;
		});
		this.post({ answers });
	}

	complain(index, problem) {
		const { complaint, element } = this.fields[index];
		complaint.textContent = problem;
		complaint.hidden = !problem;
		element.classList.toggle("missing", Boolean(problem));
	}

	async post(body) {
		if (this.isSent) return;
		this.setSent(true);
		this.triedAt ??= Date.now();
		this.showMessage("Sending…", { isBusy: true });
		const reply = await postAnswer(this.card.id, body);
		const { triedAt, card } = this;
		const said = reply.body;
		this.element.ariaBusy = "false";
		if (reply.status !== 0) this.triedAt = null;
		if (reply.status === 200) {
			this.accept(said);
			this.announce(`Answer sent: ${card.title}`);
			return;
		}
		this.setSent(false);
		if ([404, 409, 410].includes(reply.status)) {
			// When a reply gets lost, a second try, also one of the browser itself, finds our own answer.
			const { road, at } = said?.answered ?? {};
			this.beaten = reply.status === 409 && (road !== "web" || at < triedAt - 1000);
			if (this.beaten) this.unsent = this.draftText();
			this.accept(said?.id ? said : { ...card, state: "withdrawn", gone: said?.error });
			this.update(this.card);
			this.announce(describeOutcome(this.card, this)[1]);
		} else if (card.state === "pending") {
			const index = /^answers\[(\d+)\]/.exec(said?.field)?.[1];
			if (this.fields[index]) this.complain(index, said.reason ?? said.error);
			this.showMessage(describeFailure(reply), { isError: true, more: reply.status !== 422 && ["Retry", () => this.post(body)] });
		}
	}

	setSent(isSent) {
		this.isSent = isSent;
		this.element.ariaBusy = String(isSent);
	}

	showMessage(text, { isError = false, isBusy = false, more } = {}) {
		const { message } = this.parts;
		clearTimeout(this.hint);
		message.hidden = false;
		message.classList.toggle("error", isError);
		message.replaceChildren(h("span.text", isBusy && h("span.spinner"), text));
		if (more) message.append(button("", more[1], { "data-more": "" }, more[0]));
		if (!isBusy) this.announce(text);
	}

	clearMessage() {
		if (this.parts) this.parts.message.hidden = true;
	}

	// --- settled ---

	/** Returns what a person had typed into the card. */
	draftText() {
		const texts = [...this.draft.answers.map((answer) => answer.text), this.draft.reason];
		return texts.filter((text) => text.trim()).join(" / ");
	}

	drawSettled() {
		const { card, element } = this;
		const [mark, headline, rest] = describeOutcome(card, this);
		const json = JSON.stringify([card.title, headline, rest, card.asker]);
		if (this.drawn.settled === json) return;
		const hadFocus = element.contains(document.activeElement);
		const wasOpen = element.querySelector("details")?.open ?? false;
		this.parts = null;
		this.drawn = { settled: json };
		const summary = h(
			"summary",
			h(`span.mark.${mark}`, { "aria-hidden": "true" }, MARKS[mark]),
			h(
				"span.outcome",
				h("span.title", { id: `${this.uid}-title` }, card.title),
				h("b", headline),
				rest && h("span.quiet", ` · ${rest}`),
				this.unsent && h("span.quiet.unsent", `You had typed, not sent: ${this.unsent}`),
			),
			h("span.from", projectName(card)),
		);
		// What was asked is drawn when somebody opens it: a long history stays light.
		const details = h("details", { toggle: () => details.children.length === 1 && details.append(drawWhole(card)) }, summary);
		details.open = wasOpen;
		element.className = "card done";
		element.replaceChildren(details);
		noteShift(element);
		// The pressed button is gone: the place in the page stays, on the card itself.
		if (hadFocus) element.focus({ preventScroll: true });
	}

	/** Moves the focus to the first control of the card. */
	enter() {
		this.element.querySelector("summary, input, textarea, button:not(.link)").focus();
	}
}

// --- parts without state ---

/** Draws the free text of a question without options; returns the field. */
function drawText(element, question, { answer, index, changed, keydown }) {
	const input = () => {
		answer.text = field.value;
		changed();
	};
	const field = h("textarea", { value: answer.text, placeholder: "Your answer", "data-text": index, "aria-label": question.question, input, keydown });
	element.append(field);
	return field;
}

/** Draws the options of a question and Other; returns the first input. */
function drawOptions(element, question, { answer, index, id, changed, keydown }) {
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

function describeAsker(card) {
	const { client, project, run } = card.asker;
	const parts = [h("span.chip", KINDS[card.kind] ?? card.kind), h("b", client ?? "Unknown client")];
	if (run) parts.push(h("a.run", { href: `/runs/${encodeURIComponent(run)}` }, `run ${run}`));
	return [...parts, h("span", { title: project ?? "" }, projectName(card)), h("span.code", hidden("code "), card.code)];
}

function describeDeadline(deadline) {
	const seconds = Math.ceil((deadline - Date.now()) / 1000);
	const isSoon = seconds < 60;
	if (!deadline) return { text: "no deadline" };
	if (seconds <= 0) return { text: "time is up", isSoon };
	if (seconds >= 3600) return { text: `until ${formatTime(deadline)}` };
	return { text: `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`, isSoon, label: "expires in " };
}

function describeMissing(question, { labels, other, text }) {
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

function drawLines(card) {
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
function drawWhole(card) {
	const head = h("div.who", ...describeAsker(card), h("span.left", `asked ${formatTime(card.createdAt)}`));
	const asked = card.questions.flatMap(({ question, options }) => [
		h("p", question),
		options?.length && h("ul", ...options.map((option) => h("li", option.label))),
	]);
	return h("div.whole", head, ...asked, drawLines(card));
}
