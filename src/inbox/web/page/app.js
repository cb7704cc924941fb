// The inbox page: keeps all cards, places them in the views, and handles keys and notifications.

import { CardView, noteShift, noteShown } from "/cards.js";
import { KINDS, ROADS, h, projectName } from "/parts.js";
import { fetchCard, openStream } from "/stream.js";

const LATELY_SHOWN = 8;
const HISTORY_SHOWN = 500;
// A settled card stays where it was for a while, so that the person sees how it ended.
const SETTLED_STAYS_MS = 20_000;
const ANNOUNCE_MS = 500;

const find = (id) => document.getElementById(id);
const cards = new Map(); // id -> Card
const views = new Map(); // id -> CardView in Waiting
const historyViews = new Map(); // id -> CardView in History, while that view is open
let isLoaded = false;
const isPending = (card) => card.state === "pending";
const byAge = (a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1);
const endedAt = (card) => card.answered?.at ?? ((card.state === "expired" && card.deadline) || card.createdAt);
const byNewestEnd = (a, b) => endedAt(b) - endedAt(a) || byAge(b, a);

// --- cards ---

function takeSnapshot(inbox, { replace }) {
	const listed = new Set();
	for (const card of [...inbox.recent, ...inbox.pending]) {
		listed.add(card.id);
		takeCard(card, { replace, isNew: isLoaded, place: false });
	}
	for (const card of cards.values()) {
		if (isPending(card) && !listed.has(card.id) && (replace || card.rev <= inbox.rev)) askWhatBecameOf(card);
	}
	placeAll();
	isLoaded = true;
	showCounts();
	if (!historySection.hidden) showHistory();
}

/** A pending card that the snapshot does not list has ended too long ago or was deleted. */
async function askWhatBecameOf(card) {
	const found = await fetchCard(card.id).catch(() => undefined);
	if (found === undefined) return; // the next snapshot asks again
	takeCard(found ?? { ...card, state: "withdrawn" }, { replace: true });
}

/** Takes a card from the snapshot, the stream or a reply, unless a newer one is known. */
function takeCard(card, { replace = false, isNew = false, place = true } = {}) {
	const known = cards.get(card.id);
	if (known && card.rev < known.rev && !replace) return;
	cards.set(card.id, card);
	views.get(card.id)?.update(card);
	historyViews.get(card.id)?.update(card);
	if (isNew && !known && isPending(card)) tellOf(card);
	if (place) placeCard(card);
}

const actions = { accept: (card) => takeCard(card), announce };

function viewOf(card, among = views) {
	if (!among.has(card.id)) among.set(card.id, new CardView(card, actions));
	return among.get(card.id);
}

// --- Waiting ---

const waitingSection = find("waiting");
const historySection = find("history");
const pendingList = find("pending");
const latelyList = find("lately");

function placeAll() {
	for (const card of [...cards.values()].filter(isPending).sort(byAge)) {
		const { element } = viewOf(card);
		if (element.parentNode !== pendingList) insertInOrder(element, card);
	}
	placeLately();
}

function placeCard(card) {
	if (isPending(card)) {
		const { element } = viewOf(card);
		if (element.parentNode !== pendingList) insertInOrder(element, card);
	} else if (views.get(card.id)?.element.parentNode !== pendingList) {
		placeLately();
	}
	showCounts();
	if (!historySection.hidden) showHistory();
}

/** Inserts by age, oldest first; a new ask is nearly always the last one. */
function insertInOrder(element, card) {
	let before = null;
	for (let other = pendingList.lastElementChild; other; other = other.previousElementSibling) {
		if (byAge(cards.get(other.dataset.id), card) < 0) break;
		before = other;
	}
	if (isLoaded) element.classList.add("new");
	pendingList.insertBefore(element, before);
	noteShift(element);
}

/** Fills the list of settled asks: all that the agent has not fetched yet, and the newest others. */
function placeLately() {
	const settled = [...cards.values()]
		.filter((card) => !isPending(card) && views.get(card.id)?.element.parentNode !== pendingList)
		.sort(byNewestEnd);
	const others = settled.filter((card) => card.state !== "answered").slice(0, LATELY_SHOWN);
	const shown = settled.filter((card) => card.state === "answered" || others.includes(card));
	const elements = shown.map((card) => viewOf(card).element);
	const isChanged = elements.length !== latelyList.children.length || elements.some((element, at) => latelyList.children[at] !== element);
	if (isChanged) latelyList.replaceChildren(...elements);
	find("lately-section").hidden = elements.length === 0;
	for (const [id, view] of views) if (!view.element.isConnected) views.delete(id);
}

/** Moves settled cards out of the waiting ones, but not while somebody points at or uses the list. */
function sweep() {
	if (pendingList.matches(":hover") && !document.hidden) return;
	for (const element of [...pendingList.children]) {
		const view = views.get(element.dataset.id);
		const isFresh = Date.now() - (view.settledAt ?? 0) < SETTLED_STAYS_MS;
		if (isPending(view.card) || isFresh || element.contains(document.activeElement)) continue;
		noteShift(element.previousElementSibling ?? pendingList);
		element.remove();
		placeLately();
	}
	showCounts();
}

function showCounts() {
	const count = [...cards.values()].filter(isPending).length;
	const title = count > 0 ? `(${count}) pml inbox` : "pml inbox";
	if (document.title !== title) navigator.setAppBadge?.(count).catch(() => {});
	document.title = title;
	find("count").textContent = count > 0 ? `${count} waiting` : "";
	find("empty").hidden = count > 0 || pendingList.childElementCount > 0;
}

// --- History ---

const settledList = find("settled");
const filters = { project: find("by-project"), kind: find("by-kind"), road: find("by-road") };
const FIELDS = {
	project: { all: "All projects", of: (card) => card.asker.project ?? "", name: (value) => value || "no project" },
	kind: { all: "All kinds", of: (card) => card.kind, name: (value) => KINDS[value] ?? value },
	road: { all: "All roads", of: (card) => card.answered?.road ?? "", name: (value) => (value ? ROADS[value] ?? value : "not answered") },
};

function showHistory() {
	const settled = [...cards.values()].filter((card) => !isPending(card)).sort(byNewestEnd).slice(0, HISTORY_SHOWN);
	for (const [field, { all, of, name }] of Object.entries(FIELDS)) {
		const values = [...new Set(settled.map(of))].sort();
		const select = filters[field];
		const json = JSON.stringify(values);
		if (select.dataset.values === json) continue;
		const chosen = select.length > 0 ? select.value : "*";
		select.dataset.values = json;
		select.replaceChildren(h("option", { value: "*" }, all), ...values.map((value) => h("option", { value }, name(value))));
		select.value = values.includes(chosen) ? chosen : "*";
	}
	const words = find("search").value.toLowerCase().split(/\s+/).filter(Boolean);
	const elements = [];
	let day = "";
	let found = 0;
	for (const card of settled) {
		if (Object.entries(FIELDS).some(([field, { of }]) => !["*", of(card)].includes(filters[field].value))) continue;
		const text = searchText(card);
		if (!words.every((word) => text.includes(word))) continue;
		const cardDay = dayName(endedAt(card));
		if (cardDay !== day) {
			day = cardDay;
			elements.push(h("h2.divider", day));
		}
		elements.push(viewOf(card, historyViews).element);
		found += 1;
	}
	const focused = settledList.contains(document.activeElement) ? document.activeElement : null;
	settledList.replaceChildren(...elements);
	if (focused?.isConnected) focused.focus({ preventScroll: true });
	find("found").textContent = `${found} of ${settled.length} asks`;
}

/** Returns what the search looks through. */
function searchText({ asker, title, code, answered, lines, questions }) {
	const parts = [title, code, asker.client, asker.project, answered?.text, answered?.who];
	for (const line of lines) parts.push(line.label, line.text);
	for (const question of questions) parts.push(question.question, ...(question.options ?? []).map((option) => option.label));
	return parts.join("\n").toLowerCase();
}

const dayFormat = new Intl.DateTimeFormat("en-GB", { weekday: "long", day: "numeric", month: "long" });

function dayName(ms) {
	const day = dayFormat.format(ms);
	if (day === dayFormat.format(Date.now())) return "Today";
	return day === dayFormat.format(Date.now() - 86_400_000) ? "Yesterday" : day;
}

function showView() {
	const isHistory = location.hash === "#history";
	waitingSection.hidden = isHistory;
	historySection.hidden = !isHistory;
	for (const link of document.querySelectorAll("nav a[href^='#']")) link.ariaCurrent = (link.hash === "#history") === isHistory ? "page" : null;
	if (isHistory) {
		showHistory();
	} else {
		historyViews.clear();
		settledList.replaceChildren();
		noteShown();
	}
}

// --- telling of new asks ---

let unannounced = [];

function announce(text) {
	if (unannounced.length === 0) setTimeout(flushAnnouncements, ANNOUNCE_MS);
	unannounced.push(text);
}

function flushAnnouncements() {
	const count = unannounced.length;
	find("announcer").textContent = count > 3 ? `${count} messages. The last one: ${unannounced.at(-1)}` : unannounced.join(". ");
	unannounced = [];
}

function tellOf(card) {
	announce(`New ask: ${card.title} (${projectName(card)})`);
	if (!isLeader || !wantsNotifications() || document.hasFocus() || focusElsewhere) return;
	try {
		// Only title and project: a notification is shown on locked screens.
		const notification = new Notification(card.title, { body: projectName(card), tag: card.id, icon: "/icon.svg" });
		notification.onclick = () => {
			window.focus();
			location.hash = "#waiting";
			views.get(card.id)?.element.scrollIntoView({ block: "center" });
			notification.close();
		};
	} catch {
		setNotifications("unsupported"); // some phones allow them to service workers only
	}
}

const NOTIFY_KEY = "pml-notify";
const notifyButton = find("notify");
let isLeader = false;
let focusElsewhere = false;

function setNotifications(value) {
	localStorage.setItem(NOTIFY_KEY, value);
	showNotifyButton();
}

const wantsNotifications = () => self.Notification?.permission === "granted" && localStorage.getItem(NOTIFY_KEY) === "on";

function showNotifyButton() {
	notifyButton.hidden = !self.Notification || !self.isSecureContext || localStorage.getItem(NOTIFY_KEY) === "unsupported";
	if (notifyButton.hidden) return;
	const isOn = wantsNotifications();
	const isBlocked = Notification.permission === "denied";
	notifyButton.setAttribute("aria-pressed", String(isOn));
	notifyButton.disabled = isBlocked;
	notifyButton.textContent = isBlocked ? "Notifications blocked" : isOn ? "Notifying" : "Notify me";
	notifyButton.title = "Notifications say title and project, nothing else";
}

notifyButton.addEventListener("click", async () => {
	if (wantsNotifications()) return setNotifications("off");
	const permission = await Notification.requestPermission();
	setNotifications(permission === "granted" ? "on" : "off");
});

// The leader notifies for all tabs, so it must know whether another tab is being looked at.
const focusChannel = self.BroadcastChannel ? new BroadcastChannel("pml-inbox-focus") : null;
const shareFocus = (focused) => () => focusChannel?.postMessage(focused);
addEventListener("focus", shareFocus(true));
addEventListener("blur", shareFocus(false));
addEventListener("pagehide", shareFocus(false));
focusChannel?.addEventListener("message", (event) => (focusElsewhere = event.data));

// --- keys ---

const keysDialog = find("keys");
find("show-keys").addEventListener("click", () => keysDialog.showModal());
find("close-keys").addEventListener("click", () => keysDialog.close());

function moveBetweenCards(step) {
	const shown = [...document.querySelectorAll(".card")].filter((element) => element.offsetParent);
	const at = shown.indexOf(document.activeElement?.closest(".card"));
	const next = shown[at < 0 ? (step > 0 ? 0 : shown.length - 1) : at + step];
	next?.focus({ preventScroll: true });
	next?.scrollIntoView({ block: "nearest" });
}

document.addEventListener("keydown", (event) => {
	if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || keysDialog.open) return;
	const { target, key } = event;
	const card = target.closest?.(".card");
	if (key === "Escape" && card && target !== card) return card.focus();
	if (target.matches("textarea, select, input:not([type=radio], [type=checkbox])")) return;
	const isOnCard = target === card || target === document.body;
	if (key === "j" || (key === "ArrowDown" && isOnCard)) moveBetweenCards(1);
	else if (key === "k" || (key === "ArrowUp" && isOnCard)) moveBetweenCards(-1);
	else if (key === "Enter" && card && target === card) (historyViews.get(card.dataset.id) ?? views.get(card.dataset.id)).enter();
	else if (key === "?") keysDialog.showModal();
	else if (key === "/") {
		location.hash = "#history";
		showView();
		find("search").focus();
	} else return;
	event.preventDefault();
});

// --- start ---

let offlineTimer;

function showStatus({ connected, authorized, leader }) {
	const root = document.documentElement;
	isLeader = leader;
	root.dataset.connected = connected;
	root.dataset.leader = leader;
	clearTimeout(offlineTimer);
	find("offline").hidden = true;
	// A short gap is not worth a word.
	if (!connected && authorized) offlineTimer = setTimeout(() => (find("offline").hidden = false), 1500);
	find("banner").hidden = authorized;
	if (!authorized) find("count").textContent = "";
}

find("search").addEventListener("input", showHistory);
for (const select of Object.values(filters)) select.addEventListener("change", showHistory);
addEventListener("hashchange", showView);
document.addEventListener("visibilitychange", () => (document.hidden ? sweep() : noteShown()));
setInterval(() => {
	if (document.hidden) return;
	for (const element of pendingList.children) views.get(element.dataset.id).tick();
}, 1000);
setInterval(sweep, 5000);
showNotifyButton();
showView();
openStream({
	onSnapshot: takeSnapshot,
	onCard: (card) => takeCard(card, { isNew: true }),
	onStatus: showStatus,
});
