// SPDX-License-Identifier: Apache-2.0
/*
 * Numbers of the last quarter of an hour, one a second, of each GPU, or of the machine and what is in it (machine.js): what the browser has
 * seen, and, where the agent records, what was before.
 */
import { bytes, known, percent, rate, whole } from "./format.js";

/** So many moments are kept. */
export const MOMENTS = 900;

/**
 * @typedef {object} Series
 * @property {string} id in the address
 * @property {string} [metric] its name in a recording, where it is as it stands there
 * @property {string} title
 * @property {(subject: any) => unknown} value as the document has it
 * @property {(v: unknown) => string} text
 * @property {(subject: any) => unknown} [most] the top of its scale; without it the greatest number seen
 */

/** @type {Series[]} */
export const SERIES = [
    { id: "utilization", metric: "utilization_ratio.gpu", title: "Utilization", value: (g) => g.utilization_ratio?.gpu, text: percent, most: () => 1 },
    { id: "memory", metric: "memory_used_bytes", title: "Memory", value: (g) => g.memory_used_bytes, text: bytes, most: (g) => g.memory_total_bytes },
    { id: "power", metric: "power_watts", title: "Power", value: (g) => g.power_watts, text: whole("W"), most: (g) => g.power_limit_watts?.enforced },
    { id: "temperature", metric: "temperature_celsius", title: "Temperature", value: (g) => g.temperature_celsius, text: whole("°C"), most: () => 100 },
    { id: "sm", metric: "sm_active_ratio", title: "SM active", value: (g) => g.sm_active_ratio, text: percent, most: () => 1 },
    { id: "tensor", metric: "pipe_active_ratio.tensor", title: "Tensor active", value: (g) => g.pipe_active_ratio?.tensor, text: percent, most: () => 1 },
    { id: "dram", metric: "dram_active_ratio", title: "DRAM active", value: (g) => g.dram_active_ratio, text: percent, most: () => 1 },
    { id: "clock", metric: "clock_hertz.sm", title: "SM clock", value: (g) => g.clock_hertz?.sm, text: whole("MHz", 1e-6), most: (g) => g.clock_max_hertz?.sm },
    { id: "encoder", metric: "utilization_ratio.encoder", title: "Encoder", value: (g) => g.utilization_ratio?.encoder, text: percent, most: () => 1 },
    { id: "decoder", metric: "utilization_ratio.decoder", title: "Decoder", value: (g) => g.utilization_ratio?.decoder, text: percent, most: () => 1 },
    { id: "pcie", metric: "pcie_rx_bytes_per_second", title: "PCIe in", value: (g) => g.pcie_rx_bytes_per_second, text: rate },
    { id: "nvlink", metric: "nvlink_rx_bytes_per_second", title: "NVLink in", value: (g) => g.nvlink_rx_bytes_per_second, text: rate },
];

/** Not slowed down, but at rest, or as somebody has set it. */
const NO_THROTTLING = ["gpu_idle", "applications_clocks_setting"];

/** @typedef {{values: Float64Array[], throttled: Uint8Array}} Track */

export class History {
    /**
     * @param {Series[]} [series]
     * @param {(page: any) => any[]} [subjects] whose numbers these are, each with a uuid, of a document
     */
    constructor(series = SERIES, subjects = (page) => page.gpus) {
        this.series = series;
        this.subjects = subjects;
        /** Milliseconds since 1970 of each moment; the newest is at (n - 1) % MOMENTS. */
        this.times = new Float64Array(MOMENTS);
        this.n = 0;
        /** Seconds from one point to the next of what is recorded. */
        this.step = 1;
        /** @type {Map<string, Track>} */
        this.tracks = new Map();
        /** Tops of the scales, the same for all subjects. */
        this.most = series.map(() => 0);
    }

    /** @param {any} page a document */
    record(page) {
        const time = Date.parse(page.time), at = this.n % MOMENTS;
        if (!(time > this.time(this.n - 1)) && this.n)
            return;
        this.times[at] = time;
        this.n++;
        for (const track of this.tracks.values()) {
            track.values.forEach((values) => values[at] = NaN);
            track.throttled[at] = 0;
        }
        for (const subject of this.subjects(page))
            this.add(this.track(subject.uuid), subject, at);
    }

    /** @param {string} uuid */
    track(uuid) {
        let track = this.tracks.get(uuid);
        if (!track) {
            track = { values: this.series.map(() => new Float64Array(MOMENTS).fill(NaN)), throttled: new Uint8Array(MOMENTS) };
            this.tracks.set(uuid, track);
        }
        return track;
    }

    /**
     * A GPU that is stale or gone has no numbers of this moment.
     * @param {Track} track
     * @param {any} subject
     * @param {number} at
     */
    add(track, subject, at) {
        const current = subject.present && !subject.stale;
        this.series.forEach((series, i) => {
            const value = current ? series.value(subject) : null, most = series.most ? series.most(subject) : value;
            const values = track.values[i];
            if (values && known(value))
                values[at] = value;
            if (known(most))
                this.most[i] = Math.max(this.most[i] ?? 0, most);
        });
        track.throttled[at] = Number(current && Object.entries(subject.clocks_event_reason ?? {}).some(([name, v]) => v && !NO_THROTTLING.includes(name)));
    }

    /**
     * What a recording has does not say where scales end: as those of what was seen do.
     * @param {History} seen
     */
    takeTops(seen) {
        this.most = this.most.map((most, i) => Math.max(most, seen.most[i] ?? 0));
    }

    /**
     * Puts what a recording has before what was seen.
     * @param {number[]} times ascending
     * @param {Map<string, Map<number, (number | null)[]>>} recorded by UUID and series
     */
    prepend(times, recorded) {
        const seen = { times: this.times.slice(), first: this.first, n: this.n, tracks: this.tracks };
        const until = this.n ? this.time(this.first) : Infinity, older = times.filter((t) => t < until);
        const room = Math.max(0, MOMENTS - (seen.n - seen.first)), from = Math.max(0, older.length - room);
        this.tracks = new Map();
        this.times = new Float64Array(MOMENTS);
        this.n = 0;
        for (let i = from; i < older.length; i++, this.n++)
            this.times[this.n] = older[i] ?? NaN;
        for (const [uuid, series] of recorded)
            for (const [k, values] of series)
                values.slice(from, older.length).forEach((v, i) => this.set(uuid, k, i, v));
        for (let n = seen.first; n < seen.n; n++, this.n++) {
            this.times[this.n] = seen.times[n % MOMENTS] ?? NaN;
            for (const [uuid, track] of seen.tracks) {
                track.values.forEach((values, k) => this.set(uuid, k, this.n, values[n % MOMENTS] ?? NaN));
                this.track(uuid).throttled[this.n] = track.throttled[n % MOMENTS] ?? 0;
            }
        }
    }

    /**
     * @param {string} uuid
     * @param {number} series
     * @param {number} at
     * @param {number | null} value
     */
    set(uuid, series, at, value) {
        const values = this.track(uuid).values[series];
        if (!values || value === null)
            return;
        values[at] = value;
        if (!this.series[series]?.most)
            this.most[series] = Math.max(this.most[series] ?? 0, value || 0);
    }

    /**
     * Of the n-th moment; NaN where it is not kept any more, or has not come.
     * @param {number} n
     */
    time(n) {
        return n >= this.first && n < this.n ? this.times[n % MOMENTS] ?? NaN : NaN;
    }

    get first() {
        return Math.max(0, this.n - MOMENTS);
    }

    /**
     * The moment that is next to a time.
     * @param {number} time
     */
    nearest(time) {
        let low = this.first, high = this.n - 1;
        while (low < high) {
            const middle = (low + high) >> 1;
            if (this.time(middle) < time)
                low = middle + 1;
            else
                high = middle;
        }
        return low > this.first && time - this.time(low - 1) < this.time(low) - time ? low - 1 : low;
    }
}
