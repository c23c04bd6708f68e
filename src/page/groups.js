// SPDX-License-Identifier: Apache-2.0
/* Processes by whose they are, or by GPU: a row for each group, which stands for all of it, and those of the group that is open. */
import { NONE, known, text } from "./format.js";
import { user } from "./users.js";

/** By what, and the name of a process's group; null: it has none. */
export const BY = /** @type {Record<string, (p: any) => string | null>} */ ({
    user: (p) => known(p.uid) ? user(p.uid) : null,
    container: (p) => p.container ?? p.container_id?.slice(0, 12) ?? null,
    pod: (p) => p.pod || p.pod_uid ? [p.namespace, p.pod ?? p.pod_uid].filter(Boolean).join("/") : null,
    job: (p) => p.job ?? null,
    gpu: (p) => known(p.gpu) ? `GPU ${p.gpu}` : null,
});

const OTHERS = "none";

/**
 * What is the same of all of them, else null.
 * @param {any[]} rows
 * @param {string} name
 */
function common(rows, name) {
    return rows.every((row) => row[name] === rows[0][name]) ? rows[0][name] : null;
}

/**
 * Null where it is known of none.
 * @param {any[]} rows
 * @param {string} name
 */
function sum(rows, name) {
    const values = rows.map((row) => row[name]).filter(known);
    return values.length ? values.reduce((a, b) => a + b, 0) : null;
}

/**
 * A row that stands for a group: sums, and what all of it has in common. Shares of several GPUs are added up, as by "gpusonde ps --by".
 * @param {string} name
 * @param {any[]} rows
 */
function total(name, rows) {
    const same = Object.fromEntries(["gpu", "uid", "namespace", "pod", "pod_uid", "container", "container_id", "job"].map((key) => [key, common(rows, key)]));
    const pids = new Set(rows.map((row) => row.pid)), gpus = new Set(rows.map((row) => row.uuid));
    return {
        ...same, group: name, gi: null, ci: null, pid: null, rank: null, types: [], processes: pids.size,
        utilization_ratio: sum(rows, "utilization_ratio"), memory_bytes: sum(rows, "memory_bytes"), busy_seconds_total: sum(rows, "busy_seconds_total"),
        comm: `${pids.size} ${pids.size === 1 ? "process" : "processes"} on ${gpus.size} ${gpus.size === 1 ? "GPU" : "GPUs"}`,
    };
}

/**
 * The groups, each before its rows if it is @open.
 * @param {any[]} rows
 * @param {string} by a name of BY
 * @param {string} open
 * @param {(rows: any[]) => any[]} sort
 */
export function grouped(rows, by, open, sort) {
    /** @type {Map<string, any[]>} */
    const groups = new Map();
    for (const row of rows) {
        const name = BY[by]?.(row) ?? OTHERS, group = groups.get(name);
        if (group)
            group.push(row);
        else
            groups.set(name, [row]);
    }
    const totals = sort([...groups].map(([name, all]) => total(name, all)));
    return totals.flatMap((group) => group.group === open ? [group, ...sort(groups.get(group.group) ?? [])] : [group]);
}

/**
 * @param {import("./app.js").Place} place
 * @returns {import("./table.js").Column<any>}
 */
export function groupColumn(place) {
    return {
        id: "group", title: "Group", text: (p) => p.group === undefined ? NONE : text(p.group),
        click: (p) => p.group === undefined ? undefined : () => place.set({ open: place.get("open") === p.group ? "" : p.group }),
        pressed: (p) => p.group !== undefined && place.get("open") === p.group,
    };
}
