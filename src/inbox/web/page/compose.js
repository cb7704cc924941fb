// The box in which a person guides a run: text and pictures, when they are to be read, interrupt and stop.

import { describeFailure, h } from "/parts.js";
import { postAnswer, postTo } from "/stream.js";

const IMAGE_TYPES = ["image/png", "image/jpeg", "image/gif", "image/webp"];
const IMAGES_LIMIT = 20 * 1024 * 1024; // of base64, as the server counts
const UPLOAD_MS = 90_000;
const SURE_MS = 4_000;
const PREVIEW = 96;

const find = (id) => document.getElementById(id);

/** Returns the bytes of a picture in base64. */
const readImage = (file) =>
	new Promise((resolve, reject) => {
		const reader = new FileReader();
		reader.onload = () => resolve(reader.result.slice(reader.result.indexOf(",") + 1));
		reader.onerror = reject;
		reader.readAsDataURL(file);
	});

/** Draws a picture small, on a canvas: the page loads nothing but what the server serves. */
async function drawPreview(file) {
	const canvas = h("canvas", { width: PREVIEW, height: PREVIEW, role: "img", "aria-label": file.name || "Pasted image" });
	try {
		const bitmap = await createImageBitmap(file);
		const scale = Math.max(PREVIEW / bitmap.width, PREVIEW / bitmap.height);
		const [width, height] = [bitmap.width * scale, bitmap.height * scale];
		canvas.getContext("2d").drawImage(bitmap, (PREVIEW - width) / 2, (PREVIEW - height) / 2, width, height);
		bitmap.close();
	} catch {
		canvas.setAttribute("aria-label", "An image that cannot be shown here");
	}
	return canvas;
}

export class Composer {
	/** `accept(card)` takes a card from a reply; `announce(text)` speaks to screen readers. */
	constructor(id, { accept, announce }) {
		Object.assign(this, { id, accept, announce });
		this.images = []; // { media_type, data, element }
		this.question = null; // the one card that a text can answer
		this.text = find("text");
		this.text.value = sessionStorage.getItem(`guidance:${id}`) ?? "";
		this.text.addEventListener("input", () => this.keepDraft());
		this.text.addEventListener("keydown", (event) => {
			if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
			event.preventDefault();
			this.send({ asReply: this.canReply() });
		});
		this.text.addEventListener("paste", (event) => {
			const files = [...(event.clipboardData?.files ?? [])];
			if (files.length === 0) return;
			event.preventDefault();
			this.addImages(files);
		});
		find("file").addEventListener("change", (event) => {
			this.addImages([...event.target.files]);
			event.target.value = "";
		});
		find("compose").addEventListener("submit", (event) => {
			event.preventDefault();
			this.send({ asReply: event.submitter === find("reply") });
		});
		find("interrupt").addEventListener("click", () => this.order("interrupt", "Interrupt sent"));
		find("stop").addEventListener("click", () => this.stop());
	}

	setRun(run) {
		find("compose").hidden = false;
		find("writing").hidden = !run.driven;
		find("over").hidden = run.driven;
		const go = h("code", `pml run --resume ${run.id} "…"`);
		if (run.state === "parked") find("over").replaceChildren("Parked. Answer what is asked above, and the agent goes on.");
		else find("over").replaceChildren(run.state === "lost" ? "The process of this run is gone. " : "This run is over. ", "To go on: ", go);
		find("interrupt").disabled = !["running", "asking", "starting"].includes(run.state);
	}

	/** Offers to answer the one open question with what is written here. */
	setQuestion(card) {
		if (this.question?.id === card?.id) return;
		this.question = card;
		this.showReply();
	}

	canReply() {
		return Boolean(this.question) && this.images.length === 0;
	}

	showReply() {
		const canReply = this.canReply();
		find("reply").hidden = !canReply;
		find("queue").textContent = canReply ? "Queue" : "Send";
		find("queue").classList.toggle("main", !canReply);
		find("replying").hidden = !canReply;
		find("replying").textContent = canReply ? `Enter answers: ${this.question.title}` : "";
	}

	keepDraft() {
		this.problem("");
		try {
			sessionStorage.setItem(`guidance:${this.id}`, this.text.value);
		} catch {
			// The storage can be full; the draft then lives as long as the page.
		}
	}

	problem(text) {
		find("problem").textContent = text;
		find("problem").hidden = !text;
	}

	// --- pictures ---

	async addImages(files) {
		for (const file of files) {
			if (!IMAGE_TYPES.includes(file.type)) {
				this.problem("The agent reads PNG, JPEG, GIF and WebP.");
				continue;
			}
			const data = await readImage(file).catch(() => "");
			const total = this.images.reduce((sum, image) => sum + image.data.length, data.length);
			if (!data || total > IMAGES_LIMIT) {
				this.problem(data ? "The images are too large: 15 MB together are the most." : "The image cannot be read.");
				continue;
			}
			const image = { media_type: file.type, data };
			const remove = () => {
				this.images = this.images.filter((other) => other !== image);
				this.showImages();
				this.text.focus();
			};
			image.element = h("div.image", await drawPreview(file), h("button", { type: "button", "aria-label": "Remove this image", click: remove }, "✕"));
			this.images.push(image);
			this.showImages();
		}
	}

	showImages() {
		find("images").replaceChildren(...this.images.map((image) => image.element));
		find("images").hidden = this.images.length === 0;
		this.showReply();
	}

	// --- sending ---

	async send({ asReply }) {
		const text = this.text.value;
		if (this.isSending || (!text.trim() && this.images.length === 0)) return;
		this.setSending(true);
		// A second try of the same words is the same message: the run knows it by its name.
		if (this.tried?.text !== text || this.tried.images !== this.images) this.tried = { uuid: crypto.randomUUID(), text, images: this.images };
		const reply = asReply ? await postAnswer(this.question.id, { answers: [{ labels: [], text: text.trim() }] }) : await this.postMessage(text);
		this.setSending(false);
		if (asReply && reply.body?.id) this.accept(reply.body);
		if (reply.status === 200 || reply.status === 202) {
			this.clear();
			this.announce(asReply ? "Reply sent" : "Message sent");
		} else if (asReply && [409, 410].includes(reply.status)) {
			this.problem("That question is over. Send it as a message, if it still matters.");
		} else {
			this.problem(describeFailure(reply));
		}
		this.text.focus();
	}

	postMessage(text) {
		const images = this.images.map(({ media_type, data }) => ({ media_type, data }));
		const message = { uuid: this.tried.uuid, text, images, priority: find("priority").value };
		return postTo(`/api/runs/${this.id}/messages`, message, UPLOAD_MS);
	}

	/** Hears that the run has a message: one whose reply was lost did arrive. */
	heard(uuid) {
		if (this.tried?.uuid === uuid && this.tried.text === this.text.value && !this.isSending) this.clear();
	}

	clear() {
		this.tried = null;
		this.text.value = "";
		this.images = [];
		find("priority").value = "next";
		this.showImages();
		this.keepDraft();
	}

	setSending(isSending) {
		this.isSending = isSending;
		find("compose").ariaBusy = String(isSending);
		for (const id of ["queue", "reply"]) find(id).disabled = isSending;
	}

	async order(what, done) {
		const reply = await postTo(`/api/runs/${this.id}/${what}`, {});
		if (reply.status === 202) this.announce(done);
		else this.problem(describeFailure(reply));
	}

	/** The first press asks, the second stops. */
	stop() {
		const button = find("stop");
		clearTimeout(this.sure);
		const wasSure = button.dataset.sure === "true";
		const reset = () => {
			button.dataset.sure = "false";
			button.textContent = "Stop";
		};
		if (wasSure) {
			reset();
			this.order("stop", "Stop sent");
			return;
		}
		button.dataset.sure = "true";
		button.textContent = "Really stop?";
		this.sure = setTimeout(reset, SURE_MS);
	}
}
