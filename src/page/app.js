// SPDX-License-Identifier: Apache-2.0
/* Starts the page: header, tabs, the view that the address's hash names. */
import { Data } from "./data.js";
import { byId, el, setClass, setText } from "./dom.js";
import { NONE, bytes, fixed, known, percent } from "./format.js";
import { History, MOMENTS } from "./history.js";
import { newMachine } from "./machine.js";
import { Moment } from "./moment.js";
import { load, loadMachine } from "./recorded.js";
import { VIEWS } from "./views.js";
import { active as activeFindings, whose } from "./views/findings.js";
import { state } from "./views/gpus.js";

const ALWAYS = ["gpus", "node", "findings"];
/** Without an answer for so long the page says so. */
const OLD_MS = 5000;
/** What comes in so short a time is shown at once. */
const TOGETHER_MS = 30;

/** What the address's hash says: "#processes?q=python&sort=-memory". It is the only state of a view, so each is a link. */
export class Place {
    /** @param {() => void} changed */
    constructor(changed) {
        this.changed = changed;
        this.read();
        addEventListener("hashchange", () => {
            this.read();
            this.changed();
        });
    }

    read() {
        const [view, words] = location.hash.replace(/^#/, "").split("?");
        this.view = VIEWS.find((v) => v.id === view) ?? VIEWS[0];
        this.words = new URLSearchParams(words ?? "");
    }

    /** @param {string} name */
    get(name) {
        return this.words?.get(name) ?? "";
    }

    /** @param {Record<string, string>} words "" takes a word away @param {boolean} [quiet] not in the browser's history */
    set(words, quiet = false) {
        const all = new URLSearchParams(this.words);
        for (const [name, value] of Object.entries(words)) {
            all.delete(name);
            if (value)
                all.set(name, value);
        }
        const hash = `#${this.view?.id}${String(all) ? "?" + all : ""}`;
        history[quiet ? "replaceState" : "pushState"](null, "", hash);
        this.read();
        this.changed();
    }
}

export class App {
    constructor() {
        /** @type {import("./views.js").View | undefined} */
        this.view = undefined;
        this.update = () => {};
        this.recorded = false;
        this.wanted = "";
        /** @type {number | undefined} */
        this.refreshing = undefined;
        this.place = new Place(() => this.show());
        this.history = new History();
        this.machine = newMachine();
        this.data = new Data((names) => this.onData(names));
        this.moment = new Moment(this);
        this.makeTabs();
        this.makeTheme();
        this.show();
    }

    makeTabs() {
        const tabs = byId("tabs");
        tabs.append(...VIEWS.map((view) => el("a", { role: "tab", href: `#${view.id}`, id: `tab-${view.id}` }, view.title)));
        tabs.addEventListener("keydown", (event) => {
            const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
            const at = VIEWS.findIndex((view) => view === this.view);
            if (!step)
                return;
            const next = /** @type {import("./views.js").View} */ (VIEWS[(at + step + VIEWS.length) % VIEWS.length]);
            this.go(next);
            byId(`tab-${next.id}`).focus();
            event.preventDefault();
        });
        addEventListener("keydown", (event) => this.onKey(event));
    }

    /** @param {import("./views.js").View} view of the same moment */
    go(view) {
        location.hash = `#${view.id}${this.moment.at ? "?at=" + this.moment.at : ""}`;
    }

    /** @param {KeyboardEvent} event digits choose tabs, "/" the search, as long as nothing is typed */
    onKey(event) {
        const typing = event.target instanceof HTMLInputElement;
        if (event.ctrlKey || event.altKey || event.metaKey || typing)
            return;
        const view = VIEWS[Number(event.key) - 1];
        if (view) {
            this.go(view);
        } else if (event.key === "/") {
            /** @type {HTMLElement | null} */ (document.querySelector("#main input[type=search]"))?.focus();
            event.preventDefault();
        }
    }

    /** Dark, light, or what the system has; kept by the browser where it may. */
    makeTheme() {
        const themes = ["system", "dark", "light"];
        const apply = (/** @type {string} */ theme) => {
            document.documentElement.dataset.theme = theme;
            setText(byId("theme"), `Theme: ${theme}`);
        };
        apply(stored("theme") || "system");
        byId("theme").addEventListener("click", () => {
            const next = themes[(themes.indexOf(document.documentElement.dataset.theme ?? "") + 1) % themes.length] ?? "system";
            store("theme", next);
            apply(next);
        });
    }

    show() {
        const { view } = this.place;
        if (view && view !== this.view) {
            const root = byId("main");
            root.replaceChildren();
            root.setAttribute("aria-labelledby", `tab-${view.id}`);
            this.view = view;
            this.update = view.create(root, this);
            this.want(view.pages);
        }
        this.moment.update();
        for (const other of VIEWS) {
            const tab = byId(`tab-${other.id}`);
            tab.setAttribute("aria-selected", String(other === view));
            tab.setAttribute("href", `#${other.id}${this.moment.at ? "?at=" + this.moment.at : ""}`);
            tab.tabIndex = other === view ? 0 : -1;
        }
        this.refresh();
    }

    /** @param {string[]} pages what the view shows, beside what always is there */
    want(pages) {
        const all = [...new Set([...ALWAYS, ...pages])];
        if (all.join() === this.wanted)
            return;
        this.wanted = all.join();
        this.data.want(all);
    }

    /** @param {string[]} names of what has changed; none: only time has passed */
    onData(names) {
        if (names.includes("gpus") && this.data.live("gpus"))
            this.history.record(this.data.live("gpus"));
        if (names.includes("node") && this.data.live("node"))
            this.machine.record(this.data.live("node"));
        this.loadRecorded();
        this.moment.update();
        if (!names.length)
            this.age();
        else if (this.refreshing === undefined)
            this.refreshing = setTimeout(() => this.refresh(), TOGETHER_MS);
    }

    /** Once, where the agent records. */
    loadRecorded() {
        const gpus = this.data.live("gpus")?.gpus;
        if (this.recorded || !gpus || this.data.live("node")?.node.agent.recording_up !== 1)
            return;
        this.recorded = true;
        const until = Date.parse(this.data.live("gpus").time), span = { gpus: gpus.length, since: until - MOMENTS * 1000, until, early: true };
        load(this.history, span).then(() => loadMachine(this.machine, span)).then(() => this.refresh(), () => {});
    }

    refresh() {
        clearTimeout(this.refreshing);
        this.refreshing = undefined;
        this.header();
        this.update();
    }

    header() {
        const { data } = this, gpus = data.get("gpus") ?? data.live("gpus"), node = (data.get("node") ?? data.live("node"))?.node;
        this.age();
        if (!gpus || !node)
            return;
        byId("simulated").hidden = !gpus.simulated;
        byId("replay").hidden = !gpus.replay;
        setText(byId("replay"), gpus.replay ? `REPLAY of a recording: as it was at ${new Date(gpus.replay).toLocaleString([], { hour12: false })}` : "");
        setText(byId("host"), node.hostname ?? "");
        document.title = `${gpus.replay ? "REPLAY " : ""}${gpus.simulated ? "SIMULATED " : ""}${node.hostname ?? ""} · gpusonde`;
        facts(byId("facts"), [
            ["GPUs", models(gpus.gpus)],
            ...totals(gpus.gpus),
            ["Driver", node.driver_version ?? "-"],
            ["CUDA", node.cuda_version ?? "-"],
            ["State", node.reason ?? worst(gpus.gpus)],
        ]);
        alertLine(byId("alert"), gpus.gpus);
        this.findings();
    }

    /** What slows programs down now, in a line that leads to it, and how many such findings there are, on their tab. */
    findings() {
        const active = activeFindings(this.data.get("findings")), line = byId("slow"), first = active[0];
        setText(byId("tab-findings"), active.length ? `Findings (${active.length})` : "Findings");
        line.hidden = !first;
        if (first)
            setText(line, `${whose(first, this.data)}: ${first.title}. ${first.remedy}`);
    }

    age() {
        const age = byId("age"), silent = performance.now() - this.data.heard, old = silent > OLD_MS;
        const time = this.data.live("gpus")?.time;
        setClass(age, old ? "bad" : "dim");
        setText(age, old ? `No answer for ${Math.floor(silent / 1000)} s: what is shown is old` :
            time ? `${new Date(time).toLocaleTimeString([], { hour12: false })}` : "");
        document.documentElement.classList.toggle("old", old);
    }
}

/** @param {string} name */
function stored(name) {
    try {
        return localStorage.getItem(name) ?? "";
    } catch {
        return "";
    }
}

/** @param {string} name @param {string} value */
function store(name, value) {
    try {
        localStorage.setItem(name, value);
    } catch {
        // not kept, which is all
    }
}

/** @param {HTMLElement} list @param {[string, string][]} rows */
function facts(list, rows) {
    if (list.children.length !== rows.length)
        list.replaceChildren(...rows.map(([name]) => el("div", {}, el("dt", {}, name), el("dd"))));
    rows.forEach(([, value], i) => setText(/** @type {Element} */ (list.children[i]?.children[1]), value));
}

/**
 * "8 × H100 80GB HBM3".
 * @param {any[]} gpus
 */
function models(gpus) {
    /** @type {Map<string, number>} */
    const counts = new Map();
    for (const gpu of gpus)
        counts.set(gpu.name, (counts.get(gpu.name) ?? 0) + 1);
    return [...counts].map(([name, n]) => `${n} × ${name.replace(/^NVIDIA /, "")}`).join(", ") || "none";
}

/**
 * Of all GPUs that are there and not stale, as far as each figure is known of them; "(7 of 8 GPUs)": not of all.
 * @param {any[]} gpus
 * @returns {[string, string][]}
 */
function totals(gpus) {
    const values = (/** @type {(gpu: any) => unknown} */ of) => gpus.filter((gpu) => gpu.present && !gpu.stale).map(of).filter(known);
    const said = (/** @type {number[]} */ list, /** @type {(list: number[]) => string} */ write) =>
        list.length ? write(list) + (list.length < gpus.length ? ` (${list.length} of ${gpus.length} GPUs)` : "") : NONE;
    const sum = (/** @type {number[]} */ list) => list.reduce((a, b) => a + b, 0);
    const memory = gpus.filter((gpu) => gpu.present && !gpu.stale && known(gpu.memory_used_bytes) && known(gpu.memory_total_bytes));
    return [
        ["Utilization", said(values((gpu) => gpu.utilization_ratio?.gpu), (list) => percent(sum(list) / list.length))],
        ["Memory", said(memory.map((gpu) => gpu.memory_used_bytes), (list) => `${bytes(sum(list))} of ${bytes(sum(memory.map((gpu) => gpu.memory_total_bytes)))}`)],
        ["Power", said(values((gpu) => gpu.power_watts), (list) => `${fixed(sum(list), 0)} W`)],
        ["Hottest", said(values((gpu) => gpu.temperature_celsius), (list) => `${fixed(Math.max(...list), 0)} °C, GPU ${hottest(gpus)}`)],
    ];
}

/** @param {any[]} gpus */
function hottest(gpus) {
    const current = gpus.filter((gpu) => gpu.present && !gpu.stale && known(gpu.temperature_celsius));
    return current.reduce((a, b) => b.temperature_celsius > a.temperature_celsius ? b : a).gpu;
}

/**
 * The worst state of all, and how many have it.
 * @param {any[]} gpus
 */
function worst(gpus) {
    for (const tone of ["bad", "warn"]) {
        const found = gpus.filter((gpu) => state(gpu)[1] === tone);
        if (found.length)
            return found.map((gpu) => `GPU ${gpu.gpu} ${state(gpu)[0]}`).join(", ");
    }
    return "ok";
}

/**
 * The newest XID that is more than information, else the first severe warning.
 * @param {HTMLElement} line
 * @param {any[]} gpus
 */
function alertLine(line, gpus) {
    const xids = gpus.flatMap((gpu) => gpu.xids.map((/** @type {any} */ x) => ({ gpu, x }))).filter(({ x }) => x.severity !== "info");
    xids.sort((a, b) => String(b.x.last_seen).localeCompare(String(a.x.last_seen)));
    const severe = gpus.flatMap((gpu) => (gpu.warnings ?? []).map((/** @type {any} */ w) => ({ gpu, w })))[0];
    const newest = xids[0];
    line.hidden = !newest && !severe;
    if (newest)
        setText(line, `GPU ${newest.gpu.gpu}: XID ${newest.x.xid} (${newest.x.name}). ${newest.x.action}`);
    else if (severe)
        setText(line, `GPU ${severe.gpu.gpu}: ${severe.w.text}`);
}

/** For tests, and for users of the browser's console. */
Object.assign(globalThis, { gpusonde: new App() });
