// SPDX-License-Identifier: Apache-2.0
/*
 * The documents of /api/v1 by their names ("gpus", "processes"), kept current while somebody wants them. A
 * document is one object that changes in place; who wants to know is told once for each round of changes.
 */

const PERIOD_MS = 1000;
/** A page that is not looked at asks less often. */
const HIDDEN_PERIOD_MS = 10000;

/** @typedef {{name: string, document: any, problem: string | null, at: number}} Page */

export class Data {
    /** @param {() => void} changed */
    constructor(changed) {
        this.changed = changed;
        /** @type {Map<string, Page>} */
        this.pages = new Map();
        /** Why the agent does not answer; "": it does. */
        this.lost = "";
        /** When the agent answered last, by performance.now(). */
        this.heard = performance.now();
        /** @type {number | undefined} */
        this.timer = undefined;
        document.addEventListener("visibilitychange", () => this.soon());
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
                this.pages.set(name, { name, document: null, problem: null, at: 0 });
        this.soon();
    }

    /** @param {string} name @returns {any} null: it has not come yet, or does not exist */
    get(name) {
        return this.pages.get(name)?.document ?? null;
    }

    /**
     * Why a document does not exist, in the agent's words; "": it does, or has not come yet.
     * @param {string} name
     */
    problem(name) {
        return this.pages.get(name)?.problem ?? "";
    }

    soon() {
        clearTimeout(this.timer);
        this.timer = setTimeout(() => this.poll(), 0);
    }

    async poll() {
        const began = performance.now();
        try {
            await Promise.all([...this.pages.values()].map((page) => this.fetch(page)));
            this.lost = "";
            this.heard = performance.now();
        } catch (error) {
            this.lost = error instanceof Error ? error.message : String(error);
        }
        this.changed();
        clearTimeout(this.timer);
        const period = document.hidden ? HIDDEN_PERIOD_MS : PERIOD_MS;
        this.timer = setTimeout(() => this.poll(), Math.max(period - (performance.now() - began), 0));
    }

    /** @param {Page} page */
    async fetch(page) {
        const reply = await fetch(`api/v1/${page.name}`, { cache: "no-store" });
        if (reply.ok) {
            page.document = await reply.json();
            page.problem = null;
        } else {
            page.document = null;
            page.problem = (await reply.text()).trim();
        }
        page.at = performance.now();
    }
}
