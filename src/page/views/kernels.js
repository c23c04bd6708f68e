// SPDX-License-Identifier: Apache-2.0
/* Kernels that traced programs launch, with their resources. */
import { bytes, count, percent, seconds, text } from "../format.js";
import { marked, tab, tracing } from "./tab.js";

export const kernels = tab({
    id: "kernels",
    title: "Kernels",
    pages: ["kernels"],
    note: (app) => tracing(app.data.get("kernels")?.kernels),
    lists: [{
        label: "Kernels", sort: "-busy",
        key: (k) => `${k.pid} ${k.uuid} ${k.id} ${k.name}`,
        rows: (app) => (app.data.get("kernels")?.kernels.processes ?? []).flatMap((/** @type {any} */ p) =>
            p.kernels.map((/** @type {any} */ k) => ({ ...k, pid: p.pid, comm: p.comm }))),
        columns: [
            { id: "pid", title: "PID", right: true, text: (k) => text(k.pid), value: (k) => k.pid },
            { id: "command", title: "Command", text: (k) => text(k.comm) },
            { id: "kernel", title: "Kernel", text: (k) => text(k.name ?? k.brief ?? (k.other ? "(others)" : null)) },
            { id: "launches", title: "Launches", right: true, text: (k) => count(k.launches_total), value: (k) => k.launches_total },
            { id: "busy", title: "Busy", right: true, text: (k) => marked(k, "busy_seconds_total", seconds(k.busy_seconds_total)), value: (k) => k.busy_seconds_total },
            { id: "occupancy", title: "Occupancy", right: true, text: (k) => percent(k.theoretical_occupancy_ratio), value: (k) => k.theoretical_occupancy_ratio, help: "Theoretical" },
            { id: "limiter", title: "Limited by", text: (k) => text(k.occupancy_limiter) },
            { id: "registers", title: "Registers", right: true, text: (k) => text(k.registers), value: (k) => k.registers },
            { id: "shared", title: "Shared", right: true, text: (k) => bytes(k.memory_bytes?.shared), value: (k) => k.memory_bytes?.shared },
            { id: "arch", title: "Arch", text: (k) => text(k.arch) },
        ],
    }],
});
