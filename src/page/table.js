// SPDX-License-Identifier: Apache-2.0
/*
 * Tables that are searched, sorted and kept current. A column is one row of a table of columns. Of many rows
 * the first ROWS are shown until all are asked for; cells are changed in pieces, so that 5,000 rows do not
 * hold the page.
 */
import { el, inSlices, setClass, setText } from "./dom.js";
import { NONE } from "./format.js";

const ROWS = 100;

/**
 * @template T
 * @typedef {object} Column
 * @property {string} id in the address
 * @property {string} title
 * @property {(row: T) => string} text
 * @property {(row: T) => unknown} [value] what it is sorted by; without it the text
 * @property {boolean} [right] a number
 * @property {(row: T) => string} [tone] "good", "warn", "bad", "dim" or ""
 * @property {(row: T) => string} [href]
 * @property {string} [help]
 */

/**
 * @template T
 * @typedef {object} TableOptions
 * @property {string} label
 * @property {Column<T>[]} columns
 * @property {(row: T) => string} key what it is known by while it changes
 * @property {string} [sort] the column, with "-" the greatest first
 * @property {import("./app.js").Place} place
 * @property {string} [name] before its words in the address, where a view has several tables
 */

const texts = new Intl.Collator(undefined, { numeric: true });

/**
 * What is not known comes last, in either direction.
 * @param {unknown} a
 * @param {unknown} b
 * @param {boolean} down
 */
function compare(a, b, down) {
    const missing = (/** @type {unknown} */ v) => v === null || v === undefined || v === "" || v === NONE;
    if (missing(a) || missing(b))
        return Number(missing(a)) - Number(missing(b));
    const up = typeof a === "number" && typeof b === "number" ? a - b : texts.compare(String(a), String(b));
    return down ? -up : up;
}

/** @template T */
export class Table {
    /** @param {Element} root @param {TableOptions<T>} options */
    constructor(root, options) {
        this.options = options;
        this.prefix = options.name ? options.name + "." : "";
        /** @type {T[]} */
        this.rows = [];
        this.all = false;
        /** Those that have something; and which have not, as text. */
        this.columns = options.columns;
        this.empty = "";
        this.filling = {};
        this.search = /** @type {HTMLInputElement} */ (el("input", {
            type: "search", placeholder: "Search", "aria-label": `Search ${options.label}`,
            oninput: () => this.place.set({ [this.prefix + "q"]: this.search.value }, true),
        }));
        this.said = el("span", { class: "said", role: "status" });
        this.heads = options.columns.map((column) => el("th", { scope: "col", class: column.right ? "right" : "", title: column.help },
            el("button", { type: "button", onclick: () => this.sortBy(column) }, column.title)));
        this.body = el("tbody");
        this.more = el("button", { type: "button", class: "more", hidden: true, onclick: () => this.showAll() });
        this.root = el("section", { class: "table" },
            el("div", { class: "tools" }, el("h2", {}, options.label), this.search, this.said),
            el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": options.label },
                el("table", {}, el("thead", {}, el("tr", {}, ...this.heads)), this.body)),
            this.more);
        root.append(this.root);
    }

    get place() {
        return this.options.place;
    }

    /** @param {Column<T>} column first the greatest numbers, but texts from A */
    sortBy(column) {
        const up = column.id, down = "-" + column.id;
        const first = column.right ? down : up;
        this.place.set({ [this.prefix + "sort"]: this.sorted() === first ? (first === up ? down : up) : first });
    }

    sorted() {
        return this.place.get(this.prefix + "sort") || this.options.sort || "";
    }

    showAll() {
        this.all = true;
        this.update(this.rows);
    }

    /** @param {T[]} rows @returns {T[]} those that have the searched words, in their order */
    chosen(rows) {
        const words = (this.place.get(this.prefix + "q") || "").toLowerCase().split(/\s+/).filter(Boolean);
        const sort = this.sorted(), down = sort.startsWith("-");
        const column = this.options.columns.find((c) => c.id === sort.replace(/^-/, ""));
        if (words.length)
            rows = rows.filter((row) => {
                const text = this.options.columns.map((c) => c.text(row)).join(" ").toLowerCase();
                return words.every((word) => text.includes(word));
            });
        if (!column)
            return rows;
        const value = column.value ?? column.text;
        const marked = rows.map((row) => ({ row, v: value(row) }));
        marked.sort((a, b) => compare(a.v, b.v, down));
        return marked.map((m) => m.row);
    }

    /** @param {T[]} rows */
    update(rows) {
        const chosen = this.chosen(rows), shown = this.all ? chosen : chosen.slice(0, ROWS);
        const searched = this.place.get(this.prefix + "q") || "";
        this.rows = rows;
        if (this.search.value !== searched && document.activeElement !== this.search)
            this.search.value = searched;
        setText(this.said, chosen.length === rows.length ? `${rows.length}` : `${chosen.length} of ${rows.length}`);
        this.more.hidden = shown.length === chosen.length;
        setText(this.more, `Show all ${chosen.length}`);
        this.markSorted();
        this.hideEmpty(shown);
        this.fill(shown);
    }

    markSorted() {
        const sort = this.sorted();
        this.options.columns.forEach((column, i) => {
            const order = sort === column.id ? "ascending" : sort === "-" + column.id ? "descending" : "none";
            this.heads[i]?.setAttribute("aria-sort", order);
        });
    }

    /**
     * As in the tables, a column in which nothing is known is not shown.
     * @param {T[]} rows
     */
    hideEmpty(rows) {
        const empty = this.options.columns.map((column, i) => i > 0 && rows.length > 0 && rows.every((row) => column.text(row) === NONE));
        const is = empty.join();
        if (is === this.empty)
            return;
        this.empty = is;
        this.columns = this.options.columns.filter((_, i) => !empty[i]);
        this.heads.forEach((head, i) => head.hidden = empty[i] ?? false);
        this.body.replaceChildren();
    }

    /** @param {T[]} rows */
    fill(rows) {
        const { key } = this.options;
        /** @type {Map<string, HTMLElement>} */
        const old = new Map();
        for (const child of /** @type {Iterable<HTMLElement>} */ (this.body.children))
            old.set(child.dataset.key ?? "", child);
        const keys = new Set(rows.map(key));
        for (const [name, element] of old)
            if (!keys.has(name))
                element.remove();
        let at = this.body.firstElementChild;
        inSlices(this.filling, rows, (row) => {
            const name = key(row);
            let element = old.get(name);
            if (!element) {
                element = this.make();
                element.dataset.key = name;
            }
            this.show(element, row);
            if (element === at)
                at = at.nextElementSibling;
            else
                this.body.insertBefore(element, at);
        });
    }

    make() {
        return el("tr", {}, ...this.columns.map((c) => el("td", {}, c.href ? el("a") : "")));
    }

    /** @param {HTMLElement} element @param {T} row */
    show(element, row) {
        this.columns.forEach((column, i) => {
            const cell = /** @type {HTMLElement} */ (element.children[i]);
            const tone = column.tone?.(row) ?? "";
            setClass(cell, column.right ? `right ${tone}` : tone);
            if (column.href && cell.firstElementChild) {
                setText(cell.firstElementChild, column.text(row));
                cell.firstElementChild.setAttribute("href", column.href(row));
            } else {
                setText(cell, column.text(row));
            }
        });
    }
}
