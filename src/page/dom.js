// SPDX-License-Identifier: Apache-2.0
/* Elements. Texts become text nodes only, so that names which users choose are never markup. */

/**
 * @param {string} tag
 * @param {Record<string, any>} [attributes] "class", "aria-label", ...; functions are listeners ("onclick");
 *     undefined, null and false are left out
 * @param {...(Node|string)} children
 * @returns {HTMLElement}
 */
export function el(tag, attributes = {}, ...children) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
        if (typeof value === "function")
            element.addEventListener(name.slice(2), value);
        else if (value !== undefined && value !== null && value !== false)
            element.setAttribute(name, value === true ? "" : String(value));
    }
    element.append(...children);
    return element;
}

/**
 * Sets a text only if it is another one, so that nothing is laid out again for nothing.
 * @param {Node} node
 * @param {string} text
 */
export function setText(node, text) {
    if (node.textContent !== text)
        node.textContent = text;
}

/** @param {Element} element @param {string} name */
export function setClass(element, name) {
    if (element.className !== name)
        element.className = name;
}

/** @param {string} id @returns {HTMLElement} */
export function byId(id) {
    const found = document.getElementById(id);
    if (!found)
        throw new Error(`no element ${id}`);
    return found;
}

/**
 * Makes @parent's children those of @items, in their order: an element is made once for each key, and stays.
 * @template T
 * @param {Element} parent
 * @param {T[]} items
 * @param {(item: T) => string} key
 * @param {(item: T) => HTMLElement} make
 * @param {(element: HTMLElement, item: T) => void} update
 */
export function keyed(parent, items, key, make, update) {
    /** @type {Map<string, HTMLElement>} */
    const old = new Map();
    for (const child of /** @type {Iterable<HTMLElement>} */ (parent.children))
        old.set(child.dataset.key ?? "", child);
    let at = parent.firstElementChild;
    for (const item of items) {
        const name = key(item);
        let element = old.get(name);
        old.delete(name);
        if (!element) {
            element = make(item);
            element.dataset.key = name;
        }
        update(element, item);
        if (element === at)
            at = at.nextElementSibling;
        else
            parent.insertBefore(element, at);
    }
    for (const gone of old.values())
        gone.remove();
}

/** Longer than this, a piece of work waits for the next frame: nobody shall notice it. */
const SLICE_MS = 8;
/** And after so many items, since they are laid out and painted after it: that takes longer than their change. */
const SLICE_ITEMS = 8;

/**
 * Calls @work for each item, in pieces. A later call with the same @owner takes the place of an earlier one, and begins with those that one has not come to.
 * @template T
 * @param {{running?: number, next?: number}} owner
 * @param {T[]} items
 * @param {(item: T, i: number) => void} work
 */
export function inSlices(owner, items, work) {
    const first = owner.running === undefined ? 0 : owner.next ?? 0;
    let done = 0;
    const go = () => {
        const end = performance.now() + SLICE_MS;
        owner.running = undefined;
        for (let n = 0; done < items.length; done++, n++) {
            owner.next = (first + done) % items.length;
            if (n === SLICE_ITEMS || performance.now() > end) {
                owner.running = requestAnimationFrame(go);
                return;
            }
            work(/** @type {T} */ (items[owner.next]), owner.next);
        }
    };
    if (owner.running !== undefined)
        cancelAnimationFrame(owner.running);
    go();
}

/**
 * As keyed(), in pieces: of many items some come a few frames later.
 * @template T
 * @param {{running?: number, next?: number}} owner
 * @param {Element} parent
 * @param {T[]} items
 * @param {(item: T) => string} key
 * @param {(item: T) => HTMLElement} make
 * @param {(element: HTMLElement, item: T) => void} update
 */
export function keyedInSlices(owner, parent, items, key, make, update) {
    const wanted = new Set(items.map(key));
    /** @type {Map<string, HTMLElement>} */
    const elements = new Map();
    for (const child of /** @type {HTMLElement[]} */ ([...parent.children]))
        if (wanted.has(child.dataset.key ?? ""))
            elements.set(child.dataset.key ?? "", child);
        else
            child.remove();
    inSlices(owner, items, (item, i) => {
        const name = key(item), element = elements.get(name) ?? make(item);
        element.dataset.key = name;
        elements.set(name, element);
        update(element, item);
        if (parent.children[i] !== element)
            parent.insertBefore(element, parent.children[i] ?? null);
    });
}
