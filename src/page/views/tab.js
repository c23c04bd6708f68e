// SPDX-License-Identifier: Apache-2.0
/* A tab of tables, each of one list of a document: what most views are. */
import { el, setText } from "../dom.js";
import { Table } from "../table.js";

/**
 * @typedef {object} List
 * @property {string} label
 * @property {string} [name] where a tab has several
 * @property {import("../table.js").Column<any>[]} columns
 * @property {string} [sort]
 * @property {string} [nothing]
 * @property {(row: any) => string} key
 * @property {(app: import("../app.js").App) => any[]} rows
 */

/**
 * @param {object} tab
 * @param {string} tab.id
 * @param {string} tab.title
 * @param {string[]} tab.pages
 * @param {List[]} tab.lists
 * @param {(app: import("../app.js").App) => string} [tab.note] what must be known of all of it
 * @returns {import("../views.js").View}
 */
export function tab({ id, title, pages, lists, note }) {
    return {
        id, title, pages,
        create(root, app) {
            const said = el("p", { class: "note" });
            root.append(said);
            const tables = lists.map((list) => new Table(root, { ...list, place: app.place }));
            return () => {
                const absent = pages.map((page) => app.data.problem(page)).filter(Boolean).join(" ");
                setText(said, absent || note?.(app) || "");
                said.hidden = !said.textContent;
                lists.forEach((list, i) => tables[i]?.update(list.rows(app)));
            };
        },
    };
}

/**
 * Why figures of traced programs are not there, or old.
 * @param {any} part of a document: trace, kernels
 */
export function tracing(part) {
    if (!part)
        return "";
    const words = [];
    if (!part.enabled)
        words.push("Nothing is traced.");
    if (part.why)
        words.push(`${part.why}.`);
    if (part.stale)
        words.push("Tracing delivers nothing new: its figures are old.");
    return words.join(" ");
}

/**
 * "~" before what is an estimate, as in the tables.
 * @param {any} row
 * @param {string} name
 * @param {string} text
 */
export function marked(row, name, text) {
    return row.estimated?.includes(name) && text !== "-" ? "~" + text : text;
}
