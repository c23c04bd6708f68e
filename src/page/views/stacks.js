// SPDX-License-Identifier: Apache-2.0
/* What lies in files of its own: flame graph, timelines, reports. */
import { el } from "../dom.js";

/** @type {import("../views.js").View} */
export const stacks = {
    id: "stacks",
    title: "Stacks and files",
    pages: [],
    create(root) {
        const links = [
            el("a", { href: "api/v1/stacks?format=html", target: "_blank", rel: "noopener" }, "Flame graph of what stacks of Python and native functions launch, copy, hold and wait for"),
            el("a", { href: "api/v1/stacks?format=pprof", download: "stacks.pb.gz" }, "The same for pprof"),
            el("a", { href: "api/v1/stacks?format=folded", download: "stacks.folded" }, "The same as folded text"),
            el("a", { href: "api/v1/snapshot", download: "snapshot.json" }, "Everything of this second as JSON"),
            el("a", { href: "metrics" }, "Metrics, as Prometheus reads them"),
        ];
        root.append(el("p", { class: "note" }, "Stacks are there where trace.stacks is on."), el("ul", { class: "links" }, ...links.map((link) => el("li", {}, link))),
            el("p", { class: "dim" }, "Timelines are written on the machine: gpusonde record start, then Perfetto opens the file. A job's report: gpusonde report --job ID, of a recording."));
        return () => {};
    },
};
