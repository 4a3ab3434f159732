// Elements without markup: whatever a user, a subject or a log wrote becomes a text node and nothing else. There is no
// innerHTML in this page, and no style attribute: the content security policy would refuse both.

type Child = Node | string | number | null | undefined | false
/** Method syntax lets a handler ask for its own kind of event. */
interface Listener { handle(event: Event): void }
type Attributes = Record<string, string | number | boolean | null | undefined | Listener['handle']>

function fill(element: Element, attributes: Attributes | null, children: Child[]): void {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue
    if (typeof value === 'function') element.addEventListener(name.replace(/^on/, ''), value)
    else element.setAttribute(name, value === true ? '' : String(value))
  }
  for (const child of children) {
    if (child === null || child === undefined || child === false) continue
    element.append(child instanceof Node ? child : document.createTextNode(String(child)))
  }
}

/** `h('button', { class: 'quiet', onclick: close }, 'Close')` */
export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K, attributes?: Attributes | null, ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag)
  fill(element, attributes ?? null, children)
  return element
}

/** The same for SVG; presentation attributes are used, since a style attribute would be refused. */
export function svg<K extends keyof SVGElementTagNameMap>(
  tag: K, attributes?: Attributes | null, ...children: Child[]
): SVGElementTagNameMap[K] {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag)
  fill(element, attributes ?? null, children)
  return element
}

export function replace(parent: Element, ...children: Child[]): void {
  parent.replaceChildren()
  fill(parent, null, children)
}

/** A table: the first cell of each row heads it; numbers stand to the right. Cells may be nodes or text. */
export function table(
  head: (string | Node)[], rows: (string | Node)[][], options: { caption?: string; class?: string } = {},
): HTMLElement {
  return h('div', { class: `scroll ${options.class ?? ''}`, tabindex: 0 },
    h('table', null,
      options.caption ? h('caption', null, options.caption) : null,
      h('thead', null, h('tr', null, ...head.map(cell => h('th', { scope: 'col' }, cell)))),
      h('tbody', null, ...rows.map(row =>
        h('tr', null, ...row.map((cell, at) => at === 0 ? h('th', { scope: 'row' }, cell) : h('td', null, cell)))))))
}

/** Calls `draw` with the element's width in whole px whenever that changes and there is any. Returns what ends it. */
export function onWidth(element: HTMLElement, draw: (width: number) => void): () => void {
  let known = 0
  const observer = new ResizeObserver(() => {
    const width = Math.floor(element.clientWidth)
    if (width !== known && width > 0) draw(known = width)
  })
  observer.observe(element)
  return () => observer.disconnect()
}
