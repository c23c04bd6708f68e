// SPDX-License-Identifier: Apache-2.0
/* The machine that the GPUs are in: its figures now, and for charts, which have subjects: itself, each disk, each network interface. */
import { bytes, known, percent, rate } from "./format.js";
import { History } from "./history.js";
import { APART_MS, Rates } from "./rates.js";

/** What rates and shares are means of. */
export const WINDOW_MS = 3000;

/** @type {import("./history.js").Series[]} */
export const MACHINE_SERIES = [
    { id: "cpu", title: "CPU busy", value: (s) => s.cpu, text: percent, most: () => 1 },
    { id: "memory", title: "Memory in use", value: (s) => s.memory, text: bytes, most: (s) => s.memoryTotal },
    { id: "read", title: "Disk read", value: (s) => s.read, text: rate },
    { id: "written", title: "Disk written", value: (s) => s.written, text: rate },
    { id: "received", title: "Network received", value: (s) => s.received, text: rate },
    { id: "sent", title: "Network sent", value: (s) => s.sent, text: rate },
];

/**
 * Shares of the time of all processors, by what they did; `busy` is all but `idle`.
 * @param {any} host @param {string} time @param {Rates} rates
 * @returns {Map<string, number | null>}
 */
export function cpuShares(host, time, rates) {
    const states = Object.entries(host.cpu_seconds_total).map(([name, sum]) => ({ name, rate: rates.of("cpu " + name, sum, time) }));
    const all = states.reduce((sum, s) => sum + (s.rate ?? 0), 0);
    const share = (/** @type {number | null | undefined} */ v) => known(v) && all > 0 ? v / all : null;
    const shares = new Map(states.map((s) => [s.name, share(s.rate)])), idle = shares.get("idle");
    return shares.set("busy", known(idle) ? 1 - idle : null);
}

/** @param {any} memory */
export const memoryUsed = (memory) => known(memory.total) && known(memory.available) ? memory.total - memory.available : null;

/**
 * The subjects of a document of the node.
 * @param {any} page @param {Rates} rates
 */
export function subjects(page, rates) {
    const { host } = page.node, { time } = page, there = { present: true, stale: false };
    const growth = (/** @type {string} */ key, /** @type {unknown} */ sum) => rates.of(key, sum, time);
    if (!host)
        return [];
    return [
        { ...there, uuid: "machine", cpu: cpuShares(host, time, rates).get("busy"), memory: memoryUsed(host.memory_bytes), memoryTotal: host.memory_bytes.total },
        ...(host.disks ?? []).map((/** @type {any} */ d) => ({
            ...there, uuid: `disk ${d.name}`, read: growth(`${d.name} read`, d.read_bytes_total), written: growth(`${d.name} written`, d.written_bytes_total),
        })),
        ...(host.interfaces ?? []).map((/** @type {any} */ i) => ({
            ...there, uuid: `interface ${i.name}`, received: growth(`${i.name} received`, i.bytes_total.receive), sent: growth(`${i.name} sent`, i.bytes_total.transmit),
        })),
    ];
}

/** A history of the machine. */
export function newMachine() {
    const rates = new Rates(WINDOW_MS);
    return new History(MACHINE_SERIES, (page) => subjects(page, rates));
}

/** So many moments are worked on at once. */
const PIECE = 50;
/** Moments of a recording may be minutes apart. A sum grows over one that was not sampled, not over two. */
const MISSED_STEPS = 2.5;

/**
 * What a recording has, as charts show it: each moment as its document was, so that its numbers are those that were seen then.
 * @param {import("./history.js").Series[]} series
 * @param {number[]} times
 * @param {any[]} recorded
 */
export async function pastSubjects(series, times, recorded) {
    /** @type {Map<string, Map<number, (number | null)[]>>} */
    const found = new Map();
    const step = (times[1] ?? 0) - (times[0] ?? 0);
    const rates = new Rates(WINDOW_MS, Math.max(APART_MS, MISSED_STEPS * step));
    for (const [n, time] of times.entries()) {
        // A moment that was not sampled is none: a sum grows over it.
        if (!recorded.some((r) => known(r.values[n])))
            continue;
        if (n % PIECE === 0)
            await new Promise((resolve) => setTimeout(resolve));
        for (const subject of subjects(pastPage(time, n, recorded), rates))
            series.forEach(({ value }, k) => {
                const v = value(subject), of = found.get(subject.uuid) ?? new Map();
                if (!known(v))
                    return;
                found.set(subject.uuid, of);
                of.set(k, of.get(k) ?? times.map(() => null));
                of.get(k)[n] = v;
            });
    }
    return found;
}

/**
 * @param {number} time
 * @param {number} n
 * @param {any[]} recorded
 */
function pastPage(time, n, recorded) {
    /** @type {any} */
    const host = { cpu_seconds_total: {}, memory_bytes: {}, disks: [], interfaces: [] };
    const device = (/** @type {any[]} */ list, /** @type {string} */ name) => list.find((d) => d.name === name) ?? list[list.push({ name, bytes_total: {} }) - 1];
    for (const { metric, device: name, values } of recorded) {
        const [family, label] = metric.split(".");
        if (family === "host_cpu_seconds_total")
            host.cpu_seconds_total[label] = values[n];
        else if (family === "host_memory_bytes")
            host.memory_bytes[label] = values[n];
        else if (label)
            device(host.interfaces, name).bytes_total[label] = values[n];
        else
            device(host.disks, name)[family.replace("host_disk_", "")] = values[n];
    }
    return { time: new Date(time).toISOString(), node: { host } };
}
