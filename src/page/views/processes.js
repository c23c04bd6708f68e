// SPDX-License-Identifier: Apache-2.0
/* Processes, as "gpusonde ps" has them. */
import { el } from "../dom.js";
import { bytes, duration, percent, text } from "../format.js";
import { BY, groupColumn, grouped } from "../groups.js";
import { reportOf } from "../report.js";
import { Table } from "../table.js";
import { learn, user } from "../users.js";

/** @type {import("../table.js").Column<any>[]} */
export const COLUMNS = [
    { id: "gpu", title: "GPU", right: true, text: (p) => text(p.gpu), value: (p) => p.gpu },
    { id: "mig", title: "MIG", text: (p) => p.gi === null ? "-" : `${p.gi}/${p.ci ?? "-"}` },
    { id: "pid", title: "PID", right: true, text: (p) => text(p.pid), value: (p) => p.pid },
    { id: "user", title: "User", text: (p) => user(p.uid), help: "Its number where the name is not known" },
    { id: "type", title: "Type", text: (p) => p.types.join(" ") || "-" },
    { id: "sm", title: "SM", right: true, text: (p) => percent(p.utilization_ratio), value: (p) => p.utilization_ratio },
    { id: "memory", title: "Memory", right: true, text: (p) => bytes(p.memory_bytes), value: (p) => p.memory_bytes },
    { id: "busy", title: "Busy", right: true, text: (p) => duration(p.busy_seconds_total), value: (p) => p.busy_seconds_total },
    { id: "rank", title: "Rank", right: true, text: (p) => text(p.rank), value: (p) => p.rank },
    { id: "namespace", title: "Namespace", text: (p) => text(p.namespace) },
    { id: "pod", title: "Pod", text: (p) => text(p.pod ?? p.pod_uid) },
    { id: "container", title: "Container", text: (p) => text(p.container ?? p.container_id?.slice(0, 12)) },
    { id: "job", title: "Job", text: (p) => text(p.job) },
    { id: "command", title: "Command", text: (p) => text(p.comm) },
];

const TITLES = /** @type {Record<string, string>} */ ({ "": "each", user: "user", container: "container", pod: "pod", job: "job", gpu: "GPU" });

class Processes {
    /** @param {HTMLElement} root @param {import("../app.js").App} app */
    constructor(root, app) {
        this.root = root;
        this.app = app;
        /** @type {string | undefined} */
        this.by = undefined;
        this.choice = /** @type {HTMLSelectElement} */ (el("select", { "aria-label": "Group by", onchange: () => app.place.set({ by: this.choice.value, open: "" }) },
            ...Object.entries(TITLES).map(([by, title]) => el("option", { value: by }, by ? `by ${title}` : title))));
    }

    /**
     * Its columns depend on how it is grouped.
     * @param {string} by
     */
    lay(by) {
        const { place } = this.app, recorded = () => this.app.data.live("node")?.node.agent.recording_up === 1;
        const report = /** @type {import("../table.js").Column<any>} */ ({
            id: "report", title: "Report", apart: true, text: (p) => recorded() && p.group !== undefined && reportOf(p, by, place) ? "Report" : "-",
            href: (p) => recorded() && p.group !== undefined ? reportOf(p, by, place) : "",
        });
        this.by = by;
        this.choice.value = by;
        this.root.replaceChildren();
        this.table = new Table(this.root, {
            label: "Processes", columns: by ? [groupColumn(place), ...COLUMNS, report] : COLUMNS, sort: "-memory", place, tools: [this.choice],
            key: (p) => p.group === undefined ? `${p.pid} ${p.uuid} ${p.gi} ${p.ci}` : `group ${p.group}`,
            arrange: (rows, sort) => by ? grouped(rows, by, place.get("open"), sort) : sort(rows),
        });
    }

    update() {
        const { place, data } = this.app, by = place.get("by") in BY ? place.get("by") : "", list = data.get("processes")?.processes ?? [];
        if (by !== this.by)
            this.lay(by);
        learn(list, () => this.app.refresh());
        this.table?.update(list);
    }
}

/** @type {import("../views.js").View} */
export const processes = {
    id: "processes",
    title: "Processes",
    pages: ["processes"],
    create(root, app) {
        const view = new Processes(root, app);
        return () => view.update();
    },
};
