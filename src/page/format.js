// SPDX-License-Identifier: Apache-2.0
/* Numbers as text, by the same rules as the tables of "gpusonde gpus" and "gpusonde ps" (view/number.h). */

/** What is not known, in every table. */
export const NONE = "-";

/** @param {unknown} v @returns {v is number} */
export function known(v) {
    return typeof v === "number" && Number.isFinite(v);
}

/**
 * As printf's %.*f for 0 or 1 decimals: toFixed() rounds numbers that lie exactly between two up, printf to
 * the even one.
 * @param {number} v @param {0|1} decimals
 */
export function fixed(v, decimals) {
    const scale = decimals ? 4 : 2; // numbers between two are odd multiples of 1/4 (with one decimal) or 1/2
    const text = v.toFixed(decimals);
    if (!Number.isInteger(v * scale) || Math.abs(v * scale) % 2 !== 1)
        return text;
    const last = Number(text.slice(-1));
    return last % 2 === 0 ? text : text.slice(0, -1) + (last - 1);
}

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/**
 * "512 B", "1.5 GiB".
 * @param {unknown} v
 */
export function bytes(v) {
    if (!known(v))
        return NONE;
    let unit = 0;
    while (v >= 1024 && unit + 1 < UNITS.length) {
        v /= 1024;
        unit++;
    }
    return `${fixed(v, unit > 0 ? 1 : 0)} ${UNITS[unit]}`;
}

/**
 * "12.5 MiB/s".
 * @param {unknown} v
 */
export function rate(v) {
    return known(v) ? bytes(v) + "/s" : NONE;
}

/**
 * "97 %" of a ratio.
 * @param {unknown} v
 */
export function percent(v) {
    return known(v) ? fixed(v * 100, 0) + " %" : NONE;
}

/** @param {string} unit @param {number} [scale] @returns {(v: unknown) => string} */
export function whole(unit, scale = 1) {
    return (v) => known(v) ? `${fixed(v * scale, 0)} ${unit}` : NONE;
}

/**
 * A number that counts something.
 * @param {unknown} v
 */
export function count(v) {
    return known(v) ? fixed(v, 0) : NONE;
}

/** @type {[number, string][]} */
const SPANS = [[86400, "d"], [3600, "h"], [60, "min"]];

/**
 * A time that was used: "1.5 min".
 * @param {unknown} v
 */
export function duration(v) {
    if (!known(v) || v < 0)
        return NONE;
    const [length, unit] = SPANS.find(([least]) => v >= least) ?? [1, "s"];
    return `${fixed(v / length, 1)} ${unit}`;
}

/**
 * A time of any size: "1.5 s", "12.0 ms", "3.1 us".
 * @param {unknown} v
 */
export function seconds(v) {
    if (!known(v))
        return NONE;
    if (v >= 1)
        return fixed(v, 1) + " s";
    return v >= 1e-3 ? fixed(v * 1e3, 1) + " ms" : fixed(v * 1e6, 1) + " us";
}

/** @param {unknown} v */
export function text(v) {
    return v === null || v === undefined || v === "" ? NONE : String(v);
}

/**
 * When, as the viewer's clock has it.
 * @param {unknown} v RFC 3339
 */
export function time(v) {
    return typeof v === "string" ? new Date(v).toLocaleTimeString([], { hour12: false }) : NONE;
}
