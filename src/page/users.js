// SPDX-License-Identifier: Apache-2.0
/* Names of users by their numbers, of /api/v1/users: the agent is asked only when a number comes that has not been seen. */
import { NONE, known } from "./format.js";

/** Names may be found later than numbers: so long after an answer it is asked again for those that had none. */
const AGAIN_MS = 10000;

/** @type {Map<number, string>} */
const names = new Map();
let later = 0;

/** @param {unknown} uid */
export function user(uid) {
    return known(uid) ? names.get(uid) ?? String(uid) : NONE;
}

/**
 * Learns the names of these processes' users.
 * @param {any[]} processes
 * @param {() => void} changed
 */
export function learn(processes, changed) {
    if (performance.now() < later || processes.every((p) => !known(p.uid) || names.has(p.uid)))
        return;
    later = performance.now() + AGAIN_MS;
    fetch("api/v1/users", { cache: "no-store" }).then((reply) => reply.status === 200 ? reply.json() : null).then((found) => {
        for (const [uid, name] of Object.entries(found?.users ?? {}))
            names.set(Number(uid), String(name));
        if (!found)
            later = performance.now() + 500;
        changed();
    }, () => {});
}
