// SPDX-License-Identifier: Apache-2.0
/*
 * A moment that the address names ("at=2026-01-31T12:00:00Z"): what a recording has of it stands in all views
 * instead of what is now, until the way back.
 */
import { byId, el, setText } from "./dom.js";
import { History } from "./history.js";
import { newMachine } from "./machine.js";
import { ask, load, loadMachine } from "./recorded.js";

/** The documents that a recording has; /api/v1/moment is all of them in one. */
const RECORDED = ["gpus", "processes", "node"];
/** Somebody who holds an arrow wants the last of many moments. */
const PATIENCE_MS = 150;
/** What charts have of an older moment: so much before it, and after. */
const AROUND_MS = 450000;
/** Of a moment that is this young what is not in the recording's file yet is asked for again. */
const YOUNG_MS = 60000;
const AGAIN_MS = 3000;

export class Moment {
    /** @param {import("./app.js").App} app */
    constructor(app) {
        this.app = app;
        this.at = "";
        /** @type {any} */
        this.document = null;
        this.problem = "";
        /** @type {History | null} of charts, if the moment is older than what the browser has seen */
        this.history = null;
        /** @type {History | null} likewise of the machine's */
        this.machine = null;
        this.said = el("b", { role: "status" });
        this.input = /** @type {HTMLInputElement} */ (el("input", { type: "datetime-local", step: "1", "aria-label": "Moment", onchange: () => this.choose() }));
        byId("moment").append(this.said, this.input, el("button", { type: "button", onclick: () => app.place.set({ at: "" }) }, "Back to now"));
        byId("keep").addEventListener("click", () => app.place.set({ at: app.data.live("gpus")?.time ?? "" }));
    }

    choose() {
        const time = new Date(this.input.value);
        if (!Number.isNaN(time.getTime()))
            this.app.place.set({ at: time.toISOString() });
    }

    /** What the address says may be another moment now. */
    update() {
        const { app } = this, time = Date.parse(app.place.get("at")), at = Number.isNaN(time) ? "" : new Date(time).toISOString();
        byId("keep").hidden = at !== "" || app.data.live("node")?.node.agent.recording_up !== 1;
        if (at === this.at)
            return;
        this.at = at;
        app.data.past = at ? this : null;
        this.problem = "";
        byId("moment").hidden = !at;
        if (!at) {
            this.document = this.history = this.machine = null;
            return;
        }
        this.input.value = local(time);
        this.say();
        setTimeout(() => this.load(at), PATIENCE_MS);
    }

    say() {
        const shown = this.document && `As it was at ${new Date(this.document.time).toLocaleString([], { hour12: false })}`;
        setText(this.said, this.problem ? `Nothing of this moment: ${this.problem}` : shown || "Reading the recording…");
    }

    /** @param {string} at */
    async load(at) {
        if (at !== this.at)
            return;
        try {
            const reply = await ask(`api/v1/moment?at=${at}`, false), found = reply.ok ? await reply.json() : null;
            const problem = found ? "" : (await reply.text()).trim().replace(/^\d+ /, "");
            if (at !== this.at)
                return;
            this.document = found;
            this.problem = problem;
        } catch {
            this.problem = "the agent does not answer";
        }
        this.say();
        this.app.refresh();
        if (this.document && Date.parse(at) - Date.parse(this.document.time) > 1000 && Date.now() - Date.parse(at) < YOUNG_MS)
            setTimeout(() => this.load(at), AGAIN_MS);
        else
            await this.loadCharts(at);
    }

    /** @param {string} at */
    async loadCharts(at) {
        const { history } = this.app, time = Date.parse(at), gpus = this.document?.gpus.length;
        const older = new History(), machine = newMachine();
        const span = { gpus, since: time - AROUND_MS, until: Math.min(time + AROUND_MS, Date.now()), early: false };
        this.history = this.machine = null;
        if (!gpus || time >= history.time(history.first))
            return;
        await load(older, span);
        await loadMachine(machine, span);
        if (at !== this.at || !older.n)
            return;
        older.takeTops(history);
        machine.takeTops(this.app.machine);
        this.history = older;
        this.machine = machine;
        this.app.refresh();
    }

    /** @param {string} name @returns {any} */
    get(name) {
        const events = this.app.data.live("events");
        if (RECORDED.includes(name))
            return this.document;
        return name === "events" && events ? { ...events, events: events.events.filter((/** @type {any} */ e) => Date.parse(e.time) <= Date.parse(this.at)) } : null;
    }

    /** @param {string} name */
    why(name) {
        return RECORDED.includes(name) || name === "events" ? "" : "This view is of now only; of a time: gpusonde report, or a timeline.";
    }
}

/**
 * As an input of a date has it: in the viewer's time zone, without its name.
 * @param {number} time
 */
function local(time) {
    return new Date(time - new Date(time).getTimezoneOffset() * 60000).toISOString().slice(0, 19);
}
