// SPDX-License-Identifier: Apache-2.0
/* Timelines: whether one is recorded, how that is begun, and the files, which Perfetto's UI opens. */
import { el, setText } from "../dom.js";
import { bytes, text } from "../format.js";
import { Table } from "../table.js";

const PERIOD_MS = 2000;

/**
 * A file, in the parts that the agent gives; null: it could not be had.
 * @param {any} file
 * @param {(done: number) => void} progress
 * @returns {Promise<Blob>}
 */
async function load(file, progress) {
    /** @type {Blob[]} */
    const parts = [];
    for (let at = 0; at < file.bytes;) {
        const reply = await fetch(`api/v1/timeline?file=${file.file}&at=${at}`, { cache: "no-store" });
        if (reply.status === 202) {
            await new Promise((resolve) => setTimeout(resolve, 200));
            continue;
        }
        if (reply.status !== 200)
            throw new Error((await reply.text()).trim());
        const part = await reply.blob();
        if (!part.size)
            break;
        parts.push(part);
        at += part.size;
        progress(at);
    }
    return new Blob(parts, { type: "application/octet-stream" });
}

/**
 * What is said of the recording.
 * @param {any} found
 */
function saying(found) {
    const { recording } = found;
    if (!found.possible)
        return "No timeline can be recorded: nothing is traced. gpusonde doctor says why.";
    if (recording.recording)
        return `A timeline is being recorded: ${bytes(recording.timeline.bytes)} so far${recording.pid ? `, of process ${recording.pid}` : ""}.`;
    return recording.error ? `No timeline is recorded. The last request failed: ${recording.error}` : "No timeline is recorded.";
}

/**
 * What may be done now: the words of the button, what the agent is asked for, and the command that does the same.
 * @param {any} found
 * @returns {[string, string, string][]}
 */
function actions(found) {
    if (!found.possible)
        return [];
    if (found.recording.recording)
        return [["Stop recording", "stop", "gpusonde record stop"]];
    return [["Record 60 seconds", "start&duration=60s", "gpusonde record start --duration 60s"],
        ...found.recording.last_seconds ? /** @type {[string, string, string][]} */ ([["Write what is kept", "last", "gpusonde record last"]]) : []];
}

class Timelines {
    /** @param {HTMLElement} root @param {import("../app.js").App} app */
    constructor(root, app) {
        this.app = app;
        this.asked = -Infinity;
        /** Whether who looks may have the agent record (web.control): over TLS alone. */
        this.may = false;
        /** @type {any} */
        this.found = null;
        /** The actions that are shown, as JSON. */
        this.offered = "";
        this.note = el("p", { class: "note", role: "status" });
        this.said = el("p", { role: "status" });
        this.commands = el("ul", { class: "links" });
        root.append(this.note, this.said, this.commands);
        this.table = new Table(root, {
            label: "Timelines", sort: "-modified", nothing: "None was written.", place: app.place, key: (f) => f.file,
            columns: [
                { id: "file", title: "File", text: (f) => text(f.file) },
                { id: "modified", title: "Written", text: (f) => new Date(f.modified).toLocaleString([], { hour12: false }), value: (f) => Date.parse(f.modified) },
                { id: "bytes", title: "Size", right: true, text: (f) => bytes(f.bytes), value: (f) => f.bytes },
                { id: "download", title: "Download", text: () => "Download", click: (f) => () => this.download(f) },
            ],
        });
        root.append(el("p", { class: "dim" }, "Perfetto's UI opens these files: download one, open ", el("code", {}, "ui.perfetto.dev"),
            ", and drop the file there. It is read by your browser, and sent nowhere. ", el("code", {}, "gpusonde analyze FILE"), " says what in it was slow."));
    }

    /** Asked once, where it may be so. */
    async askRight() {
        this.may = location.protocol === "https:" && (await fetch("control/record", { cache: "no-store" })).ok;
        if (this.found)
            this.show(this.found);
    }

    /** @param {string} action */
    async act(action) {
        try {
            const reply = await fetch(`control/record?action=${action}`, { method: "POST" });
            setText(this.said, reply.ok ? "The agent was asked for it." : (await reply.text()).trim());
        } catch {
            setText(this.said, "The agent does not answer.");
        }
        this.asked = -Infinity;
    }

    /** @param {any} file */
    async download(file) {
        try {
            const blob = await load(file, (done) => setText(this.said, `Loading ${file.file}: ${bytes(done)} of ${bytes(file.bytes)}`));
            const link = el("a", { href: URL.createObjectURL(blob), download: file.file });
            link.click();
            setTimeout(() => URL.revokeObjectURL(link.getAttribute("href") ?? ""), 60000);
            setText(this.said, `${file.file} is loaded: ${bytes(blob.size)}`);
        } catch (error) {
            setText(this.said, `${file.file} could not be loaded: ${/** @type {Error} */ (error).message}`);
        }
    }

    async ask() {
        this.asked = performance.now();
        try {
            const reply = await fetch("api/v1/timelines", { cache: "no-store" });
            if (reply.status === 202)
                this.asked = -Infinity;
            else if (reply.status === 200)
                this.show(await reply.json());
            else
                setText(this.note, (await reply.text()).trim().replace(/^\d+ /, ""));
        } catch {
            // the header says that the agent does not answer
        }
    }

    /** @param {any} found */
    show(found) {
        const all = actions(found), is = JSON.stringify([all, this.may]);
        this.found = found;
        setText(this.note, saying(found));
        if (is !== this.offered)
            this.commands.replaceChildren(...all.map(([words, action, command]) => el("li", {}, this.may ? el("button", { type: "button", onclick: () => this.act(action) }, words) :
                el("code", {}, command), this.may ? "" : " on the machine, by who may write to the agent's control socket; here over TLS, by whom web.control names")));
        this.offered = is;
        this.table.update(found.files);
    }

    update() {
        if (performance.now() - this.asked > PERIOD_MS)
            this.ask();
        if (this.found)
            this.table.update(this.found.files);
    }
}

/** @type {import("../views.js").View} */
export const timelines = {
    id: "timelines",
    title: "Timelines",
    pages: [],
    create(root, app) {
        const view = new Timelines(root, app);
        view.askRight();
        return () => view.update();
    },
};
