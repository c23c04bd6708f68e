// SPDX-License-Identifier: Apache-2.0
/*
 * The documents of /api/v1 by their names ("gpus", "processes"), kept current while somebody wants them. The
 * agent sends what changes as Server-Sent Events (serve/delta.h); where it does not, because of a proxy say, or
 * as there are too many viewers, the documents are asked for each second instead. A document is one object that
 * changes in place.
 */

const PERIOD_MS = 1000;
/** A page that is not looked at asks less often. */
const HIDDEN_PERIOD_MS = 10000;
/** How long events may be silent; the agent gives a sign of life each two seconds. */
const SILENCE_MS = 6000;
/** After events have failed, how long documents are asked for before they are tried again; and when one that is not there is asked for again. */
const RETRY_MS = 10000;

/** @typedef {{name: string, document: any, problem: string | null, later: number}} Page later: not asked for before, by performance.now() */
/** @typedef {{page: string, start?: boolean, more?: boolean, changes: [(string | number)[], any][]}} Change */

export class Data {
    /** @param {(names: string[]) => void} changed called with what has changed; none: whether the agent answers */
    constructor(changed) {
        this.changed = changed;
        /** @type {Map<string, Page>} */
        this.pages = new Map();
        /** @type {import("./moment.js").Moment | null} what stands for now in the views */
        this.past = null;
        /** When the agent answered last, by performance.now(). */
        this.heard = performance.now();
        /** @type {EventSource | undefined} */
        this.events = undefined;
        /** @type {number | undefined} */
        this.timer = undefined;
        /** How often documents were asked for, and events have come: for tests. */
        this.polls = 0;
        this.received = 0;
        document.addEventListener("visibilitychange", () => this.restart());
        setInterval(() => this.watch(), PERIOD_MS);
    }

    /**
     * Keeps these documents current, and forgets others.
     * @param {string[]} names
     */
    want(names) {
        for (const name of this.pages.keys())
            if (!names.includes(name))
                this.pages.delete(name);
        for (const name of names)
            if (!this.pages.has(name))
                this.pages.set(name, { name, document: null, problem: null, later: 0 });
        this.restart();
    }

    /**
     * @param {string} name
     * @returns {any} of the moment that is shown; null: it has not come yet, or does not exist
     */
    get(name) {
        return this.past ? this.past.get(name) : this.live(name);
    }

    /** @param {string} name @returns {any} of now */
    live(name) {
        return this.pages.get(name)?.document ?? null;
    }

    /**
     * Why a document does not exist, in the agent's words; "": it does, or has not come yet.
     * @param {string} name
     */
    problem(name) {
        return this.past ? this.past.why(name) : this.pages.get(name)?.problem ?? "";
    }

    /** A page that nobody sees is no viewer. */
    restart() {
        this.events?.close();
        this.events = undefined;
        clearTimeout(this.timer);
        if (document.hidden)
            this.timer = setTimeout(() => this.poll(HIDDEN_PERIOD_MS, Infinity), HIDDEN_PERIOD_MS);
        else if (this.pages.size)
            this.listen();
    }

    // ---- events

    listen() {
        const events = new EventSource(`api/v1/stream?pages=${[...this.pages.keys()].join(",")}`);
        this.events = events;
        this.began = performance.now();
        events.addEventListener("change", (event) => this.apply(JSON.parse(event.data)));
        events.addEventListener("absent", (event) => this.absent(JSON.parse(event.data)));
        events.addEventListener("beat", () => this.hear());
        events.addEventListener("error", () => {
            // While it is CONNECTING the browser tries again by itself: the agent may only have been restarted.
            if (events === this.events && events.readyState === EventSource.CLOSED)
                this.fallBack();
        });
    }

    /** Of events that nothing comes from, though the connection stands. */
    watch() {
        const since = Math.max(this.heard, this.began ?? 0);
        if (this.events && performance.now() - since > SILENCE_MS)
            this.fallBack();
        this.changed([]);
    }

    fallBack() {
        this.events?.close();
        this.events = undefined;
        this.poll(PERIOD_MS, performance.now() + RETRY_MS);
    }

    hear() {
        this.heard = performance.now();
        this.received++;
    }

    /** @param {Change} change */
    apply(change) {
        const page = this.pages.get(change.page);
        this.hear();
        if (!page)
            return;
        if (change.start)
            page.document = null;
        for (const [path, value] of change.changes)
            page.document = set(page.document, path, value);
        page.problem = null;
        if (!change.more)
            this.changed([page.name]);
    }

    /** @param {{page: string, text: string}} said */
    absent(said) {
        const page = this.pages.get(said.page);
        this.hear();
        if (!page)
            return;
        page.document = null;
        page.problem = said.text;
        this.changed([page.name]);
    }

    // ---- documents

    /**
     * @param {number} period
     * @param {number} until by performance.now(); then events are tried again
     */
    async poll(period, until) {
        const began = performance.now();
        clearTimeout(this.timer);
        if (began > until) {
            this.restart();
            return;
        }
        this.polls++;
        try {
            await Promise.all([...this.pages.values()].map((page) => this.fetch(page)));
            this.heard = performance.now();
        } catch {
            // watch() says for how long nothing has come
        }
        if (this.events)
            return;
        this.changed([...this.pages.keys()]);
        this.timer = setTimeout(() => this.poll(period, until), Math.max(period - (performance.now() - began), 0));
    }

    /** @param {Page} page */
    async fetch(page) {
        if (performance.now() < page.later)
            return;
        const reply = await fetch(`api/v1/${page.name}`, { cache: "no-store" });
        if (reply.status >= 500)
            throw new Error("a proxy answers, but no agent");
        page.later = reply.status === 404 ? performance.now() + RETRY_MS : 0;
        page.document = reply.ok ? await reply.json() : null;
        page.problem = reply.ok ? null : (await reply.text()).trim();
    }
}

/**
 * Sets what lies at a path; that of an empty path is the document.
 * @param {any} document
 * @param {(string | number)[]} path
 * @param {any} value
 */
function set(document, path, value) {
    const last = path[path.length - 1];
    if (path.includes("__proto__"))
        return document;
    if (last === undefined)
        return value;
    let at = document;
    for (const step of path.slice(0, -1))
        at = at[step];
    at[last] = value;
    return document;
}
