// Draws one card and keeps it up to date in place, so that an event never takes away what a
// person is typing. All text of a card is inserted as text, never as markup.

import { MARKS, button, describeAsker, describeDeadline, describeFailure, describeMissing, describeOutcome, drawLines, drawOptions, drawText, drawWhole, h, hidden, isQuestions, projectName } from "/parts.js";
import { fetchJson, postAnswer } from "/stream.js";

const GRACE_MS = 300;
const HINT_MS = 4000;
const RUN_LOOK_MS = 5000;

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
		if (card.state !== "answered") this.trouble = null;
		const [mark, headline, rest] = describeOutcome(card, this);
		const json = JSON.stringify([card.title, headline, rest, card.asker, this.trouble]);
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
				this.trouble && h("span.trouble", `The run does not go on: ${this.trouble}`),
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
		this.followRun();
	}

	/** While an answer waits for its run, tells why that does not go on. */
	followRun() {
		const { run } = this.card.asker;
		clearTimeout(this.runLook);
		if (!run || this.card.state !== "answered") return;
		this.runLook = setTimeout(async () => {
			if (!this.element.isConnected) return;
			const found = document.hidden ? null : await fetchJson(`/api/runs/${encodeURIComponent(run)}`).catch(() => null);
			if (found && this.card.state === "answered") {
				this.trouble = found.trouble;
				this.drawSettled();
			}
			this.followRun();
		}, RUN_LOOK_MS);
	}

	/** Moves the focus to the first control of the card. */
	enter() {
		this.element.querySelector("summary, input, textarea, button:not(.link)").focus();
	}
}
