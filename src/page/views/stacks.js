// SPDX-License-Identifier: Apache-2.0
/* What lies in files of its own: flame graph, snapshot, metrics, the report of all. */
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
            el("a", { href: "api/v1/report", target: "_blank", rel: "noopener" }, "Report of the last 24 hours, where the agent records; of one container, pod or job: Containers and jobs"),
        ];
        root.append(el("p", { class: "note" }, "Stacks are there where trace.stacks is on."), el("ul", { class: "links" }, ...links.map((link) => el("li", {}, link))));
        return () => {};
    },
};
