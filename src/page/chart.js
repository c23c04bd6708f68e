// SPDX-License-Identifier: Apache-2.0
/* One chart: a series of one GPU, or of another subject of a history, over time, with bands where it was slowed down, flags of XIDs, and the cursor that all share. */
import { el, setText } from "./dom.js";
import { MOMENTS } from "./history.js";

/**
 * @typedef {object} Span
 * @property {number} from milliseconds since 1970
 * @property {number} to
 * @property {number} cursor NaN: none
 * @property {{time: number, xid: number}[]} flags
 */

/**
 * The least, the mean and the most of what was sampled in a span; "": nothing was.
 * @param {import("./history.js").History} history
 * @param {Float64Array} values
 * @param {Span} span
 * @param {(v: unknown) => string} text
 */
export function rangeText(history, values, span, text) {
    let least = Infinity, most = -Infinity, sum = 0, found = 0;
    for (let n = history.first; n < history.n; n++) {
        const value = values[n % MOMENTS] ?? NaN, time = history.time(n);
        if (Number.isNaN(value) || time < span.from || time > span.to)
            continue;
        least = Math.min(least, value);
        most = Math.max(most, value);
        sum += value;
        found++;
    }
    if (!found)
        return "";
    const words = [least, sum / found, most].map((v) => text(v).split(" ")), same = words.every(([, unit]) => unit === words[0]?.[1]);
    const said = words.map(([number, unit], i) => !unit || (same && i < 2) ? number : `${number} ${unit}`);
    return `min ${said[0]}, mean ${said[1]}, max ${said[2]}`;
}

export class Chart {
    /**
     * @param {import("./history.js").History} history
     * @param {number} series of the history's
     * @param {string} uuid
     * @param {string} name
     * @param {(time: number, pinned: boolean) => void} point called with where the cursor shall be
     */
    constructor(history, series, uuid, name, point) {
        this.history = history;
        this.series = series;
        this.uuid = uuid;
        this.name = name;
        /** @type {Span} */
        this.span = { from: 0, to: 1, cursor: NaN, flags: [] };
        this.canvas = /** @type {HTMLCanvasElement} */ (el("canvas", { role: "img", "aria-label": `${history.series[series]?.title} of ${name}` }));
        this.said = el("b");
        this.range = el("span", { class: "range" });
        this.root = el("figure", { class: "chart" }, el("figcaption", {}, el("span", {}, name), this.range, this.said), this.canvas);
        this.canvas.addEventListener("pointermove", (event) => point(this.timeAt(event.offsetX), false));
        this.canvas.addEventListener("pointerleave", () => point(NaN, false));
        this.canvas.addEventListener("click", (event) => point(this.timeAt(event.offsetX), true));
    }

    /** @param {number} x */
    timeAt(x) {
        return this.span.from + (this.span.to - this.span.from) * x / this.canvas.clientWidth;
    }

    /** @param {Span} span */
    draw(span) {
        const { history, canvas } = this, track = history.tracks.get(this.uuid), series = history.series[this.series];
        const values = track?.values[this.series], n = Number.isNaN(span.cursor) ? history.n - 1 : history.nearest(span.cursor);
        this.span = span;
        if (!series || !values || !track)
            return;
        const said = series.text(values[((n % MOMENTS) + MOMENTS) % MOMENTS]);
        setText(this.said, said);
        const range = rangeText(history, values, span, series.text);
        setText(this.range, range);
        canvas.setAttribute("aria-label", `${series.title} of ${this.name}: ${said}; ${range}`);
        this.fit();
        this.paint(values, track.throttled);
    }

    /** As many pixels as the screen has there. */
    fit() {
        const scale = devicePixelRatio || 1, { canvas } = this;
        const width = Math.round(canvas.clientWidth * scale), height = Math.round(canvas.clientHeight * scale);
        if (canvas.width !== width || canvas.height !== height) {
            canvas.width = width;
            canvas.height = height;
        }
    }

    /**
     * @param {Float64Array} values
     * @param {Uint8Array} throttled
     */
    paint(values, throttled) {
        const c = this.canvas.getContext("2d"), { width, height } = this.canvas, { history, span } = this;
        const most = history.most[this.series] || 1, style = getComputedStyle(this.canvas);
        const x = (/** @type {number} */ time) => (time - span.from) / (span.to - span.from) * width;
        const y = (/** @type {number} */ value) => height - 2 - Math.min(value / most, 1) * (height - 4);
        const from = history.first, colour = (/** @type {string} */ name) => style.getPropertyValue(name);
        if (!c)
            return;
        c.clearRect(0, 0, width, height);
        c.fillStyle = colour("--band");
        for (let n = from; n < history.n; n++)
            if (throttled[n % MOMENTS])
                c.fillRect(x(history.time(n - 1) || history.time(n) - 1000), 0, Math.max(1, x(history.time(n)) - x(history.time(n - 1) || history.time(n) - 1000)), height);
        c.strokeStyle = colour("--line");
        c.strokeRect(0, y(most), width, 0);
        this.line(c, values, x, y, colour("--bar"));
        for (const flag of span.flags)
            mark(c, x(flag.time), height, colour("--bad"), String(flag.xid));
        if (!Number.isNaN(span.cursor))
            mark(c, x(span.cursor), height, colour("--text"), "");
    }

    /**
     * Where nothing is known there is no line.
     * @param {CanvasRenderingContext2D} c
     * @param {Float64Array} values
     * @param {(time: number) => number} x
     * @param {(value: number) => number} y
     * @param {string} colour
     */
    line(c, values, x, y, colour) {
        const { history } = this;
        let open = false;
        c.strokeStyle = colour;
        c.lineWidth = Math.max(1.5, devicePixelRatio);
        c.lineCap = "round";
        c.beginPath();
        for (let n = history.first; n < history.n; n++) {
            const value = values[n % MOMENTS] ?? NaN, time = history.time(n);
            if (Number.isNaN(value)) {
                open = false;
                continue;
            }
            if (!open)
                c.moveTo(x(time), y(value));
            c.lineTo(x(time), y(value)); // of a moment between two that are not known: a dot
            open = true;
        }
        c.stroke();
        c.lineWidth = 1;
    }
}

/**
 * @param {CanvasRenderingContext2D} c
 * @param {number} x
 * @param {number} height
 * @param {string} colour
 * @param {string} text
 */
function mark(c, x, height, colour, text) {
    c.fillStyle = colour;
    c.fillRect(Math.round(x), 0, 1, height);
    if (text) {
        c.font = `${10 * (devicePixelRatio || 1)}px sans-serif`;
        c.fillText(text, x + 3, 10 * (devicePixelRatio || 1));
    }
}
