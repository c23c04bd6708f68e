// SPDX-License-Identifier: Apache-2.0
/*
 * Tables that are searched, sorted and kept current. A column is one row of a table of columns. Of more than
 * ROWS rows there are elements only of those that are in sight and of some around them: margins stand for the
 * others, so that 5,000 rows cost what 100 do.
 */
import { el, setClass, setText } from "./dom.js";
import { NONE } from "./format.js";

const ROWS = 100;
/** So many more than are in sight, above and below. */
const AROUND = 15;
/** Of a row, until one has been seen. */
const HEIGHT = 29;

/**
 * @template T
 * @typedef {object} Column
 * @property {string} id in the address
 * @property {string} title
 * @property {(row: T) => string} text
 * @property {(row: T) => unknown} [value] what it is sorted by; without it the text
 * @property {boolean} [right] a number
 * @property {(row: T) => string} [tone] "good", "warn", "bad", "dim" or ""
 * @property {(row: T) => string} [href] of a link; "": this row has none
 * @property {(row: T) => (() => void) | undefined} [click] what a button does; undefined: this row has none
 * @property {(row: T) => boolean} [pressed] whether that button shows something below its row
 * @property {boolean} [apart] the link opens a page of its own
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
 * @property {(rows: T[], sort: (rows: T[]) => T[]) => T[]} [arrange] what else than sorting is done with rows, as grouping
 * @property {string} [nothing] what is said where there are no rows at all
 * @property {Element[]} [tools] beside the search
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
        /** @type {T[]} those that are searched for, in their order */
        this.found = [];
        /** How many have the searched words. */
        this.matches = 0;
        /** @type {number | undefined} */
        this.drawing = undefined;
        this.height = HEIGHT;
        /** Those that have something; and which have not, as text. */
        this.columns = options.columns;
        /** Names first: numbers take longer to be written. */
        this.searched = [...options.columns].sort((a, b) => Number(a.right ?? false) - Number(b.right ?? false));
        this.empty = "";
        this.search = /** @type {HTMLInputElement} */ (el("input", {
            type: "search", placeholder: "Search", "aria-label": `Search ${options.label}`,
            oninput: () => this.place.set({ [this.prefix + "q"]: this.search.value }, true),
        }));
        this.said = el("span", { class: "said", role: "status" });
        this.heads = options.columns.map((column) => el("th", { scope: "col", class: column.right ? "right" : "", title: column.help },
            el("button", { type: "button", onclick: () => this.sortBy(column) }, column.title)));
        this.none = el("p", { class: "dim none", hidden: true });
        this.body = el("tbody");
        this.table = el("table", {}, el("thead", {}, el("tr", {}, ...this.heads)), this.body);
        this.scroll = el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": options.label, onscroll: () => this.scrolled() }, this.table, this.none);
        this.root = el("section", { class: options.columns.length > 2 ? "table" : "table narrow" },
            el("div", { class: "tools" }, el("h2", {}, options.label), this.search, ...options.tools ?? [], this.said),
            this.scroll);
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

    /** Rows that come into sight are made; once a frame is enough. */
    scrolled() {
        if (this.drawing === undefined && this.found.length > ROWS)
            this.drawing = requestAnimationFrame(() => {
                this.drawing = undefined;
                this.draw();
            });
    }

    /** @param {T[]} rows @returns {T[]} those that have the searched words, in their order */
    chosen(rows) {
        const words = (this.place.get(this.prefix + "q") || "").toLowerCase().split(/\s+/).filter(Boolean);
        if (words.length)
            rows = rows.filter((row) => words.every((word) => this.searched.some((c) => c.text(row).toLowerCase().includes(word))));
        this.matches = rows.length;
        return this.options.arrange?.(rows, (some) => this.inOrder(some)) ?? this.inOrder(rows);
    }

    /** @param {T[]} rows */
    inOrder(rows) {
        const sort = this.sorted(), down = sort.startsWith("-");
        const column = this.options.columns.find((c) => c.id === sort.replace(/^-/, ""));
        if (!column)
            return rows;
        const value = column.value ?? column.text;
        const marked = rows.map((row) => ({ row, v: value(row) }));
        marked.sort((a, b) => compare(a.v, b.v, down));
        return marked.map((m) => m.row);
    }

    /** @param {T[]} rows */
    update(rows) {
        const chosen = this.chosen(rows), searched = this.place.get(this.prefix + "q") || "";
        this.found = chosen;
        if (this.search.value !== searched && document.activeElement !== this.search)
            this.search.value = searched;
        setText(this.said, this.matches === rows.length ? `${rows.length}` : `${this.matches} of ${rows.length}`);
        this.none.hidden = chosen.length > 0;
        setText(this.none, rows.length ? "Nothing has these words." : this.options.nothing ?? "None.");
        this.markSorted();
        this.hideEmpty(chosen);
        this.draw();
    }

    /** The first row that has an element, and how many have. */
    window() {
        const n = this.found.length, first = Math.floor(this.scroll.scrollTop / this.height) - AROUND;
        const count = Math.ceil(this.scroll.clientHeight / this.height) + 2 * AROUND;
        return n <= ROWS ? { first: 0, count: n } : { first: Math.max(0, Math.min(first, n - count)), count: Math.min(n, Math.max(count, 2 * AROUND)) };
    }

    draw() {
        const { first, count } = this.window(), shown = this.found.slice(first, first + count);
        this.height = /** @type {HTMLElement | null} */ (this.body.firstElementChild)?.offsetHeight || this.height;
        this.table.style.marginTop = `${first * this.height}px`;
        this.table.style.marginBottom = `${(this.found.length - first - count) * this.height}px`;
        this.table.setAttribute("aria-rowcount", String(this.found.length + 1));
        this.fill(shown, first);
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

    /** @param {T[]} rows @param {number} first the place of the first of them */
    fill(rows, first) {
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
        rows.forEach((row, i) => {
            const name = key(row);
            let element = old.get(name);
            if (!element) {
                element = this.make();
                element.dataset.key = name;
            }
            this.show(element, row);
            element.setAttribute("aria-rowindex", String(first + i + 2));
            if (element === at)
                at = at.nextElementSibling;
            else
                this.body.insertBefore(element, at);
        });
    }

    make() {
        return el("tr", {}, ...this.columns.map((c) => el("td", {},
            c.href ? el("a", c.apart ? { target: "_blank", rel: "noopener" } : {}) : c.click ? el("button", { type: "button", class: "inline" }) : "")));
    }

    /** @param {HTMLElement} element @param {T} row */
    show(element, row) {
        this.columns.forEach((column, i) => {
            const cell = /** @type {HTMLElement} */ (element.children[i]);
            const tone = column.tone?.(row) ?? "";
            setClass(cell, column.right ? `right ${tone}` : tone);
            const inner = /** @type {HTMLElement | null} */ (cell.firstElementChild), href = column.href?.(row), click = column.click?.(row);
            setText(inner ?? cell, column.text(row));
            if (href)
                inner?.setAttribute("href", href);
            else if (column.href)
                inner?.removeAttribute("href");
            if (column.click && inner) {
                inner.onclick = click ?? null;
                /** @type {HTMLButtonElement} */ (inner).disabled = !click;
                if (column.pressed)
                    inner.setAttribute("aria-expanded", String(column.pressed(row)));
            }
        });
    }
}
