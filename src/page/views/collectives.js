// SPDX-License-Identifier: Apache-2.0
/* NCCL: what its plugin measured, and what its calls ask for. */
import { bytes, count, rate, seconds, text } from "../format.js";
import { tab, tracing } from "./tab.js";

const operation = { id: "operation", title: "Operation", text: (/** @type {any} */ o) => text(o.operation) };
const ranks = { id: "ranks", title: "Ranks", right: true, text: (/** @type {any} */ o) => count(o.ranks), value: (/** @type {any} */ o) => o.ranks };
const called = { id: "calls", title: "Calls", right: true, text: (/** @type {any} */ o) => count(o.calls), value: (/** @type {any} */ o) => o.calls };
const size = { id: "bytes", title: "Bytes", right: true, text: (/** @type {any} */ o) => bytes(o.argument_bytes), value: (/** @type {any} */ o) => o.argument_bytes };
const took = { id: "time", title: "Time", right: true, text: (/** @type {any} */ o) => seconds(o.seconds), value: (/** @type {any} */ o) => o.seconds };

export const collectives = tab({
    id: "collectives",
    title: "Collectives",
    pages: ["trace"],
    note: (app) => tracing(app.data.get("trace")?.trace),
    lists: [
        {
            label: "Measured by NCCL's plugin", name: "measured", sort: "-time",
            key: (o) => [o.pid, o.operation, o.ranks, o.algorithm, o.protocol, o.channels].join(" "),
            rows: (app) => app.data.get("trace")?.nccl_measured ?? [],
            columns: [
                { id: "pid", title: "PID", right: true, text: (o) => text(o.pid), value: (o) => o.pid },
                { id: "command", title: "Command", text: (o) => text(o.comm) },
                operation, ranks,
                { id: "algorithm", title: "Algorithm", text: (o) => text(o.algorithm) },
                { id: "protocol", title: "Protocol", text: (o) => text(o.protocol) },
                called, size, took,
                { id: "algbw", title: "algbw", right: true, text: (o) => rate(o.algbw), value: (o) => o.algbw },
                { id: "busbw", title: "busbw", right: true, text: (o) => rate(o.busbw), value: (o) => o.busbw },
                { id: "clock", title: "Clock", text: (o) => text(o.clock) },
            ],
        },
        {
            label: "Calls", name: "calls", sort: "-time",
            key: (o) => `${o.operation} ${o.ranks}`,
            rows: (app) => app.data.get("trace")?.trace.nccl?.operations ?? [],
            columns: [
                operation, ranks, called,
                { id: "failed", title: "Failed", right: true, text: (o) => count(o.failed), value: (o) => o.failed, tone: (o) => o.failed > 0 ? "bad" : "" },
                size,
                { id: "traffic", title: "Traffic", right: true, text: (o) => bytes(o.traffic_bytes), value: (o) => o.traffic_bytes },
                took,
            ],
        },
    ],
});
