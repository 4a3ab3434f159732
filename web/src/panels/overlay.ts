// The rungs over each other: how the whole distribution moves as the load grows.

import { Chart } from '../chart'
import type { TrialPage } from '../data'
import { h, replace } from '../dom'
import { number } from '../format'
import { aligned, curve } from '../percentile'
import { rungsOf } from '../state'
import { inOrder } from '../theme'
import { cellName } from './sweep'
import type { Context, Mounted, Panel } from './panel'

const FAMILIES: [string, string][] = [
  ['tick_interval', 'Tick intervals'], ['delivery', 'Delivery latency'], ['response', 'Response time'], ['service', 'Service time'],
]
/** So many curves can be told apart. */
const MOST = 8

/** The rungs of one cell that tell the most: those around the first that failed, and the lowest to compare with. */
export function worthShowing(rungs: TrialPage[]): TrialPage[] {
  const sorted = rungs.slice().sort((a, b) => a.load - b.load)
  if (sorted.length <= MOST) return sorted
  const bad = sorted.findIndex(trial => trial.rung?.verdict !== 'PASS')
  const middle = bad < 0 ? sorted.length - 1 : bad
  const from = Math.min(Math.max(1, middle - MOST / 2), sorted.length - (MOST - 1))
  return [sorted[0], ...sorted.slice(from, from + MOST - 1)]
}

function ofCell(context: Context): TrialPage[] {
  const cell = cellName(context.trial.cell ?? {})
  return rungsOf(context.page).filter(trial => trial.rung !== null && cellName(trial.cell ?? {}) === cell)
}

const panel: Panel = {
  id: 'overlay', title: 'Rungs over each other', of: 'machine', order: 10,
  shows: context => ofCell(context).length > 1,
  mount: context => new Overlay(context),
}

class Overlay implements Mounted {
  readonly element = h('div', { class: 'overlay' })
  private readonly choice = h('select', { 'aria-label': 'the times that are laid over each other' })
  private readonly label = h('label', { class: 'quiet' }, 'shown: ', this.choice)
  private readonly place = h('div', { class: 'charts' })
  private readonly waiting = h('p', { class: 'muted' }, 'The rungs are read when this is scrolled to.')
  private readonly seen: IntersectionObserver
  private chart: Chart | null = null
  private family = ''
  private isWanted = false
  private drawnFor = ''

  constructor(private context: Context) {
    replace(this.element, this.label, this.place, this.waiting)
    this.choice.addEventListener('change', () => { this.family = this.choice.value; this.draw() })
    // Each rung is a page of its own: none is asked for before somebody looks.
    this.seen = new IntersectionObserver(([entry]) => {
      if (!entry.isIntersecting) return
      this.isWanted = true
      this.draw()
    })
    this.seen.observe(this.element)
    this.draw()
  }

  update(context: Context): void {
    this.context = context
    this.draw()
  }

  destroy(): void {
    this.seen.disconnect()
    this.chart?.destroy()
  }

  private draw(): void {
    const rungs = worthShowing(ofCell(this.context))
    if (this.isWanted) for (const rung of rungs) this.context.load(rung.seq)
    const read = rungs.filter(rung => Object.keys(rung.distributions).length > 0)
    this.waiting.hidden = read.length === rungs.length
    this.waiting.textContent = this.isWanted ? `${read.length} of ${rungs.length} rungs are read.` : 'The rungs are read when this is scrolled to.'
    const families = FAMILIES.filter(([name]) => read.some(rung => curve(rung.distributions[name] ?? []).nines.length > 1))
    if (!families.some(([name]) => name === this.family)) this.family = families[0]?.[0] ?? ''
    const key = JSON.stringify([this.family, families.length, read.map(rung => rung.seq)])
    if (key === this.drawnFor) return
    this.drawnFor = key
    replace(this.choice, ...families.map(([name, words]) => h('option', { value: name, selected: name === this.family }, words)))
    this.label.hidden = families.length < 2
    this.chart?.destroy()
    this.chart = null
    const there = read.map(rung => ({ rung, of: curve(rung.distributions[this.family] ?? []) })).filter(one => one.of.nines.length > 1)
    if (there.length === 0) return
    const { x, columns } = aligned(there.map(one => one.of))
    const unit = there[0].rung.load_unit
    const left = ofCell(this.context).length - rungs.length
    this.chart = new Chart({
      title: `${families.find(([name]) => name === this.family)![1]} by load`, unit: 'ns', axis: 'nines', log: this.family !== 'tick_interval', wide: true,
      note: left > 0 ? `The lowest rung and those around the first that did not pass; ${left} more stand in the table.` : 'A curve ends where fewer than 100 samples lie beyond it.',
    }, {
      x, lines: there.map((one, at) => ({
        label: `${number(one.rung.load)} ${unit}`, colour: inOrder(at, there.length), values: columns[at], drawn: 'steps' as const,
      })),
    })
    this.place.append(this.chart.element)
  }
}

export default panel
