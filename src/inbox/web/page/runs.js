// The list of runs, the newest first.

import { formatTime, h } from "/parts.js";
import { describeCost, describeElapsed } from "/tools.js";
import { fetchJson } from "/stream.js";

const LOOK_MS = 2_000;

const find = (id) => document.getElementById(id);
const rows = new Map(); // id -> { element, json }

function draw(run) {
	const facts = [run.project.split("/").filter(Boolean).at(-1), formatTime(run.createdAt), describeElapsed(run), describeCost(run.cost), run.model];
	return h(
		"a.run-row",
		{ href: `/runs/${encodeURIComponent(run.id)}`, "data-run": run.id, "data-state": run.state },
		h("span.state", { "data-state": run.state }, run.state),
		h("span.run-title", run.title || "(no title)"),
		h("span.quiet", { title: run.project }, facts.filter(Boolean).join(" · ")),
		h("span.code", run.id),
		run.trouble && h("span.trouble", run.trouble),
	);
}

function show(runs) {
	const elements = runs.map((run) => {
		// A row that did not change stays, with the focus that it may have.
		const json = JSON.stringify(run) + describeElapsed(run);
		const known = rows.get(run.id);
		if (known?.json === json) return known.element;
		const element = draw(run);
		const hadFocus = known?.element === document.activeElement;
		known?.element.replaceWith(element);
		if (hadFocus) element.focus({ preventScroll: true });
		rows.set(run.id, { element, json });
		return element;
	});
	const list = find("runs");
	if (elements.length !== list.children.length || elements.some((element, at) => list.children[at] !== element)) list.replaceChildren(...elements);
	const working = runs.filter((run) => run.driven).length;
	find("count").textContent = working > 0 ? `${working} under way` : "";
	find("empty").hidden = runs.length > 0;
	document.documentElement.dataset.loaded = true;
}

let isLooking = false;

async function look() {
	if (document.hidden || isLooking) return;
	isLooking = true;
	try {
		show((await fetchJson("/api/runs")).runs);
		find("banner").hidden = true;
	} catch (error) {
		find("banner").hidden = error.status !== 401;
	} finally {
		isLooking = false;
	}
}

setInterval(look, LOOK_MS);
document.addEventListener("visibilitychange", look);
look();
