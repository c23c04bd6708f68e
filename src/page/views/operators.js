// SPDX-License-Identifier: Apache-2.0
/* Operators of PyTorch. */
import { bytes, count, seconds, text } from "../format.js";
import { marked, tab, tracing } from "./tab.js";

export const operators = tab({
    id: "operators",
    title: "Operators",
    pages: ["trace"],
    note: (app) => {
        const trace = app.data.get("trace")?.trace;
        return trace && !trace.operators ? `Operators of PyTorch are not traced (trace.operators). ${tracing(trace)}` : tracing(trace);
    },
    lists: [{
        label: "Operators", sort: "-busy",
        key: (o) => o.name,
        rows: (app) => app.data.get("trace")?.trace.operators ?? [],
        columns: [
            { id: "operator", title: "Operator", text: (o) => text(o.name) },
            { id: "calls", title: "Calls", right: true, text: (o) => count(o.calls_total), value: (o) => o.calls_total },
            { id: "launches", title: "Launches", right: true, text: (o) => count(o.launches_total), value: (o) => o.launches_total },
            { id: "busy", title: "Busy", right: true, text: (o) => marked(o, "busy_seconds_total", seconds(o.busy_seconds_total)), value: (o) => o.busy_seconds_total },
            { id: "backward", title: "Backward", right: true, text: (o) => marked(o, "backward_busy_seconds_total", seconds(o.backward_busy_seconds_total)),
                value: (o) => o.backward_busy_seconds_total },
            { id: "waits", title: "Waits", right: true, text: (o) => seconds(o.wait_seconds_total), value: (o) => o.wait_seconds_total },
            { id: "copied", title: "Copied", right: true, text: (o) => bytes(o.copied_bytes_total), value: (o) => o.copied_bytes_total },
            { id: "held", title: "Held", right: true, text: (o) => bytes(o.held_bytes), value: (o) => o.held_bytes },
        ],
    }],
});
