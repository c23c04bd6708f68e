// SPDX-License-Identifier: Apache-2.0
/* Links to reports: "gpusonde report" of a container, pod, job or user, of the day before now or before the moment that is shown. */
import { known } from "./format.js";

/** What the agent is asked for, by whose it is; null: that is not known. */
const WHO = /** @type {Record<string, (of: any) => string | null | undefined>} */ ({
    container: (w) => w.container_id ?? w.container,
    pod: (w) => w.pod && w.namespace ? `${w.namespace}/${w.pod}` : w.pod ?? w.pod_uid,
    job: (w) => w.job,
    user: (w) => known(w.uid) ? String(w.uid) : null,
});

/**
 * "": there is no such report.
 * @param {any} of a process, or a workload
 * @param {string} kind a name of WHO
 * @param {import("./app.js").Place} place
 */
export function reportOf(of, kind, place) {
    const who = WHO[kind]?.(of), at = place.get("at");
    if (!who)
        return "";
    const words = new URLSearchParams({ [kind]: who });
    if (at)
        words.set("until", at);
    return `api/v1/report?${words}`;
}
