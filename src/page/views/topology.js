// SPDX-License-Identifier: Apache-2.0
/* How GPUs are connected: each pair's link, and each GPU's way to the host. */
import { el, setText } from "../dom.js";
import { count, rate, text } from "../format.js";
import { tab } from "./tab.js";

/** What the words of the matrix mean. */
const WORDS = /** @type {Record<string, string>} */ ({
    NV: "NVLinks, by number", PIX: "one PCIe switch", PXB: "several PCIe switches", PHB: "a PCIe host bridge", NODE: "bridges within a NUMA node", SYS: "between NUMA nodes",
});

const links = tab({
    id: "topology",
    title: "Topology",
    pages: [],
    lists: [{
        label: "Links of GPUs", sort: "gpu",
        key: (g) => g.uuid,
        rows: (app) => app.data.get("gpus")?.gpus ?? [],
        columns: [
            { id: "gpu", title: "GPU", right: true, text: (g) => text(g.gpu), value: (g) => g.gpu },
            { id: "bus", title: "PCI", text: (g) => text(g.pci_bus_id) },
            { id: "numa", title: "NUMA node", right: true, text: (g) => text(g.numa_node), value: (g) => g.numa_node },
            { id: "pcie", title: "PCIe", text: (g) => g.pcie_link_generation ? `gen ${text(g.pcie_link_generation.current)} \u00d7${text(g.pcie_link_width?.current)}` : "-",
                tone: (g) => g.pcie_link_width?.current < g.pcie_link_width?.max ? "warn" : "" },
            { id: "rx", title: "PCIe in", right: true, text: (g) => rate(g.pcie_rx_bytes_per_second), value: (g) => g.pcie_rx_bytes_per_second },
            { id: "tx", title: "PCIe out", right: true, text: (g) => rate(g.pcie_tx_bytes_per_second), value: (g) => g.pcie_tx_bytes_per_second },
            { id: "replays", title: "Replays", right: true, text: (g) => count(g.pcie_replay_total), value: (g) => g.pcie_replay_total },
            { id: "nvlinks", title: "NVLinks", right: true, text: (g) => g.nvlink_links ? `${text(g.nvlink_links.active)}/${text(g.nvlink_links.total)}` : "-",
                tone: (g) => g.nvlink_links?.active < g.nvlink_links?.total ? "warn" : "" },
            { id: "nvrx", title: "NVLink in", right: true, text: (g) => rate(g.nvlink_rx_bytes_per_second), value: (g) => g.nvlink_rx_bytes_per_second },
            { id: "nvtx", title: "NVLink out", right: true, text: (g) => rate(g.nvlink_tx_bytes_per_second), value: (g) => g.nvlink_tx_bytes_per_second },
        ],
    }],
});

/**
 * The matrix's cells, row by row.
 * @param {any[]} gpus
 * @param {{a: number, b: number, link: string}[]} pairs
 */
function matrix(gpus, pairs) {
    const by = new Map(pairs.flatMap(({ a, b, link }) => [[`${a} ${b}`, link], [`${b} ${a}`, link]]));
    return gpus.map((row) => gpus.map((column) => row === column ? "" : by.get(`${row.gpu} ${column.gpu}`) ?? "-"));
}

/** @type {import("../views.js").View} */
export const topology = {
    ...links,
    create(root, app) {
        const table = el("table", { class: "matrix" }), legend = el("p", { class: "dim" });
        root.append(el("section", {}, el("h2", {}, "Between GPUs"), el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Between GPUs" }, table), legend));
        const update = links.create(root, app);
        let drawn = "";
        return () => {
            const pairs = app.data.get("node")?.node.topology ?? [], linked = new Set(pairs.flatMap((/** @type {any} */ p) => [p.a, p.b]));
            const gpus = (app.data.get("gpus")?.gpus ?? []).filter((/** @type {any} */ g) => linked.has(g.gpu));
            const cells = matrix(gpus, pairs), is = JSON.stringify(cells);
            update();
            if (is === drawn)
                return;
            drawn = is;
            const heads = gpus.map((/** @type {any} */ g) => el("th", { scope: "col" }, `GPU ${g.gpu}`));
            table.replaceChildren(el("tr", {}, el("td"), ...heads), ...cells.map((row, i) =>
                el("tr", {}, el("th", { scope: "row" }, `GPU ${gpus[i].gpu}`), ...row.map((link) => el("td", { class: link.startsWith("NV") ? "good" : "" }, link)))));
            const used = Object.entries(WORDS).filter(([word]) => pairs.some((/** @type {any} */ p) => p.link.startsWith(word)));
            setText(legend, used.map(([word, meaning]) => `${word}: ${meaning}`).join("; "));
        };
    },
};
