// SPDX-License-Identifier: Apache-2.0
/* Series of all GPUs over time: one time axis, one scale for each series, one cursor. */
import { Chart } from "../chart.js";
import { el, inSlices, setText } from "../dom.js";
import { SERIES } from "../history.js";

const SPANS = [1, 5, 15];
const SHOWN_FIRST = "utilization,memory,power,temperature";

/**
 * A word of the address that is one of several.
 * @param {import("../app.js").App} app
 */
function chosen(app) {
    const { place } = app;
    return {
        minutes: Number(place.get("minutes")) || 5,
        series: (place.get("series") || SHOWN_FIRST).split(","),
        gpu: place.get("gpu"),
        at: Date.parse(place.get("at")),
    };
}

class Charts {
    /**
     * @param {HTMLElement} root
     * @param {import("../app.js").App} app
     */
    constructor(root, app) {
        this.app = app;
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
        this.spans = SPANS.map((n) => el("button", { type: "button", onclick: () => app.place.set({ minutes: String(n) }) }, `${n} min`));
        this.boxes = SERIES.map((series) => el("button", { type: "button", onclick: () => this.toggle(series.id) }, series.title));
        this.grid = el("div");
        this.which = /** @type {HTMLSelectElement} */ (el("select", { "aria-label": "GPU", onchange: () => app.place.set({ gpu: this.which.value }) }));
        root.append(el("div", { class: "tools" }, ...this.spans, this.which, el("span", { class: "dim" }, "Show"), ...this.boxes, this.when), this.grid,
            el("p", { class: "dim" }, "Shaded: slowed down. Red flags: XIDs. A click keeps the cursor, and the address has it; arrows move it."));
        root.addEventListener("keydown", (event) => this.onKey(event));
    }

    /** Of the moment in the address, if it is older than what was seen. */
    get history() {
        return this.app.moment.history ?? this.app.history;
    }

    /** @param {string} id */
    toggle(id) {
        const { series } = chosen(this.app);
        const next = SERIES.map((s) => s.id).filter((other) => series.includes(other) !== (other === id));
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
        this.cursor = Number.isNaN(time) ? chosen(this.app).at : time;
        if (pinned && !Number.isNaN(time))
            place.set({ at: new Date(history.time(history.nearest(time))).toISOString() }, true);
        this.draw();
    }

    update() {
        const gpus = (this.app.data.get("gpus") ?? this.app.data.live("gpus"))?.gpus ?? [], want = chosen(this.app);
        const shown = gpus.filter((/** @type {any} */ g) => want.gpu === "" || String(g.gpu) === want.gpu);
        this.offer(gpus, want.gpu);
        const layout = JSON.stringify([want.series, shown.map((/** @type {any} */ g) => g.uuid), this.app.moment.history && this.app.moment.at]);
        if (layout !== this.layout && shown.length)
            this.lay(shown, want.series);
        if (layout !== this.layout && shown.length)
            this.layout = layout;
        if (!Object.is(this.at, want.at))
            this.at = this.cursor = want.at;
        this.spans.forEach((button, i) => button.setAttribute("aria-pressed", String(SPANS[i] === want.minutes)));
        this.boxes.forEach((button, i) => button.setAttribute("aria-pressed", String(want.series.includes(SERIES[i]?.id ?? ""))));
        this.draw();
    }

    /**
     * Each GPU, and all of them.
     * @param {any[]} gpus
     * @param {string} wanted
     */
    offer(gpus, wanted) {
        const numbers = gpus.map((gpu) => String(gpu.gpu));
        if (this.which.options.length !== numbers.length + 1)
            this.which.replaceChildren(el("option", { value: "" }, "All GPUs"), ...numbers.map((n) => el("option", { value: n }, `GPU ${n}`)));
        this.which.value = wanted;
    }

    /**
     * @param {any[]} gpus
     * @param {string[]} ids
     */
    lay(gpus, ids) {
        this.observer.disconnect();
        this.charts.clear();
        this.seen.clear();
        this.grid.replaceChildren();
        this.scales = [];
        SERIES.forEach((series, i) => {
            if (!ids.includes(series.id))
                return;
            const charts = gpus.map((gpu) => new Chart(this.history, i, gpu.uuid, `GPU ${gpu.gpu}`, (time, pinned) => this.point(time, pinned)));
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
        const { history } = this, { data } = this.app, newest = history.time(history.n - 1), { minutes } = chosen(this.app);
        if (!history.n)
            return;
        const from = Math.max(newest - minutes * 60000, Math.min(history.time(history.first), newest - 60000));
        const flags = (data.live("events")?.events ?? []).map((/** @type {any} */ e) => ({ time: Date.parse(e.time), xid: e.xid, uuid: e.uuid }));
        const clock = (/** @type {number} */ time) => new Date(time).toLocaleTimeString([], { hour12: false });
        for (const { series, scale } of this.scales)
            setText(scale, `0 to ${SERIES[series]?.text(history.most[series] || 1)}, ${clock(from)} to ${clock(newest)}`);
        setText(this.when, Number.isNaN(this.cursor) ? "now" : clock(this.cursor));
        inSlices(this.drawing, [...this.seen], (element) => {
            const chart = this.charts.get(element);
            chart?.draw({ from, to: newest, cursor: this.cursor, flags: flags.filter((/** @type {any} */ f) => f.uuid === chart.uuid) });
        });
    }
}

/** @type {import("../views.js").View} */
export const charts = {
    id: "charts",
    title: "Charts",
    pages: ["events"],
    create(root, app) {
        const all = new Charts(root, app);
        return () => all.update();
    },
};
