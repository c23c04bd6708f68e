// SPDX-License-Identifier: Apache-2.0
/* Inference servers: requests, tokens, and what a token costs. */
import { count, fixed, known, percent, text } from "../format.js";
import { Rates } from "../rates.js";
import { marked, tab } from "./tab.js";

/** Pages of servers are read every few seconds. */
const rates = new Rates(60000);

/** @param {unknown} v */
const number = (v) => known(v) ? v >= 100 ? count(v) : v.toPrecision(3) : "-";

/** @param {unknown} v */
const bySecond = (v) => known(v) ? `${fixed(v, 1)}/s` : "-";

/**
 * @param {string} id @param {string} title @param {string} kind
 */
function tokens(id, title, kind) {
    const value = (/** @type {any} */ s) => rates.of(`${s.pid} ${id}`, s.tokens_total[kind], s.time);
    return { id, title, right: true, value, text: (/** @type {any} */ s) => bySecond(value(s)) };
}

/**
 * @param {string} id @param {string} title
 */
function cost(id, title) {
    return { id, title, right: true, value: (/** @type {any} */ s) => s[id], text: (/** @type {any} */ s) => marked(s, id, number(s[id])) };
}

export const servers = tab({
    id: "inference",
    title: "Inference",
    pages: ["node"],
    note: (app) => {
        const node = app.data.get("node")?.node;
        if (node && !node.inference)
            return "Inference servers are not looked for (option inference.servers).";
        return node?.inference.left_out ? `${node.inference.left_out} more are left out.` : "";
    },
    lists: [{
        label: "Inference servers", sort: "-generated", key: (s) => `${s.server} ${s.pid}`,
        rows: (app) => (app.data.get("node")?.node.inference?.servers ?? []).map((/** @type {any} */ s) => ({ ...s, time: app.data.get("node").time })),
        columns: [
            { id: "server", title: "Server", text: (s) => text(s.server) },
            { id: "pid", title: "PID", right: true, text: (s) => text(s.pid), value: (s) => s.pid },
            { id: "port", title: "Port", right: true, text: (s) => text(s.port), value: (s) => s.port },
            { id: "state", title: "State", text: (s) => text(s.state), tone: (s) => s.state === "read" ? "" : "warn" },
            { id: "running", title: "Running", right: true, text: (s) => count(s.requests.running), value: (s) => s.requests.running },
            { id: "waiting", title: "Waiting", right: true, text: (s) => count(s.requests.waiting), value: (s) => s.requests.waiting },
            tokens("prompt", "Tokens in", "prompt"),
            tokens("generated", "Tokens out", "generated"),
            { id: "cache", title: "Cache", right: true, text: (s) => percent(s.cache_usage_ratio), value: (s) => s.cache_usage_ratio },
            cost("tokens_per_joule", "Tokens/J"),
            cost("tokens_per_gpu_second", "Tokens/GPU s"),
            { id: "why", title: "Why not", text: (s) => text(s.error) },
        ],
    }],
});
