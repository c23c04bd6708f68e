// SPDX-License-Identifier: Apache-2.0
/* How fast sums grow, from document to document. */
import { known } from "./format.js";

/** Of documents further apart the newer one begins anew: the page slept, or another moment is looked at. */
export const APART_MS = 60000;

export class Rates {
    /**
     * @param {number} window what the rate is a mean of, in ms
     * @param {number} apart how far apart two documents may be, in ms
     */
    constructor(window, apart = APART_MS) {
        this.window = window;
        this.apart = apart;
        /** @type {Map<string, {at: number, sum: number}[]>} oldest first; the first one may be older than the window */
        this.seen = new Map();
    }

    /**
     * By second; null: the sum is not known, is the first one, or has begun anew.
     * @param {string} key
     * @param {unknown} sum
     * @param {string} time of its document
     * @returns {number | null}
     */
    of(key, sum, time) {
        const at = Date.parse(time), seen = this.seen.get(key) ?? [], last = seen.at(-1);
        if (!known(sum)) {
            this.seen.delete(key);
            return null;
        }
        if (last && (at < last.at || at - last.at > this.apart || sum < last.sum))
            seen.length = 0;
        if (at !== seen.at(-1)?.at)
            seen.push({ at, sum });
        while (seen.length > 2 && /** @type {{at: number}} */ (seen[1]).at <= at - this.window)
            seen.shift();
        this.seen.set(key, seen);
        const first = /** @type {{at: number, sum: number}} */ (seen[0]);
        return at > first.at ? (sum - first.sum) / (at - first.at) * 1000 : null;
    }
}
