// SPDX-License-Identifier: Apache-2.0
/* Processes, as "gpusonde ps" has them. */
import { bytes, duration, percent, text } from "../format.js";
import { Table } from "../table.js";

/** @type {import("../table.js").Column<any>[]} */
export const COLUMNS = [
    { id: "gpu", title: "GPU", right: true, text: (p) => text(p.gpu), value: (p) => p.gpu },
    { id: "mig", title: "MIG", text: (p) => p.gi === null ? "-" : `${p.gi}/${p.ci ?? "-"}` },
    { id: "pid", title: "PID", right: true, text: (p) => text(p.pid), value: (p) => p.pid },
    { id: "uid", title: "User ID", right: true, text: (p) => text(p.uid), value: (p) => p.uid },
    { id: "type", title: "Type", text: (p) => p.types.join(" ") || "-" },
    { id: "sm", title: "SM", right: true, text: (p) => percent(p.utilization_ratio), value: (p) => p.utilization_ratio },
    { id: "memory", title: "Memory", right: true, text: (p) => bytes(p.memory_bytes), value: (p) => p.memory_bytes },
    { id: "busy", title: "Busy", right: true, text: (p) => duration(p.busy_seconds_total), value: (p) => p.busy_seconds_total },
    { id: "rank", title: "Rank", right: true, text: (p) => text(p.rank), value: (p) => p.rank },
    { id: "namespace", title: "Namespace", text: (p) => text(p.namespace) },
    { id: "pod", title: "Pod", text: (p) => text(p.pod ?? p.pod_uid) },
    { id: "container", title: "Container", text: (p) => text(p.container ?? p.container_id?.slice(0, 12)) },
    { id: "job", title: "Job", text: (p) => text(p.job) },
    { id: "command", title: "Command", text: (p) => text(p.comm) },
];

/** @type {import("../views.js").View} */
export const processes = {
    id: "processes",
    title: "Processes",
    pages: ["processes"],
    create(root, app) {
        const table = new Table(root, {
            label: "Processes", columns: COLUMNS, sort: "-memory", place: app.place,
            key: (p) => `${p.pid} ${p.uuid} ${p.gi} ${p.ci}`,
        });
        return () => table.update(app.data.get("processes")?.processes ?? []);
    },
};
