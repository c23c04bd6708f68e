// SPDX-License-Identifier: Apache-2.0
/* The table of views: a tab each, in this order. */
import { gpus } from "./views/gpus.js";
import { processes } from "./views/processes.js";

/**
 * @typedef {object} View
 * @property {string} id in the address
 * @property {string} title
 * @property {string[]} pages names of the documents of /api/v1 that it shows; gpus and node are always there
 * @property {(root: HTMLElement, app: import("./app.js").App) => (() => void)} create what it returns is called when something has changed
 */

/** @type {View[]} */
export const VIEWS = [gpus, processes];
