// SPDX-License-Identifier: Apache-2.0
/* Containers, pods, jobs and units: what they have done on each GPU, those that have ended included; and who was given what. */
import { bytes, count, duration, percent, text } from "../format.js";
import { reportOf } from "../report.js";
import { marked, tab } from "./tab.js";

/**
 * @param {any} w
 */
export function name(w) {
    if (w.container || w.pod)
        return [w.namespace, w.pod, w.container].filter(Boolean).join("/");
    return text(w.job ?? w.unit ?? w.container_id?.slice(0, 12) ?? w.pod_uid);
}

/** @type {import("../table.js").Column<any>[]} */
const WHO = [
    { id: "kind", title: "Kind", text: (w) => text(w.kind) },
    { id: "name", title: "Name", text: name },
    { id: "gpu", title: "GPU", right: true, text: (w) => text(w.gpu), value: (w) => w.gpu },
    { id: "mig", title: "MIG", text: (w) => w.gi === null ? "-" : `${w.gi}/${w.ci ?? "-"}` },
];
/**
 * Of a recording that is there.
 * @param {import("../app.js").App} app
 * @param {any[]} list
 */
const withReports = (app, list) => app.data.live("node")?.node.agent.recording_up === 1 ? list.map((w) => ({ ...w, report: reportOf(w, w.kind, app.place) })) : list;
const key = (/** @type {any} */ w) => [w.kind, w.container_id, w.pod_uid, w.job, w.unit, w.uuid, w.gi, w.ci].join(" ");

export const workloads = tab({
    id: "workloads",
    title: "Containers and jobs",
    pages: ["processes"],
    lists: [
        {
            label: "What they use", name: "used", sort: "-busy", key, nothing: "No container, pod, job or unit uses a GPU.",
            rows: (app) => withReports(app, app.data.get("node")?.node.workloads ?? []),
            columns: [
                ...WHO,
                { id: "live", title: "Processes", right: true, text: (w) => count(w.processes_live), value: (w) => w.processes_live },
                { id: "ended", title: "Ended", right: true, text: (w) => count(w.processes_exited), value: (w) => w.processes_exited },
                { id: "sm", title: "SM", right: true, text: (w) => percent(w.utilization_ratio), value: (w) => w.utilization_ratio },
                { id: "busy", title: "Busy", right: true, text: (w) => duration(w.busy_seconds_total), value: (w) => w.busy_seconds_total },
                { id: "memory", title: "Memory", right: true, text: (w) => bytes(w.memory_bytes), value: (w) => w.memory_bytes },
                { id: "peak", title: "Peak", right: true, text: (w) => bytes(w.memory_peak_bytes), value: (w) => w.memory_peak_bytes },
                { id: "report", title: "Report", apart: true, text: (w) => w.report ? "Report" : "-", href: (w) => w.report, help: "Of the last 24 hours of the recording" },
            ],
        },
        {
            label: "What they were given", name: "given", sort: "name", key, nothing: "Nobody says that GPUs were given to somebody.",
            rows: (app) => app.data.get("processes")?.allocations ?? [],
            columns: [
                ...WHO,
                { id: "resource", title: "Resource", text: (a) => text(a.resource) },
                { id: "source", title: "Said by", text: (a) => text(a.source) },
                { id: "processes", title: "Processes", right: true, text: (a) => count(a.processes), value: (a) => a.processes },
                { id: "allocated", title: "Allocated", right: true, text: (a) => duration(a.allocated_seconds_total), value: (a) => a.allocated_seconds_total },
                { id: "idle", title: "Idle", right: true, text: (a) => marked(a, "idle_seconds_total", duration(a.idle_seconds_total)), value: (a) => a.idle_seconds_total },
            ],
        },
    ],
});
