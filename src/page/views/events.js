// SPDX-License-Identifier: Apache-2.0
/* XIDs, one by one. */
import { text } from "../format.js";
import { tab } from "./tab.js";

const TONES = /** @type {Record<string, string>} */ ({ critical: "bad", info: "dim" });

export const events = tab({
    id: "events",
    title: "XIDs",
    pages: ["events"],
    note: (app) => {
        const left = app.data.get("events")?.events_left_out;
        return left ? `${left} older ones are not kept.` : "";
    },
    lists: [{
        label: "XIDs", sort: "-time",
        key: (e) => String(e.number),
        rows: (app) => app.data.get("events")?.events ?? [],
        columns: [
            { id: "time", title: "Time", text: (e) => e.time ? new Date(e.time).toLocaleString() : "-", value: (e) => e.number },
            { id: "gpu", title: "GPU", right: true, text: (e) => text(e.gpu), value: (e) => e.gpu, href: (e) => `#charts?gpu=${e.gpu}` },
            { id: "xid", title: "XID", right: true, text: (e) => text(e.xid), value: (e) => e.xid },
            { id: "severity", title: "Severity", text: (e) => text(e.severity), tone: (e) => TONES[e.severity] ?? "warn" },
            { id: "name", title: "Name", text: (e) => text(e.name) },
            { id: "meaning", title: "Meaning", text: (e) => text(e.meaning) },
            { id: "action", title: "What to do", text: (e) => text(e.action) },
            { id: "sources", title: "Said by", text: (e) => e.sources.join(", ") },
            { id: "text", title: "In the driver's words", text: (e) => text(e.text) },
        ],
    }],
});
