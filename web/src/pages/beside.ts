// Two comparisons of client libraries beside each other: what it is worth, what differs, then each client at each task.

import type { RunComparison, ComparedCell, CellFigures, OldAndNew, RunPage } from '../data'
import { isOf, taskName } from '../bench'
import { h, onWidth, replace, table } from '../dom'
import { shown } from '../figures'
import { change, number, when } from '../format'
import { rates } from '../rates'
import { nameOf } from '../runs'
import { menu } from '../save'
import { onTheme, rem } from '../theme'
import { badge } from '../verdict'
import type { Page } from './page'

const FIGURES: [string, (cell: ComparedCell) => OldAndNew | null, unit: string][] = [
  ['operations', cell => cell.ops_per_s, 'per_s'], ['p50', cell => cell.p50_ns, 'ns'], ['p99', cell => cell.p99_ns, 'ns'],
  ['CPU per op.', cell => cell.cpu_ns_per_op, 'ns'], ['memory', cell => cell.rss_peak_bytes, 'bytes'], ['server CPU per op.', cell => cell.member_cpu_ns_per_op, 'ns'],
]

/** `old` and `young` are the pages of the runs that `both` compares. */
export function besidePage(both: RunComparison, old: RunPage, young: RunPage): Page {
  const pages = [old, young]
  const names = pages.map(page => nameOf(page.run))
  const pictures = both.cells.map(() => h('div', { class: 'bars' }))
  const all = h('div', { class: 'pairs' }, ...both.cells.map((cell, at) => h('section', { 'aria-label': `${cell.client}, ${taskName(cell)}` },
    h('h3', null, `${cell.client}, ${taskName(cell)}`), pictures[at], figures(cell, names),
    cell.ranges_overlap ? h('p', { class: 'facts-line' }, 'The rates of single runs overlap: no difference between old and new can be told.') : null)))
  let width = 0
  const draw = () => {
    if (width <= 0) return
    for (const [index, cell] of both.cells.entries()) {
      const sides = pages.map(page => page.bench?.comparison.cells.find(one => one.client === cell.client && isOf(cell, one)))
      const bars = sides.flatMap((one, at): CellFigures[] => one ? [{ ...one, client: names[at] }] : [])
      replace(pictures[index], ...bars.length === 2 ? [rates(bars, ['c1', 'c2'], width, rem())] : [])
    }
  }
  const unwatch = onWidth(all, now => { width = now; draw() })
  const unlisten = onTheme(draw)
  const element = h('main', { class: 'compare beside' },
    h('h1', null, 'Old against new'),
    h('p', { class: 'concluded' }, concluded(both)),
    h('section', { class: 'doubts', 'aria-label': 'Limits of this comparison' }, h('h2', null, 'Limits of this comparison'), h('ul', null, ...both.limits.map(one => h('li', null, one)))),
    h('ol', { class: 'compared' }, ...pages.map((page, at) => {
      const swatch = h('i', { class: 'swatch' })
      swatch.style.setProperty('--swatch', `var(--c${at + 1})`)
      return h('li', null, swatch, h('a', { href: `#/runs/${encodeURIComponent(page.run.id)}` }, names[at]), badge(page.run.verdict, page.run.state),
        h('small', null, `${page.run.subject} · ${when(page.run.started_unix_ms)} UTC`))
    })),
    h('section', null, h('h2', null, 'What differs besides the figures'), both.differs.length === 0
      ? h('p', null, 'Nothing: the same machine, versions and settings.')
      : table(['what', ...names], both.differs.map(one => [one.what, stated(one.old), stated(one.new)]), { class: 'words' })),
    h('section', { 'aria-label': 'Client by client' }, h('div', { class: 'bar' }, h('h2', null, 'Client by client'), menu()), all, alone(both, names)))
  return { element, title: `${names.join(' and ')} · Stepladder`, destroy: () => { unwatch(); unlisten() } }
}

/** In how many rows the rates of single runs tell old from new. */
function concluded({ cells }: RunComparison): string {
  if (cells.length === 0) return 'The two runs have no row in common.'
  const apart = cells.filter(cell => !cell.ranges_overlap)
  const faster = apart.filter(cell => cell.ops_per_s.new > cell.ops_per_s.old).length
  return `The new run does more operations per second in ${number(faster)} of ${number(cells.length)} rows and fewer in ${number(apart.length - faster)}; in ${number(cells.length - apart.length)} the rates of single runs overlap, so no difference can be told.`
}

/** A setting or fact as text, never markup. */
export function stated(value: unknown): string {
  if (value === null || value === undefined || value === '') return 'not stated'
  return typeof value === 'string' ? value : JSON.stringify(value)
}

function figures(cell: ComparedCell, names: string[]): HTMLElement {
  const rows = FIGURES.flatMap(([name, of, unit]) => {
    const figure = of(cell)
    return figure ? [[name, shown(figure.old, unit), shown(figure.new, unit), change(figure.old, figure.new)]] : []
  })
  return table(['figure', ...names, 'new : old'], rows, { class: 'beside-figures' })
}

function alone(both: RunComparison, names: string[]): HTMLElement | null {
  const lines = [both.only_old, both.only_new].flatMap((all, at) => all.length > 0 ? [h('p', { class: 'facts-line' }, `Only in ${names[at]}: ${all.join('; ')}`)] : [])
  return lines.length > 0 ? h('div', null, ...lines) : null
}
