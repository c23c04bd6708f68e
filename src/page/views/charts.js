// SPDX-License-Identifier: Apache-2.0
/* Series of all GPUs, or of the machine, over time: one time axis, one scale for each series, one cursor. */
import { Chart } from "../chart.js";
import { el, inSlices, setText } from "../dom.js";
import { History, SERIES } from "../history.js";
import { Longer, stepOf } from "../longer.js";
import { load } from "../recorded.js";

/** Minutes; those that are longer than what the browser keeps are of the recording. */
const SPANS = [1, 5, 15, 60, 360, 1440];

/**
 * @typedef {object} Source
 * @property {import("../history.js").Series[]} series
 * @property {string} first which are shown, unless the address says so
 * @property {string} hint
 * @property {HTMLElement[]} [tools] beside the times
 * @property {() => import("../history.js").History} history of the moment in the address, if it is older than what was seen
 * @property {Longer} longer
 * @property {() => {uuid: string, name: string, series?: string[]}[]} subjects whose charts are shown, and which if not all
 */

export class Charts {
    /**
     * @param {HTMLElement} root
     * @param {import("../app.js").App} app
     * @param {Source} source
     */
    constructor(root, app, source) {
        this.app = app;
        this.source = source;
        this.cursor = NaN;
        /** What the address says. */
        this.at = NaN;
        this.drawing = {};
        /** @type {Map<Element, Chart>} */
        this.charts = new Map();
        /** @type {Set<Element>} */
        this.seen = new Set();
        this.layout = "";
        /** @type {{series: number, scale: HTMLElement}[]} what the top of each scale is */
        this.scales = [];
        this.observer = new IntersectionObserver((entries) => {
            for (const entry of entries)
                this.seen[entry.isIntersecting ? "add" : "delete"](entry.target);
            this.draw();
        });
        this.when = el("b", { role: "status" });
        this.spans = SPANS.map((n) => el("button", { type: "button", onclick: () => app.place.set({ minutes: String(n) }) }, n < 60 ? `${n} min` : `${n / 60} h`));
        this.boxes = source.series.map((series) => el("button", { type: "button", onclick: () => this.toggle(series.id) }, series.title));
        this.grid = el("div");
        root.append(el("div", { class: "tools" }, ...this.spans, ...(source.tools ?? []), el("span", { class: "dim" }, "Show"), ...this.boxes, this.when), this.grid,
            el("p", { class: "dim" }, source.hint));
        root.addEventListener("keydown", (event) => this.onKey(event));
    }

    get history() {
        return this.source.longer.of(this.chosen().minutes) ?? this.source.history();
    }

    /** What the address says. */
    chosen() {
        const { place } = this.app;
        return {
            minutes: SPANS.find((n) => n === Number(place.get("minutes"))) ?? 5,
            series: (place.get("series") || this.source.first).split(","),
            at: Date.parse(place.get("at")),
        };
    }

    /** @param {string} id */
    toggle(id) {
        const { series } = this.chosen();
        const next = this.source.series.map((s) => s.id).filter((other) => series.includes(other) !== (other === id));
        this.app.place.set({ series: next.join(",") });
    }

    /** @param {KeyboardEvent} event */
    onKey(event) {
        const step = { ArrowLeft: -1000, ArrowRight: 1000 }[event.key], { history } = this;
        if (!step || event.target instanceof HTMLInputElement)
            return;
        const from = Number.isNaN(this.cursor) ? history.time(history.n - 1) : this.cursor;
        this.point(from + step, true);
        event.preventDefault();
    }

    /**
     * @param {number} time
     * @param {boolean} pinned
     */
    point(time, pinned) {
        const { history } = this, { place } = this.app;
        this.cursor = Number.isNaN(time) ? this.chosen().at : time;
        if (pinned && !Number.isNaN(time))
            place.set({ at: new Date(history.time(history.nearest(time))).toISOString() }, true);
        this.draw();
    }

    update() {
        const want = this.chosen(), shown = this.source.subjects();
        const layout = JSON.stringify([want.series, shown.map((s) => s.uuid), this.app.moment.history && this.app.moment.at]);
        if (layout !== this.layout && shown.length)
            this.lay(shown, want.series);
        if (layout !== this.layout && shown.length)
            this.layout = layout;
        if (!Object.is(this.at, want.at))
            this.at = this.cursor = want.at;
        this.spans.forEach((button, i) => {
            button.setAttribute("aria-pressed", String(SPANS[i] === want.minutes));
            button.hidden = stepOf(SPANS[i] ?? 0) > 0 && !this.source.longer.possible;
        });
        this.boxes.forEach((button, i) => button.setAttribute("aria-pressed", String(want.series.includes(this.source.series[i]?.id ?? ""))));
        this.draw();
    }

    /**
     * @param {ReturnType<Source["subjects"]>} subjects
     * @param {string[]} ids
     */
    lay(subjects, ids) {
        this.observer.disconnect();
        this.charts.clear();
        this.seen.clear();
        this.grid.replaceChildren();
        this.scales = [];
        this.source.series.forEach((series, i) => {
            if (!ids.includes(series.id))
                return;
            const of = subjects.filter((s) => s.series?.includes(series.id) ?? true);
            if (!of.length)
                return;
            const charts = of.map((s) => new Chart(this.history, i, s.uuid, s.name, (time, pinned) => this.point(time, pinned)));
            for (const chart of charts) {
                this.charts.set(chart.root, chart);
                this.observer.observe(chart.root);
            }
            const scale = el("span", { class: "dim scale" });
            this.scales.push({ series: i, scale });
            this.grid.append(el("section", { "aria-label": series.title }, el("h2", {}, series.title, " ", scale), el("div", { class: "charts" }, ...charts.map((c) => c.root))));
        });
    }

    draw() {
        const { history } = this, { data } = this.app, newest = history.time(history.n - 1), { minutes } = this.chosen();
        if (!history.n)
            return;
        const from = Math.max(newest - minutes * 60000, Math.min(history.time(history.first), newest - 60000));
        const flags = (data.live("events")?.events ?? []).map((/** @type {any} */ e) => ({ time: Date.parse(e.time), xid: e.xid, uuid: e.uuid }));
        const step = history === this.source.history() ? 0 : stepOf(minutes), each = step ? `, one point in ${history.step} s` : "";
        const clock = (/** @type {number} */ time) => step ? new Date(time).toLocaleString([], { hour12: false }) : new Date(time).toLocaleTimeString([], { hour12: false });
        for (const { series, scale } of this.scales)
            setText(scale, `0 to ${this.source.series[series]?.text(history.most[series] || 1)}, ${clock(from)} to ${clock(newest)}${each}`);
        setText(this.when, Number.isNaN(this.cursor) ? "now" : clock(this.cursor));
        inSlices(this.drawing, [...this.seen], (element) => {
            const chart = this.charts.get(element);
            if (chart)
                chart.history = history;
            chart?.draw({ from, to: newest, cursor: this.cursor, flags: flags.filter((/** @type {any} */ f) => f.uuid === chart.uuid) });
        });
    }
}

/**
 * All GPUs, or the one in the address; @which offers each of them.
 * @param {import("../app.js").App} app
 * @param {HTMLSelectElement} which
 */
function gpusOf(app, which) {
    const gpus = (app.data.get("gpus") ?? app.data.live("gpus"))?.gpus ?? [], only = app.place.get("gpu");
    const numbers = gpus.map((/** @type {any} */ gpu) => String(gpu.gpu));
    if (which.options.length !== numbers.length + 1)
        which.replaceChildren(el("option", { value: "" }, "All GPUs"), ...numbers.map((/** @type {string} */ n) => el("option", { value: n }, `GPU ${n}`)));
    which.value = only;
    return gpus.filter((/** @type {any} */ g) => only === "" || String(g.gpu) === only).map((/** @type {any} */ g) => ({ uuid: g.uuid, name: `GPU ${g.gpu}` }));
}

/** @type {import("../views.js").View} */
export const charts = {
    id: "charts",
    title: "Charts",
    pages: ["events"],
    create(root, app) {
        const which = /** @type {HTMLSelectElement} */ (el("select", { "aria-label": "GPU", onchange: () => app.place.set({ gpu: which.value }) }));
        const all = new Charts(root, app, {
            tools: [which], series: SERIES, first: "utilization,memory,power,temperature",
            hint: "Shaded: slowed down. Red flags: XIDs. A click keeps the cursor, and the address has it; arrows move it.",
            history: () => app.moment.history ?? app.history, subjects: () => gpusOf(app, which),
            longer: new Longer(app, () => new History(), load, () => app.history),
        });
        return () => all.update();
    },
};
