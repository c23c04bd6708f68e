// SPDX-License-Identifier: Apache-2.0
/* What a recording has of a time, for the charts: /api/v1/history. */
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
 * @param {boolean} early nothing may be recorded yet
 * @returns {Promise<Response>}
 */
export async function ask(address, early) {
    for (const end = performance.now() + PATIENCE_MS;;) {
        const reply = await fetch(address, { cache: "no-store" }), again = AGAIN_MS.get(reply.status);
        if (!again || (reply.status === 404 && !early) || performance.now() > end)
            return reply;
        await new Promise((resolve) => setTimeout(resolve, again));
    }
}

/**
 * Gives a history what was before the page was opened, or of a time.
 * @param {import("./history.js").History} history
 * @param {number} gpus how many there are
 * @param {number} [since] milliseconds since 1970
 * @param {number} [until]
 */
export async function load(history, gpus, since, until) {
    /** @type {Map<string, Map<number, (number | null)[]>>} */
    const found = new Map();
    const span = since && until ? `since=${since / 1000}&until=${until / 1000}` : "since=15m";
    /** @type {number[]} */
    let times = [];
    for (let i = 0; i < SERIES.length; i += AT_ONCE) {
        const metrics = SERIES.slice(i, i + AT_ONCE).map((s) => s.metric).join(",");
        const reply = await ask(`api/v1/history?metric=${metrics}&${span}&step=${gpus > GPUS_EACH_SECOND ? 10 : 1}s`, !since);
        if (reply.status !== 200)
            return;
        times = add(found, await reply.json());
    }
    const kept = moments(times, found);
    for (const series of found.values())
        for (const [k, values] of series)
            series.set(k, kept.map((i) => values[i] ?? null));
    history.prepend(kept.map((i) => /** @type {number} */ (times[i])), found);
}

/** A pause this many times as long as usual is one: there is a moment in it at which nothing is known. */
const PAUSE = 3;

/**
 * The places of the moments that were sampled, which may be less often than there are steps; and the first of all, from which on is shown.
 * @param {number[]} times
 * @param {Map<string, Map<number, (number | null)[]>>} found
 */
export function moments(times, found) {
    const all = [...found.values()].flatMap((series) => [...series.values()]);
    const sampled = times.map((_, i) => i).filter((i) => all.some((values) => typeof values[i] === "number"));
    const steps = sampled.slice(1).map((i, n) => i - /** @type {number} */ (sampled[n])).sort((a, b) => a - b);
    const usual = steps[(steps.length - 1) >> 1] ?? 1;
    const kept = sampled.flatMap((i, n) => n && i - /** @type {number} */ (sampled[n - 1]) > PAUSE * usual ? [i - 1, i] : [i]);
    return kept[0] ? [0, ...kept] : kept;
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
