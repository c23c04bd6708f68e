// SPDX-License-Identifier: Apache-2.0
/* Why programs are slow, with evidence. */
import { el, keyed, setText } from "../dom.js";
import { bytes, count, duration, fixed, known, percent, rate, seconds, text } from "../format.js";

/**
 * How a figure of the evidence is written, by how its name ends.
 * @type {[string, (v: unknown) => string][]}
 */
const UNITS = [
    ["_bytes_per_second", rate], ["_bytes", bytes], ["_seconds", seconds], ["_ratio", percent],
    ["_hertz", (v) => known(v) ? `${fixed(v / 1e6, 0)} MHz` : "-"], ["_watts", (v) => known(v) ? `${fixed(v, 0)} W` : "-"],
];

/**
 * @param {string} name
 * @param {unknown} value
 */
function figure(name, value) {
    const unit = UNITS.find(([end]) => name.endsWith(end));
    if (unit)
        return unit[1](value);
    return known(value) && !Number.isInteger(value) ? value.toPrecision(3) : typeof value === "number" ? count(value) : text(value);
}

/**
 * Those of now, the surest first.
 * @param {any} page
 * @returns {any[]}
 */
export function active(page) {
    return (page?.findings ?? []).filter((/** @type {any} */ f) => f.active).sort((/** @type {any} */ a, /** @type {any} */ b) => b.confidence - a.confidence);
}

/**
 * @param {any} f
 * @param {import("../data.js").Data} data where names are, as far as a view has them
 */
export function whose(f, data) {
    const gpu = data.live("gpus")?.gpus.find((/** @type {any} */ g) => g.uuid === f.device);
    const process = data.live("processes")?.processes.find((/** @type {any} */ p) => p.pid === f.pid);
    return [f.node, f.pid && `process ${f.pid}${process ? ` (${process.comm})` : ""}`, gpu ? `GPU ${gpu.gpu}` : f.device,
        f.subject, f.communicator && `communicator ${f.communicator}`].filter(Boolean).join(", ");
}

/**
 * @param {HTMLElement} card
 * @param {any} f
 * @param {import("../data.js").Data} data
 */
function update(card, f, data) {
    const find = (/** @type {string} */ selector) => /** @type {HTMLElement} */ (card.querySelector(selector));
    card.className = `card finding ${f.active ? "warn" : "ended"}`;
    setText(find("h2 .name"), f.title);
    setText(find("h2 .state"), f.active ? "now" : "ended");
    setText(find(".whose"), whose(f, data));
    setText(find(".remedy"), f.remedy);
    setText(find(".sure"), `Confidence ${percent(f.confidence)}${f.surer_with.length ? `; it would be surer with ${f.surer_with.join(", ")}` : ""}` +
        (f.timeline.begin ? `; since ${new Date(f.timeline.begin).toLocaleTimeString()}, for ${duration((f.timeline.end_ns - f.timeline.begin_ns) / 1e9)}` : ""));
    keyed(find("dl"), Object.entries(f.evidence), ([name]) => name,
        ([name]) => el("div", {}, el("dt", {}, name), el("dd")),
        (row, [name, value]) => setText(/** @type {Element} */ (row.children[1]), figure(name, value)));
}

/** @type {import("../views.js").View} */
export const findings = {
    id: "findings",
    title: "Findings",
    pages: ["findings"],
    create(root, app) {
        const note = el("p", { class: "note" }), cards = el("div", { class: "cards" });
        root.append(note, cards);
        return () => {
            const page = app.data.get("findings"), list = page?.findings ?? [];
            setText(note, app.data.problem("findings") || (page && !list.length ? "Nothing was found that makes programs slow." : ""));
            note.hidden = !note.textContent;
            keyed(cards, [...list].sort((a, b) => Number(b.active) - Number(a.active)),
                (f) => [f.finding, f.node, f.pid, f.device, f.subject, f.communicator, f.timeline.begin_ns].join(" "),
                () => el("article", { class: "card finding" }, el("h2", {}, el("span", { class: "name" }), el("span", { class: "state" })),
                    el("p", { class: "whose dim" }), el("p", { class: "remedy" }), el("dl"), el("p", { class: "sure dim" })),
                (card, f) => update(card, f, app.data));
        };
    },
};
