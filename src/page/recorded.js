// SPDX-License-Identifier: Apache-2.0
/* What a recording has of the last quarter of an hour, for the charts: /api/v1/history. */
import { SERIES } from "./history.js";

/** So many metrics are asked for at once. */
const AT_ONCE = 5;
/** Beyond so many GPUs one point in ten seconds is enough. */
const GPUS_EACH_SECOND = 8;
/** By status, when to ask again: it is being read; nothing is recorded yet, as in the first ten seconds. */
const AGAIN_MS = new Map([[202, 300], [404, 5000]]);
const PATIENCE_MS = 30000;

/**
 * @param {string} address
 * @returns {Promise<any>} null: the recording does not say
 */
async function ask(address) {
    for (const end = performance.now() + PATIENCE_MS;;) {
        const reply = await fetch(address, { cache: "no-store" }), again = AGAIN_MS.get(reply.status);
        if (!again)
            return reply.ok ? reply.json() : null;
        if (performance.now() > end)
            return null;
        await new Promise((resolve) => setTimeout(resolve, again));
    }
}

/**
 * Gives a history what was before the page was opened.
 * @param {import("./history.js").History} history
 * @param {number} gpus how many there are
 */
export async function load(history, gpus) {
    /** @type {Map<string, Map<number, (number | null)[]>>} */
    const found = new Map();
    /** @type {number[]} */
    let times = [];
    for (let i = 0; i < SERIES.length; i += AT_ONCE) {
        const metrics = SERIES.slice(i, i + AT_ONCE).map((s) => s.metric).join(",");
        const reply = await ask(`api/v1/history?metric=${metrics}&since=15m&step=${gpus > GPUS_EACH_SECOND ? 10 : 1}s`);
        if (!reply)
            return;
        times = add(found, reply);
    }
    history.prepend(times, found);
}

/**
 * @param {Map<string, Map<number, (number | null)[]>>} found
 * @param {any} reply
 * @returns {number[]} its times
 */
function add(found, reply) {
    for (const series of reply.series) {
        const k = SERIES.findIndex((s) => s.metric === series.metric), of = found.get(series.uuid) ?? new Map();
        if (k < 0 || series.instance)
            continue;
        of.set(k, series.values);
        found.set(series.uuid, of);
    }
    const first = Date.parse(reply.first), step = reply.step_seconds * 1000;
    return Array.from({ length: reply.points }, (_, i) => first + i * step);
}
