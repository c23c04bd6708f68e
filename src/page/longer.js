// SPDX-License-Identifier: Apache-2.0
/* Charts of a longer time than the browser keeps: what the recording has of the last hours. */
import { MOMENTS } from "./history.js";

/** So long is what the browser keeps itself. */
const KEPT_MINUTES = 15;
/** What is recorded is up to so much behind. */
const BEHIND_MS = 10000;

/**
 * Seconds from one point to the next of so many minutes; 0: the browser has them, each second.
 * @param {number} minutes
 */
export function stepOf(minutes) {
    return minutes > KEPT_MINUTES ? Math.ceil(minutes * 60 / MOMENTS) : 0;
}

export class Longer {
    /**
     * @param {import("./app.js").App} app
     * @param {() => import("./history.js").History} make
     * @param {(history: import("./history.js").History, span: import("./recorded.js").Span) => Promise<void>} load
     * @param {() => import("./history.js").History} kept what the browser keeps
     */
    constructor(app, make, load, kept) {
        this.app = app;
        this.make = make;
        this.load = load;
        this.kept = kept;
        this.minutes = 0;
        this.until = 0;
        this.reading = false;
        /** @type {import("./history.js").History | null} */
        this.history = null;
    }

    /** Whether there is more than the browser keeps: of now, where the agent records. */
    get possible() {
        return !this.app.moment.at && this.app.data.live("node")?.node.agent.recording_up === 1;
    }

    /**
     * The last @minutes; null: the browser has them, or they are not read yet.
     * @param {number} minutes
     */
    of(minutes) {
        const gpus = this.app.data.live("gpus"), step = stepOf(minutes);
        if (!step || !this.possible || !gpus)
            return null;
        if (minutes !== this.minutes)
            [this.minutes, this.until, this.history] = [minutes, 0, null];
        const now = Date.parse(gpus.time);
        if (!this.reading && now - this.until > Math.max(step * 1000, BEHIND_MS))
            this.read({ gpus: gpus.gpus.length, since: now - minutes * 60000, until: now, early: true, step });
        return this.history;
    }

    /** @param {import("./recorded.js").Span} span */
    async read(span) {
        const { minutes } = this, history = this.make();
        this.reading = true;
        this.until = span.until;
        await this.load(history, span).catch(() => {}); // asked for again
        this.reading = false;
        if (minutes !== this.minutes || !history.n)
            return;
        history.takeTops(this.kept());
        this.history = history;
        this.app.refresh();
    }
}
