// Talks to the server: the snapshot, the event stream that follows it, and the answers.
//
// A browser allows six HTTP/1.1 connections to one host, so only one tab, the leader, holds the
// stream: it owns the Web Lock and passes each event on by BroadcastChannel. Every tab keeps the
// revision it has reached. A message names the revision before it, so a tab that missed one
// notices and fetches the snapshot anew; a new leader continues from the revision it has reached.

const NAME = "pml-inbox";
const BEAT_MS = 10_000;
// A leader answers a `hello` at once, even in a hidden tab; only a frozen one stays silent.
const SILENCE_MS = 4_000;
// Timers of a hidden tab run once a minute, so only a longer gap means that the machine slept.
const SLEEP_MS = 90_000;
const REPLY_MS = 20_000;

let csrf = "";

/** Fetches JSON; an error carries its `status`. */
export async function fetchJson(path) {
	const response = await fetch(path, { cache: "no-store", signal: AbortSignal.timeout(REPLY_MS) });
	if (!response.ok) throw Object.assign(new Error(`${path}: ${response.status}`), { status: response.status });
	return response.json();
}

async function fetchInbox() {
	const inbox = await fetchJson("/api/inbox");
	csrf = inbox.csrf;
	return inbox;
}

/** Fetches one card; null when the server no longer has it. */
export async function fetchCard(id) {
	try {
		return await fetchJson(`/api/asks/${encodeURIComponent(id)}`);
	} catch (error) {
		if (error.status === 404) return null;
		throw error;
	}
}

/**
 * Posts JSON and returns `{ status, body, retryAfter }`; status 0 means that no reply came.
 * A token can be older than the server, so a 403 is tried once more with a fresh one.
 */
export async function postTo(path, value, waitMs = REPLY_MS) {
	const first = await post(path, value, waitMs);
	if (first.status !== 403) return first;
	const used = csrf;
	await fetchInbox().catch(() => {});
	return csrf === used ? first : post(path, value, waitMs);
}

export const postAnswer = (id, answer) => postTo(`/api/asks/${encodeURIComponent(id)}/answer`, answer);

async function post(path, value, waitMs) {
	try {
		const response = await fetch(path, {
			method: "POST",
			headers: { "Content-Type": "application/json", "X-CSRF-Token": csrf },
			body: JSON.stringify(value),
			signal: AbortSignal.timeout(waitMs),
		});
		const body = await response.json().catch(() => null);
		return { status: response.status, body, retryAfter: response.headers.get("Retry-After") };
	} catch {
		return { status: 0 };
	}
}

/**
 * Keeps this tab in step with the server. Calls `onSnapshot(inbox, { replace })`, `onCard(card)`
 * for each event, and `onStatus({ connected, authorized, leader })` when one of them changes.
 */
export function openStream({ onSnapshot, onCard, onStatus }) {
	const canShare = Boolean(navigator.locks && self.BroadcastChannel);
	const channel = canShare ? new BroadcastChannel(NAME) : null;
	const status = { connected: false, authorized: true, leader: false };
	let rev = null; // null until the first snapshot
	let source = null;
	let failures = 0;
	let openedAt = 0;
	let heardAt = Date.now();
	let tickedAt = Date.now();
	let hiddenAt = 0;

	function report(change) {
		const before = JSON.stringify(status);
		Object.assign(status, change);
		if (JSON.stringify(status) === before) return;
		onStatus(status);
		if (status.leader) beat();
	}

	// --- the snapshot ---

	let pulling = null;
	let pullAgain = false;
	let replaceNext = false;
	let wake = () => {};

	/** Fetches the snapshot, again and again until it succeeds; `replace` forgets older revisions. */
	function pull({ replace = false } = {}) {
		pullAgain = true;
		replaceNext ||= replace;
		pulling ??= pullUntilDone().finally(() => (pulling = null));
		return pulling;
	}

	async function pullUntilDone() {
		let attempts = 0;
		while (pullAgain) {
			pullAgain = false;
			const replace = replaceNext || rev === null;
			replaceNext = false;
			let inbox;
			try {
				inbox = await fetchInbox();
			} catch (error) {
				pullAgain = true;
				replaceNext ||= replace;
				const authorized = error.status !== 401;
				report({ connected: false, authorized });
				await pause(authorized ? Math.min(15_000, 500 * 2 ** attempts++) : 30_000);
				continue;
			}
			rev = replace ? inbox.rev : Math.max(rev, inbox.rev);
			onSnapshot(inbox, { replace });
			report({ authorized: true });
			if (!status.leader && !status.connected) channel?.postMessage({ type: "hello" });
		}
	}

	function pause(ms) {
		return new Promise((resolve) => {
			const timer = setTimeout(resolve, ms);
			wake = () => {
				clearTimeout(timer);
				resolve();
			};
		});
	}

	// --- the leader ---

	function openSource() {
		closeSource();
		const opened = new EventSource(`/api/events?since=${rev}`);
		source = opened;
		opened.onopen = () => {
			openedAt = Date.now();
			report({ connected: true, authorized: true });
		};
		opened.onerror = () => {
			report({ connected: false });
			// While CONNECTING the browser itself tries again, with Last-Event-ID.
			if (opened.readyState === EventSource.CLOSED && opened === source) reopenFromSnapshot({ replace: false });
		};
		opened.addEventListener("card", (event) => {
			const card = JSON.parse(event.data);
			const message = { type: "card", before: rev, rev: Number(event.lastEventId) || card.rev, card };
			rev = Math.max(rev, message.rev);
			channel?.postMessage(message);
			onCard(card);
		});
		opened.addEventListener("reset", () => {
			channel?.postMessage({ type: "reset" });
			reopenFromSnapshot({ replace: true });
		});
	}

	function closeSource() {
		source?.close();
		source = null;
	}

	async function reopenFromSnapshot(how) {
		closeSource();
		// The first try is immediate; a server that goes on refusing or resetting is not hammered.
		if (openedAt > 0 && Date.now() - openedAt > 5_000) failures = 0;
		if (failures > 0) await pause(Math.min(15_000, 500 * 2 ** failures));
		failures += 1;
		openedAt = 0;
		await pull(how);
		if (status.leader && source === null) openSource();
	}

	function beat() {
		channel?.postMessage({ type: "beat", rev, connected: status.connected, authorized: status.authorized });
	}

	let queued = null; // the AbortController of this tab's place in the queue for the lock

	function queueForLock({ steal = false } = {}) {
		queued?.abort();
		const place = new AbortController();
		queued = place;
		const options = steal ? { steal: true } : { signal: place.signal };
		navigator.locks
			.request(NAME, options, () => {
				lead();
				return new Promise(() => {}); // held until the tab ends or another tab takes it over
			})
			.catch(() => {
				if (queued !== place) return;
				// Another tab took the lock from this one, because this one did not answer.
				closeSource();
				report({ leader: false });
				heardAt = Date.now();
				queueForLock();
			});
	}

	function lead() {
		report({ leader: true });
		openSource();
	}

	// --- the followers ---

	function receive(message) {
		if (message.type === "hello") {
			if (status.leader) beat();
			return;
		}
		if (status.leader) return;
		heardAt = Date.now();
		if (rev === null) return; // the reply to this tab's first `hello` tells what was missed
		if (message.type === "card") {
			if (message.before > rev) pull();
			rev = Math.max(rev, message.rev);
			onCard(message.card);
		} else if (message.type === "reset") {
			pull({ replace: true });
		} else if (message.type === "beat") {
			if (message.rev > rev) pull();
			if (message.authorized && !status.authorized) pull();
			report({ connected: message.connected, authorized: message.authorized });
		}
	}

	/** Asks the leader for a sign of life, and takes its place when none comes. */
	function checkLeader() {
		const askedAt = Date.now();
		channel.postMessage({ type: "hello" });
		setTimeout(() => {
			if (!status.leader && heardAt < askedAt && document.visibilityState === "visible") queueForLock({ steal: true });
		}, SILENCE_MS);
	}

	// --- sleep, sight, network ---

	function refresh() {
		wake();
		if (rev === null) return;
		// A connection that died in a sleep looks open: only a new one is known to be alive.
		if (status.leader && source !== null) openSource();
		else if (!status.leader) checkLeader();
	}

	function tick() {
		const slept = Date.now() - tickedAt > SLEEP_MS;
		tickedAt = Date.now();
		if (slept) refresh();
		else if (status.leader) beat();
		else if (canShare && rev !== null && Date.now() - heardAt > 3 * BEAT_MS && !document.hidden) checkLeader();
	}

	function visibilityChanged() {
		if (document.hidden) {
			hiddenAt = Date.now();
			// Without locks each tab needs a connection of its own, so a hidden one gives it back.
			if (!canShare) closeSource();
			return;
		}
		if (!canShare && rev !== null) openSource();
		else if (!status.leader || Date.now() - hiddenAt > SLEEP_MS) refresh();
		else wake();
	}

	channel?.addEventListener("message", (event) => receive(event.data));
	document.addEventListener("visibilitychange", visibilityChanged);
	addEventListener("online", refresh);
	addEventListener("focus", () => wake());
	// A page out of the back/forward cache has lost its lock and its stream; drafts are kept.
	addEventListener("pageshow", (event) => event.persisted && location.reload());
	setInterval(tick, BEAT_MS);
	onStatus(status);
	pull().then(() => {
		if (canShare) {
			queueForLock();
			channel.postMessage({ type: "hello" });
		} else {
			lead();
		}
	});
}
