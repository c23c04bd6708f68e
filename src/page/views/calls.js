// SPDX-License-Identifier: Apache-2.0
/* Calls of CUDA and the libraries above it, of all traced programs. */
import { bytes, count, seconds, text } from "../format.js";
import { tab, tracing } from "./tab.js";

/** @param {unknown} ns */
const fromNs = (ns) => seconds(typeof ns === "number" ? ns / 1e9 : null);

export const calls = tab({
    id: "calls",
    title: "Calls",
    pages: ["trace"],
    note: (app) => tracing(app.data.get("trace")?.trace),
    lists: [{
        label: "Calls", sort: "-total",
        key: (c) => `${c.library} ${c.api}`,
        rows: (app) => app.data.get("trace")?.trace.calls ?? [],
        columns: [
            { id: "call", title: "Call", text: (c) => text(c.api) },
            { id: "library", title: "Library", text: (c) => text(c.library) },
            { id: "count", title: "Count", right: true, text: (c) => count(c.count), value: (c) => c.count },
            { id: "failed", title: "Failed", right: true, text: (c) => count(c.failed), value: (c) => c.failed, tone: (c) => c.failed > 0 ? "bad" : "" },
            { id: "p50", title: "P50", right: true, text: (c) => fromNs(c.p50_ns), value: (c) => c.p50_ns },
            { id: "p95", title: "P95", right: true, text: (c) => fromNs(c.p95_ns), value: (c) => c.p95_ns },
            { id: "p99", title: "P99", right: true, text: (c) => fromNs(c.p99_ns), value: (c) => c.p99_ns },
            { id: "total", title: "Total", right: true, text: (c) => seconds(c.seconds), value: (c) => c.seconds },
            { id: "bytes", title: "Bytes", right: true, text: (c) => bytes(c.bytes), value: (c) => c.bytes },
            { id: "errors", title: "Errors", text: (c) => Object.entries(c.errors).map(([code, n]) => `${code}: ${n}`).join(", ") || "-" },
        ],
    }],
});
