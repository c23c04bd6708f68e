// SPDX-License-Identifier: Apache-2.0
/* The machine that the GPUs are in. */
import { el } from "../dom.js";
import { bytes, fixed, known, percent, rate } from "../format.js";
import { Longer } from "../longer.js";
import { MACHINE_SERIES, WINDOW_MS, cpuShares, memoryUsed, newMachine } from "../machine.js";
import { Rates } from "../rates.js";
import { loadMachine } from "../recorded.js";
import { Charts } from "./charts.js";
import { tab } from "./tab.js";

const rates = new Rates(WINDOW_MS);

/**
 * A share of the time, which the times of documents may make a little more than all.
 * @param {number | null} v
 */
const ofTheTime = (v) => percent(v === null ? null : Math.min(v, 1));

/** @param {import("../app.js").App} app */
const node = (app) => app.data.get("node");

/**
 * Of the time of all processors.
 * @param {any} host @param {string} time
 */
function cpuRows(host, time) {
    const shares = cpuShares(host, time, rates), row = (/** @type {string} */ name) => ({ name: `CPU ${name}`, text: percent(shares.get(name)) });
    return ["busy", ...Object.keys(host.cpu_seconds_total).filter((name) => name !== "idle")].map(row);
}

/** @param {any} figures */
function memoryRows({ memory_bytes: memory, swap_bytes: swap }) {
    return [{ name: "Memory in use", text: `${bytes(memoryUsed(memory))} of ${bytes(memory.total)}` },
        { name: "Swap in use", text: `${bytes(swap.used)} of ${bytes(swap.total)}` }];
}

/**
 * Pressure: how much of the time some, or all, tasks waited for it.
 * @param {any} host @param {string} time
 */
function pressureRows(host, time) {
    return Object.entries(host.pressure_seconds_total).flatMap(([what, sums]) => Object.entries(sums).map(([who, sum]) => ({
        name: `${who === "some" ? "Some" : "All"} tasks wait for ${what === "cpu" ? "CPU" : what === "io" ? "disks" : what}`,
        text: ofTheTime(rates.of(`pressure ${what} ${who}`, sum, time)),
    })));
}

/** @param {import("../app.js").App} app */
function figures(app) {
    const { host, time } = { host: node(app)?.node.host, time: node(app)?.time };
    if (!host)
        return [];
    const load = host.load["1m"];
    return [...cpuRows(host, time), { name: "Load, 1 min", text: known(load) ? fixed(load, 1) : "-" }, ...memoryRows(host), ...pressureRows(host, time)];
}

/**
 * A column of a rate.
 * @param {string} id @param {string} title @param {(row: any) => unknown} sum @param {(v: number | null) => string} write
 */
function growth(id, title, sum, write) {
    const value = (/** @type {any} */ row) => rates.of(`${row.name} ${id}`, sum(row), row.time);
    return { id, title, right: true, value, text: (/** @type {any} */ row) => write(value(row)) };
}

/** @param {import("../app.js").App} app @param {string} list */
const rowsOf = (app, list) => (node(app)?.node.host?.[list] ?? []).map((/** @type {any} */ row) => ({ ...row, time: node(app).time }));

const name = { id: "name", title: "Name", text: (/** @type {any} */ row) => row.name };

const tables = tab({
    id: "host",
    title: "Host",
    pages: ["node"],
    note: (app) => node(app) && !node(app).node.host ? "The machine's figures are not read (option host.figures)." : "",
    lists: [{
        label: "Machine", name: "figures", key: (row) => row.name, rows: figures,
        columns: [{ id: "name", title: "Figure", text: (row) => row.name }, { id: "now", title: "Now", right: true, text: (row) => row.text }],
    }, {
        label: "Disks", name: "disks", key: (row) => row.name, rows: (app) => rowsOf(app, "disks"),
        columns: [name, growth("read", "Read", (d) => d.read_bytes_total, rate), growth("written", "Written", (d) => d.written_bytes_total, rate),
            growth("busy", "Busy", (d) => d.busy_seconds_total, ofTheTime)],
    }, {
        label: "Network", name: "network", key: (row) => row.name, rows: (app) => rowsOf(app, "interfaces"),
        columns: [name, growth("received", "Received", (i) => i.bytes_total.receive, rate), growth("sent", "Sent", (i) => i.bytes_total.transmit, rate),
            growth("errors", "Errors", (i) => i.errors_total.receive + i.errors_total.transmit, (v) => known(v) ? `${fixed(v, 1)}/s` : "-")],
    }],
});

/**
 * Whose charts there are, and which.
 * @param {import("../app.js").App} app
 */
function charted(app) {
    const shown = (node(app) ?? app.data.live("node"))?.node, figures = shown?.host;
    if (!figures)
        return [];
    const each = (/** @type {any[] | null} */ list, /** @type {string} */ kind, /** @type {string[]} */ series) =>
        (list ?? []).map(({ name }) => ({ uuid: `${kind} ${name}`, name, series }));
    return [{ uuid: "machine", name: shown.hostname ?? "the machine", series: ["cpu", "memory"] },
        ...each(figures.disks, "disk", ["read", "written"]), ...each(figures.interfaces, "interface", ["received", "sent"])];
}

/** @type {import("../views.js").View} */
export const host = {
    ...tables,
    create(root, app) {
        const above = el("div");
        root.append(above);
        const charts = new Charts(above, app, {
            series: MACHINE_SERIES, first: MACHINE_SERIES.map((s) => s.id).join(","), hint: "A click keeps the cursor, and the address has it; arrows move it.",
            history: () => app.moment.machine ?? app.machine, subjects: () => charted(app),
            longer: new Longer(app, newMachine, loadMachine, () => app.machine),
        });
        const update = tables.create(root, app);
        return () => {
            above.hidden = !charted(app).length;
            charts.update();
            update();
        };
    },
};
