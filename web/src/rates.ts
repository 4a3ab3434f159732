// Rates side by side: a bar to the mean of each client's runs, and a dot for each run. SVG, so that it prints sharply.

import type { CellFigures } from './data'
import { svg } from './dom'
import { perSecond } from './format'
import type { Colour } from './theme'

/** `colours`: one per cell. */
export function rates(cells: CellFigures[], colours: Colour[], width: number, rem: number): SVGSVGElement {
  const row = rem * 1.9
  const longest = Math.max(...cells.map(cell => Math.min(cell.client.length, NAME_LENGTH)))
  const left = Math.min(width * 0.4, longest * rem * 0.52 + rem)
  const right = rem * 7
  const most = Math.max(1e-9, ...cells.flatMap(cell => [cell.ops_per_s, ...cell.rates_per_s]).filter(Number.isFinite))
  const x = (rate: number) => left + (rate / most) * Math.max(rem, width - left - right)
  const root = svg('svg', { class: 'rates', width, height: row * cells.length, role: 'img', 'aria-label': cells.map(cell => `${cell.client}: ${perSecond(cell.ops_per_s)}`).join('; ') })
  for (const [at, cell] of cells.entries()) {
    const middle = row * (at + 0.5)
    const colour = `var(--${colours[at]})`
    const name = cell.client.length > NAME_LENGTH ? `${cell.client.slice(0, NAME_LENGTH - 1)}…` : cell.client
    root.append(
      svg('text', { x: left - rem * 0.5, y: middle, dy: '0.35em', 'text-anchor': 'end', 'font-size': rem * 0.85 }, name),
      svg('rect', { x: left, y: middle - row * 0.28, width: Math.max(1, x(cell.ops_per_s) - left), height: row * 0.56, rx: 2, fill: colour, 'fill-opacity': 0.35 }),
      ...cell.rates_per_s.map(rate => svg('circle', { cx: x(rate), cy: middle, r: rem * 0.2, fill: colour }, svg('title', null, perSecond(rate)))),
      svg('text', { x: x(Math.max(cell.ops_per_s, ...cell.rates_per_s)) + rem * 0.5, y: middle, dy: '0.35em', 'font-size': rem * 0.85, class: 'value' }, perSecond(cell.ops_per_s)))
  }
  return root
}

/** Letters of a client's name that fit: a command may be one. */
const NAME_LENGTH = 18
