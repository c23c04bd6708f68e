// SPDX-License-Identifier: Apache-2.0
/* A card for each GPU. */
import { el, keyed, keyedInSlices, setClass, setText } from "../dom.js";
import { NONE, bytes, count, fixed, known, percent, rate, text, whole } from "../format.js";
import { learn, user } from "../users.js";
import { name } from "./workloads.js";

/** Temperature from which a GPU is highlighted, as in "gpusonde gpus"; not an alarm. */
const WARM_CELSIUS = 85;
const GIB = 1024 ** 3;
/** So many names of who uses a GPU are on its card. */
const NAMES = 3;
/** Of more processes the document is too long to be sent for the names of them on the cards. */
const FEW = 500;

/**
 * The word for its state, and its tone.
 * @param {any} gpu
 * @returns {[string, string]}
 */
export function state(gpu) {
    if (!gpu.present)
        return ["LOST", "bad"];
    if (gpu.stale)
        return [known(gpu.age_seconds) ? `STALE ${fixed(gpu.age_seconds, 0)} s` : "STALE", "warn"];
    const warning = gpu.warnings?.[0];
    return warning ? [warning.state, warning.severe ? "bad" : "warn"] : ["ok", "good"];
}

/**
 * Why it is slowed down; "none"; "-" if it is not known.
 * @param {any} gpu
 * @returns {[string, string]}
 */
export function throttle(gpu) {
    const reasons = Object.entries(gpu.clocks_event_reason ?? {}).filter(([, v]) => known(v));
    const active = reasons.filter(([, v]) => v).map(([name]) => name);
    if (!active.length)
        return [reasons.length ? "none" : NONE, "dim"];
    return [active.join(", "), active.every((name) => name === "gpu_idle") ? "dim" : "warn"];
}

/** @param {any} gpu */
function memory(gpu) {
    const used = gpu.memory_used_bytes, total = gpu.memory_total_bytes;
    if (!known(used) && !known(total))
        return NONE;
    return `${known(used) ? fixed(used / GIB, 1) : NONE}/${known(total) ? fixed(total / GIB, 1) : NONE} GiB`;
}

/** @param {any} gpu */
function power(gpu) {
    const limit = gpu.power_limit_watts?.enforced;
    if (!known(gpu.power_watts))
        return NONE;
    return known(limit) ? `${fixed(gpu.power_watts, 0)}/${fixed(limit, 0)} W` : `${fixed(gpu.power_watts, 0)} W`;
}

/**
 * @typedef {object} Figure
 * @property {string} title
 * @property {(gpu: any) => string} text
 * @property {(gpu: any) => unknown} [ratio] of a bar
 * @property {(gpu: any) => string} [tone]
 * @property {string} [help]
 */

/** @type {Figure[]} */
const FIGURES = [
    { title: "Utilization", text: (g) => percent(g.utilization_ratio?.gpu), ratio: (g) => g.utilization_ratio?.gpu, help: "How much of the time a kernel ran" },
    { title: "Memory", text: memory, ratio: (g) => known(g.memory_used_bytes) && known(g.memory_total_bytes) ? g.memory_used_bytes / g.memory_total_bytes : null },
    { title: "Power", text: power, ratio: (g) => known(g.power_watts) && known(g.power_limit_watts?.enforced) ? g.power_watts / g.power_limit_watts.enforced : null },
    { title: "Temperature", text: (g) => whole("°C")(g.temperature_celsius), tone: (g) => g.temperature_celsius >= WARM_CELSIUS ? "warn" : "" },
    { title: "SM active", text: (g) => percent(g.sm_active_ratio), ratio: (g) => g.sm_active_ratio, help: "How much of the SMs worked" },
    { title: "Tensor active", text: (g) => percent(g.pipe_active_ratio?.tensor), ratio: (g) => g.pipe_active_ratio?.tensor },
    { title: "DRAM active", text: (g) => percent(g.dram_active_ratio), ratio: (g) => g.dram_active_ratio },
    { title: "SM clock", text: (g) => whole("MHz", 1e-6)(g.clock_hertz?.sm) },
    { title: "PCIe in", text: (g) => rate(g.pcie_rx_bytes_per_second) },
    { title: "PCIe out", text: (g) => rate(g.pcie_tx_bytes_per_second) },
    { title: "NVLink in", text: (g) => rate(g.nvlink_rx_bytes_per_second) },
    { title: "NVLink out", text: (g) => rate(g.nvlink_tx_bytes_per_second) },
    { title: "Encoder", text: (g) => percent(g.utilization_ratio?.encoder) },
    { title: "Decoder", text: (g) => percent(g.utilization_ratio?.decoder) },
    { title: "Fan", text: (g) => percent(g.fan_speed_ratio) },
    { title: "Memory clock", text: (g) => whole("MHz", 1e-6)(g.clock_hertz?.memory) },
    { title: "Processes", text: (g) => count(live(g)), help: "Those of its MIG instances, too" },
    { title: "Memory peak", text: (g) => bytes(g.memory_used_peak_bytes) },
];

/**
 * Its own, and those of its MIG instances, as in the table; null where one's are not known.
 * @param {any} gpu
 * @returns {number | null}
 */
function live(gpu) {
    const all = [gpu, ...gpu.mig].map((of) => of.processes_live);
    return all.every(known) ? all.reduce((a, b) => a + b, 0) : null;
}

/** What is shown of a MIG instance, behind its name: utilization is its share of itself, as far as the driver knows it. */
const INSTANCE = FIGURES.filter((figure) => ["Utilization", "Memory", "SM active", "Processes"].includes(figure.title));

/** @param {any} mig */
const instanceKey = (mig) => mig.mig_uuid ?? `${mig.gi} ${mig.ci}`;

/** @param {any} mig */
function makeInstance(mig) {
    return el("li", {}, el("span", { class: "instance" }, `MIG ${text(mig.profile)}`), " ", el("span", { class: "dim" }, `gi ${text(mig.gi)} ci ${text(mig.ci)}`), " ",
        el("span", { class: "state" }), el("dl"));
}

/** @param {HTMLElement} row @param {any} mig what is not known of it is left out */
function updateInstance(row, mig) {
    const [word, tone] = state(mig), said = /** @type {HTMLElement} */ (row.querySelector(".state"));
    const shown = INSTANCE.map((figure) => ({ title: figure.title, text: figure.text({ ...mig, mig: [] }) })).filter((figure) => figure.text !== NONE);
    setText(said, word);
    setClass(said, `state ${tone}`);
    keyed(/** @type {Element} */ (row.querySelector("dl")), shown, (figure) => figure.title,
        (figure) => el("div", {}, el("dt", {}, figure.title), el("dd", {}, el("span"))), (element, figure) => setText(/** @type {Element} */ (element.querySelector("span")), figure.text));
}

/** @param {any} gpu */
function makeCard(gpu) {
    return el("article", { class: "card", "aria-label": `GPU ${gpu.gpu}` },
        el("h2", {}, el("a", { class: "index", title: "Its charts" }, `GPU ${gpu.gpu}`), " ", el("span", { class: "name" }), " ", el("span", { class: "state" })),
        el("dl", {}, ...FIGURES.map((figure) => el("div", { title: figure.help },
            el("dt", {}, figure.title), el("dd", {}, el("span"), figure.ratio ? el("meter", { min: 0, max: 1, "aria-label": figure.title }) : "")))),
        el("ul", { class: "instances", "aria-label": `MIG instances of GPU ${gpu.gpu}` }),
        el("p", { class: "whose" }, "Used by: ", el("b")),
        el("p", { class: "throttle" }, "Slowed down by: ", el("span")),
        el("ul", { class: "warnings" }));
}

/**
 * The names of the containers, pods, jobs and units that use a GPU now, else of its processes and their users; those that use it most first.
 * @param {any} gpu
 * @param {any[]} workloads that use it
 * @param {any[]} processes the same, where they are few enough to be there
 */
function users(gpu, workloads, processes) {
    const found = workloads.length ? workloads : processes;
    found.sort((/** @type {any} */ a, /** @type {any} */ b) => (b.utilization_ratio ?? 0) - (a.utilization_ratio ?? 0) || (b.memory_bytes ?? 0) - (a.memory_bytes ?? 0));
    const names = [...new Set(found.map(workloads.length ? name : (/** @type {any} */ p) => p.uid === null ? text(p.comm) : `${text(p.comm)} (${user(p.uid)})`))];
    if (names.length)
        return names.slice(0, NAMES).join(", ") + (names.length > NAMES ? ` and ${names.length - NAMES} more` : "");
    const n = live(gpu);
    return n === null ? NONE : n === 0 ? "nobody" : `${n} ${n === 1 ? "process" : "processes"} of no container or job`;
}

/** @param {any[]} rows */
function byGpu(rows) {
    /** @type {Map<string, any[]>} */
    const found = new Map();
    for (const row of rows) {
        const list = found.get(row.uuid);
        if (list)
            list.push(row);
        else
            found.set(row.uuid, [row]);
    }
    return found;
}

/** @param {Map<string, any[]>} rows @param {any} gpu */
const of = (rows, gpu) => rows.get(gpu.uuid) ?? [];

/** @param {HTMLElement} card @param {any} gpu @param {string} by who uses it @param {string} at the moment that is shown; "": now */
function updateCard(card, gpu, by, at) {
    const find = (/** @type {string} */ selector) => /** @type {HTMLElement} */ (card.querySelector(selector));
    const [word, tone] = state(gpu), [reasons, how] = throttle(gpu);
    find(".index").setAttribute("href", `#charts?gpu=${gpu.gpu}${at ? "&at=" + at : ""}`);
    setText(find(".name"), gpu.name.replace(/^NVIDIA /, ""));
    setText(find(".state"), word);
    setClass(find("h2 span:last-child"), `state ${tone}`);
    setClass(card, `card ${tone === "good" ? "" : tone}`);
    setText(find(".whose b"), by);
    setText(find(".throttle span"), reasons);
    setClass(find(".throttle span"), how);
    const rows = find("dl").children;
    FIGURES.forEach((figure, i) => {
        const said = /** @type {HTMLElement} */ (rows[i]?.children[1]);
        const value = /** @type {HTMLElement} */ (said.children[0]), meter = /** @type {HTMLMeterElement | undefined} */ (said.children[1]);
        setText(value, figure.text(gpu));
        setClass(value, figure.tone?.(gpu) ?? "");
        if (figure.ratio && meter) {
            const ratio = figure.ratio(gpu);
            meter.hidden = !known(ratio);
            meter.value = known(ratio) ? ratio : 0;
        }
    });
    const instances = find(".instances");
    instances.hidden = !gpu.mig.length;
    keyed(instances, gpu.mig, instanceKey, makeInstance, updateInstance);
    const said = [...(gpu.warnings ?? []).map((/** @type {any} */ w) => w.text),
        ...gpu.xids.map((/** @type {any} */ x) => `XID ${x.xid} (${x.name}), ${x.count}x: ${x.meaning} ${x.action}`)];
    keyed(find(".warnings"), said, (t) => t, () => el("li"), (li, t) => setText(li, t));
}

/** @type {import("../views.js").View} */
export const gpus = {
    id: "gpus",
    title: "GPUs",
    pages: ["processes"],
    create(root, app) {
        const cards = el("div", { class: "cards" }), drawing = {};
        const none = el("p", { hidden: true }, "No GPUs.");
        root.append(cards, none);
        return () => {
            const list = app.data.get("gpus")?.gpus ?? [], node = app.data.get("node")?.node, processes = app.data.get("processes")?.processes;
            const few = list.reduce((/** @type {number} */ sum, /** @type {any} */ gpu) => sum + (live(gpu) ?? 0), 0) <= FEW;
            if (list.length)
                app.want(few ? ["processes"] : []);
            learn(processes ?? [], () => app.refresh());
            const workloads = byGpu((node?.workloads ?? []).filter((/** @type {any} */ w) => w.processes_live > 0)), running = byGpu(processes ?? []);
            none.hidden = list.length > 0 || !app.data.get("gpus");
            keyedInSlices(drawing, cards, list, (gpu) => gpu.uuid, makeCard, (card, gpu) => updateCard(card, gpu, users(gpu, of(workloads, gpu), of(running, gpu)), app.moment.at));
        };
    },
};
