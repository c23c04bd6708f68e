// SPDX-License-Identifier: Apache-2.0
/* What a recording has of a time, for the charts: /api/v1/history. */
import { SERIES } from "./history.js";
import { pastSubjects } from "./machine.js";

/** So many metrics are asked for at once. */
const AT_ONCE = 5;
/** Beyond so many GPUs a tenth of the points is enough. */
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
 * @param {Span} span
 */
export async function load(history, span) {
    /** @type {Found} */
    const found = new Map();
    /** @type {number[]} */
    let times = [];
    for (let i = 0; i < SERIES.length; i += AT_ONCE) {
        const reply = await over(SERIES.slice(i, i + AT_ONCE).map((s) => s.metric ?? ""), span);
        if (!reply)
            return;
        times = add(found, reply);
    }
    put(history, times, found);
}

/**
 * The same of the machine.
 * @param {import("./history.js").History} history
 * @param {Span} span
 */
export async function loadMachine(history, span) {
    const replies = [];
    for (const metrics of MACHINE) {
        const reply = await over(metrics, span);
        if (!reply)
            return;
        replies.push(reply);
    }
    const times = timesOf(replies[0]);
    put(history, times, await pastSubjects(history.series, times, replies.flatMap((reply) => reply.series)));
}

/** What the charts of the machine need, as many as may be asked for at once. */
const MACHINE = [
    ["user", "nice", "system", "idle", "iowait", "irq"].map((state) => `host_cpu_seconds_total.${state}`),
    ["host_cpu_seconds_total.softirq", "host_cpu_seconds_total.steal", "host_memory_bytes"],
    ["host_disk_read_bytes_total", "host_disk_written_bytes_total"],
    ["host_network_bytes_total"],
];

/**
 * @typedef {object} Span the same for all that is asked for, whose points are then of the same times
 * @property {number} gpus how many there are
 * @property {number} since milliseconds since 1970
 * @property {number} until
 * @property {boolean} early nothing may be recorded yet
 * @property {number} [step] seconds from one point to the next; one, unless it is said
 */

/** @typedef {Map<string, Map<number, (number | null)[]>>} Found by subject and series */

/**
 * A page of /api/v1/history; null: there is none.
 * @param {string[]} metrics
 * @param {Span} span
 */
async function over(metrics, { gpus, since, until, early, step = 1 }) {
    const reply = await ask(`api/v1/history?metric=${metrics.join(",")}&since=${since / 1000}&until=${until / 1000}&step=${step * (gpus > GPUS_EACH_SECOND ? 10 : 1)}s`, early);
    return reply.status === 200 ? reply.json() : null;
}

/**
 * @param {import("./history.js").History} history
 * @param {number[]} times
 * @param {Found} found
 */
function put(history, times, found) {
    const kept = moments(times, found), [first, second] = times;
    if (first && second)
        history.step = (second - first) / 1000;
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
 * @param {Found} found
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
 * @param {Found} found
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
    return timesOf(reply);
}

/** @param {any} reply */
function timesOf(reply) {
    const first = Date.parse(reply.first), step = reply.step_seconds * 1000;
    return Array.from({ length: reply.points }, (_, i) => first + i * step);
}
