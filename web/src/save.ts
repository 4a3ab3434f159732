// The menu of a section: its charts and tables as CSV, its pictures as PNG, saved or copied. Everything is made in the page, so a
// report has it too.

import { chartsWithin } from './chart'
import { tableCsv, type Cell } from './csv'
import { h, replace } from './dom'
import { framed } from './paint'

interface Item { title: string; csv?: () => string; png?: () => Promise<HTMLCanvasElement | null> }

/** Pictures besides charts. */
const PICTURES = '.picture > svg, .frames > svg, .bars > svg'
/** What of a picture's looks comes from the style sheet, which a file does not have. */
const LOOKS = ['fill', 'fill-opacity', 'stroke', 'stroke-width', 'stroke-dasharray', 'stroke-linejoin', 'opacity', 'font-size', 'font-family', 'font-weight', 'text-anchor', 'paint-order', 'dominant-baseline']

/** A menu for the section that it stands in. What is there is looked for when it opens. */
export function menu(): HTMLElement {
  const list = h('div', { class: 'items' })
  const summary = h('summary', { title: 'Save or copy what this section shows' }, 'Export')
  const details = h('details', { class: 'menu', name: 'menu' }, summary, list)
  details.addEventListener('toggle', () => {
    if (!details.open) return
    const all = items(details.closest('section, article, main')!)
    replace(list, ...all.length === 0 ? [h('p', { class: 'note' }, 'There is nothing to export yet.')] : all.map(item => row(item, list)))
  })
  details.addEventListener('keydown', event => {
    if (event.key !== 'Escape' || !details.open) return
    event.stopPropagation()
    details.open = false
    summary.focus()
  })
  return details
}

function items(section: Element): Item[] {
  const name = section.getAttribute('aria-label') ?? section.querySelector('h2')?.textContent ?? document.title
  const tables = [...section.querySelectorAll('table')].filter(one => !one.closest('.behind'))
  return [
    ...[...section.querySelectorAll<SVGSVGElement>(PICTURES)].map(picture => {
      const title = picture.matches('.ladder') ? picture.getAttribute('aria-label')! : name
      return { title, png: () => drawing(title, picture) }
    }),
    ...chartsWithin(section).map(chart => ({ title: chart.title, csv: () => chart.csv(), png: async () => chart.picture() })),
    ...tables.map(one => ({ title: one.caption?.textContent ?? `${name}, table`, csv: () => textOf(one) })),
  ]
}

function row({ title, csv, png }: Item, list: Element): HTMLElement {
  const button = (word: string, does: () => Promise<unknown>) => h('button', {
    class: 'quiet', type: 'button', 'aria-label': `${word} of ${title}`,
    onclick: () => void does().catch(cause => list.append(h('p', { class: 'bad', role: 'alert' }, `${word} failed: ${(cause as Error).message}`))),
  }, word)
  // A page over plain HTTP from another machine may not reach the clipboard.
  const canCopy = 'clipboard' in navigator && 'ClipboardItem' in globalThis
  const image = async (make: NonNullable<Item['png']>) => {
    const canvas = await make()
    const blob = canvas && await new Promise<Blob | null>(resolve => canvas.toBlob(resolve))
    if (!blob) throw new Error('there is no picture yet')
    return blob
  }
  return h('div', { class: 'item' }, h('span', null, title),
    ...csv ? [
      button('CSV', async () => save(title, 'csv', new Blob([csv()], { type: 'text/csv' }))),
      canCopy && button('Copy CSV', () => navigator.clipboard.writeText(csv())),
    ] : [],
    ...png ? [
      button('PNG', async () => save(title, 'png', await image(png))),
      canCopy && button('Copy PNG', async () => navigator.clipboard.write([new ClipboardItem({ 'image/png': image(png) })])),
    ] : [])
}

function save(title: string, kind: string, content: Blob): void {
  const href = URL.createObjectURL(content)
  const name = `${document.title.replace(/ · Stepladder$/, '')} ${title}`.replace(/[^\p{L}\p{N}.]+/gu, '-').replace(/^-|-$/g, '').slice(0, 120)
  h('a', { href, download: `${name}.${kind}` }).click()
  setTimeout(() => URL.revokeObjectURL(href), 60_000)
}

/** The figures behind the cells of a table; words as they stand there. */
function textOf(one: HTMLTableElement): string {
  const words = (cell: Element) => (cell.textContent ?? '').replace(/\u202f/g, '').replace(/\s+/g, ' ').trim()
  const cell = (of: Element): Cell => {
    const figure = of.querySelector<HTMLElement>('[data-value]')
    if (figure) return { value: Number(figure.dataset.value), unit: figure.dataset.unit ?? 'count' }
    return of.querySelector('.unstated') ? '' : words(of)
  }
  return tableCsv([...one.tHead?.rows[0]?.cells ?? []].map(words), [...one.tBodies[0]?.rows ?? []].map(row => [...row.cells].map(cell)))
}

/** An SVG of this page under its title. */
async function drawing(title: string, picture: SVGSVGElement): Promise<HTMLCanvasElement> {
  const copy = picture.cloneNode(true) as SVGSVGElement
  const copies = [copy, ...copy.querySelectorAll('*')]
  for (const [at, element] of [picture, ...picture.querySelectorAll('*')].entries()) {
    const style = getComputedStyle(element)
    for (const name of LOOKS) copies[at].setAttribute(name, style.getPropertyValue(name))
  }
  copy.setAttribute('xmlns', 'http://www.w3.org/2000/svg')
  const { width, height } = picture.getBoundingClientRect()
  copy.setAttribute('width', String(width))
  copy.setAttribute('height', String(height))
  const image = new Image()
  image.src = `data:image/svg+xml,${encodeURIComponent(new XMLSerializer().serializeToString(copy))}`
  await image.decode()
  return framed(title, [], image, width, height)
}
