// SPDX-License-Identifier: Apache-2.0
/* The table of views: a tab each, in this order. */
import { calls } from "./views/calls.js";
import { charts } from "./views/charts.js";
import { collectives } from "./views/collectives.js";
import { events } from "./views/events.js";
import { findings } from "./views/findings.js";
import { gpus } from "./views/gpus.js";
import { host } from "./views/host.js";
import { kernels } from "./views/kernels.js";
import { operators } from "./views/operators.js";
import { processes } from "./views/processes.js";
import { servers } from "./views/servers.js";
import { stacks } from "./views/stacks.js";
import { timelines } from "./views/timelines.js";
import { topology } from "./views/topology.js";
import { workloads } from "./views/workloads.js";

/**
 * @typedef {object} View
 * @property {string} id in the address
 * @property {string} title
 * @property {string[]} pages names of the documents of /api/v1 that it shows; gpus and node are always there
 * @property {(root: HTMLElement, app: import("./app.js").App) => (() => void)} create what it returns is called when something has changed
 */

/** @type {View[]} */
export const VIEWS = [gpus, charts, processes, workloads, findings, events, calls, kernels, collectives, operators, servers, host, topology, timelines, stacks];
