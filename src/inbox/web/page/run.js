// The page of a run: follows its log by number, places the asks of the run in the conversation, shows where it stands.

import { CardView, noteShift } from "/cards.js";
import { Chat } from "/chat.js";
import { Composer } from "/compose.js";
import { projectName } from "/parts.js";
import { fetchCard, fetchJson, openStream } from "/stream.js";
import { describeCost, describeElapsed } from "/tools.js";

const NEAR_END = 120; // pixels from the end within which the page follows it
const GAP = 12; // pixels between the top bar and a panel that waits
const REOPEN_MS = 1_000;
const REOPEN_MOST_MS = 15_000;
const SETTLE_MS = 400;
const ANNOUNCE_MS = 500;

const find = (id) => document.getElementById(id);
const id = decodeURIComponent(location.pathname.split("/")[2] ?? "");
const cards = new Map(); // id -> Card of this run
const views = new Map(); // id -> CardView
const slots = new Map(); // id -> the place of its panel in the conversation
let run = null;
let hasSnapshot = false;
let isCaughtUp = false;

const isPending = (card) => card.state === "pending";
const pendingCards = () => [...cards.values()].filter(isPending);

let unannounced = [];

/** Speaks to screen readers; what comes together is said together, so that nothing is lost. */
function announce(text) {
	if (unannounced.push(text) > 1) return;
	setTimeout(() => {
		find("announcer").textContent = unannounced.join(". ");
		unannounced = [];
	}, ANNOUNCE_MS);
}

const composer = new Composer(id, { accept: takeCard, announce });
const chat = new Chat(find("chat"), {
	onSlot(ask, slot) {
		slots.set(ask, slot);
		if (cards.has(ask)) place(cards.get(ask));
		else if (hasSnapshot) fetchMissing();
	},
	onMessage: (uuid) => composer.heard(uuid),
});

// --- the end of the page ---

const isAtEnd = () => innerHeight + scrollY >= document.documentElement.scrollHeight - NEAR_END;
let follows = true; // whether the reader is at the end, as of their own last scroll
let isFollowing = false; // whether a frame is waited for
let ownTop = -1; // where this page itself has scrolled to

addEventListener("scroll", () => (follows = Math.abs(scrollY - ownTop) < 2 || isAtEnd()), { passive: true });

/** Follows the end, or what waits first, but never moves a panel from under the pointer. */
function followEnd() {
	const waiting = pendingCards().map((card) => views.get(card.id)?.element).filter((element) => element?.isConnected);
	if (!follows || waiting.some((element) => element.matches(":hover, :focus-within"))) return;
	if (isFollowing) return;
	isFollowing = true;
	requestAnimationFrame(() => {
		isFollowing = false;
		const end = document.documentElement.scrollHeight - innerHeight;
		const top = waiting[0] ? waiting[0].getBoundingClientRect().top + scrollY - document.querySelector(".top").offsetHeight - GAP : end;
		ownTop = Math.max(0, Math.min(end, top));
		if (Math.abs(scrollY - ownTop) >= 1) scrollTo({ top: ownTop });
	});
}

new ResizeObserver(followEnd).observe(find("chat"));

// --- asks ---

function takeCard(card, { replace = false } = {}) {
	if (card.asker.run !== id && !slots.has(card.id)) return;
	const known = cards.get(card.id);
	if (known && card.rev < known.rev && !replace) return;
	cards.set(card.id, card);
	if (!known && isPending(card) && isCaughtUp) announce(`New ask: ${card.title} (${projectName(card)})`);
	views.get(card.id)?.update(card);
	place(card);
	showAsks();
}

/** Puts the panel of an ask where the log tells of it, else where it belongs by its time. */
function place(card) {
	const slot = slots.get(card.id);
	if (!slot && !isCaughtUp) return;
	if (!views.has(card.id)) views.set(card.id, new CardView(card, { accept: takeCard, announce }));
	const { element } = views.get(card.id);
	if (slot && element.parentNode !== slot && !element.contains(document.activeElement)) {
		// It may have come before the log told of it; the two places are nearly the same.
		slot.replaceChildren(element);
		noteShift(element);
	} else if (!element.isConnected) {
		chat.insertByTime(element, card.createdAt);
	}
	followEnd();
}

let isFetching = false;

/** Fetches the asks that the log tells of and the snapshot does not list any more. */
async function fetchMissing() {
	if (isFetching) return;
	isFetching = true;
	for (const ask of slots.keys()) {
		if (cards.has(ask)) continue;
		const card = await fetchCard(ask).catch(() => null);
		if (card) takeCard(card);
	}
	isFetching = false;
}

function showAsks() {
	const pending = pendingCards();
	const questions = pending.filter((card) => card.kind === "questions");
	composer.setQuestion(questions.length === 1 && questions[0].questions.length === 1 ? questions[0] : null);
	find("waits").hidden = pending.length === 0;
	find("waits").textContent = pending.length === 1 ? "1 waits for you" : `${pending.length} wait for you`;
	showTitle();
}

find("waits").addEventListener("click", () => {
	const view = views.get(pendingCards()[0]?.id);
	view?.element.scrollIntoView({ block: "center" });
	view?.enter();
});

// --- where it stands ---

function showTitle() {
	const count = pendingCards().length;
	document.title = `${count > 0 ? `(${count}) ` : ""}${run?.title || "pml run"}`;
}

function showRun(next) {
	run = next;
	chat.project = run.project;
	find("title").textContent = run.title || `Run ${run.id}`;
	find("title").title = run.title;
	find("state").textContent = run.state;
	find("state").dataset.state = run.state;
	find("trouble").hidden = !run.trouble;
	find("trouble").textContent = run.trouble ?? "";
	composer.setRun(run);
	showFacts();
	showTitle();
}

function showFacts() {
	if (!run) return;
	const facts = [run.project.split("/").filter(Boolean).at(-1), run.model, describeCost(run.cost), describeElapsed(run)];
	const text = facts.filter(Boolean).join(" · ");
	if (find("facts").textContent !== text) find("facts").textContent = text;
}

// --- the log ---

let source = null;
let reached = 0;
let reopening;
let failures = 0;

function openLog() {
	clearTimeout(reopening);
	source?.close();
	const opened = new EventSource(`/api/runs/${encodeURIComponent(id)}/events?since=${reached}`);
	source = opened;
	opened.onopen = () => {
		failures = 0;
		showConnected(true);
	};
	opened.onerror = () => {
		showConnected(false);
		// While CONNECTING the browser itself tries again, with Last-Event-ID.
		if (opened.readyState !== EventSource.CLOSED || opened !== source) return;
		reopening = setTimeout(reopen, Math.min(REOPEN_MOST_MS, REOPEN_MS * 2 ** failures++));
	};
	opened.addEventListener("line", (event) => {
		const number = Number(event.lastEventId);
		if (number <= reached) return;
		reached = number;
		const { at, line } = JSON.parse(event.data);
		chat.take(line, at);
	});
	opened.addEventListener("run", (event) => {
		showRun(JSON.parse(event.data));
		caughtUp();
	});
	opened.addEventListener("reset", (event) => {
		reached = Number(event.lastEventId) || 0;
		isCaughtUp = false;
		slots.clear();
		views.clear();
		chat.clear();
		// What follows tells most panels their place; those without one come after it.
		setTimeout(caughtUp, SETTLE_MS);
	});
}

/** From here on an ask without a place in the log is put where it belongs by its time. */
function caughtUp() {
	document.documentElement.dataset.caughtUp = true;
	if (isCaughtUp) return;
	isCaughtUp = true;
	for (const card of cards.values()) place(card);
	showAsks();
}

async function reopen() {
	const found = await fetchJson(`/api/runs/${encodeURIComponent(id)}`).catch((error) => error);
	find("missing").hidden = found.status !== 404;
	if (found.status === 404) return;
	// Before the first line: lines are drawn with what is known of the run.
	if (found.id) showRun(found);
	openLog();
}

let offlineTimer;
let isAuthorized = true;

function showConnected(isConnected) {
	document.documentElement.dataset.connected = isConnected;
	clearTimeout(offlineTimer);
	find("offline").hidden = true;
	if (!isConnected && isAuthorized) offlineTimer = setTimeout(() => (find("offline").hidden = false), 1500);
}

// A browser allows few connections to one host: a tab that is not looked at gives its own back.
document.addEventListener("visibilitychange", () => {
	if (!document.hidden) return reopen();
	clearTimeout(reopening);
	source?.close();
	source = null;
});

setInterval(() => {
	if (document.hidden) return;
	showFacts();
	chat.tick();
	for (const view of views.values()) view.tick();
}, 1000);

openStream({
	onSnapshot(inbox, { replace }) {
		hasSnapshot = true;
		for (const card of [...inbox.recent, ...inbox.pending]) takeCard(card, { replace });
		fetchMissing();
		showAsks();
	},
	onCard: (card) => takeCard(card),
	onStatus({ authorized }) {
		isAuthorized = authorized;
		find("banner").hidden = authorized;
	},
});
reopen();
