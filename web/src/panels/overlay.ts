// The rungs over each other: how the whole distribution moves as the load grows.

import { Chart } from '../chart'
import { curveOf, overlaid, TIMES, type Times } from '../curves'
import type { TrialPage } from '../data'
import { h, replace } from '../dom'
import { number, unitText } from '../format'
import { rungsOf } from '../state'
import { inOrder } from '../theme'
import { cellName } from './sweep'
import type { Context, Mounted, Panel } from './panel'

/** The first that a server has is what its users feel. */
const ORDER: Times[] = ['tick_interval', 'delivery', 'response', 'service']
/** So many curves can be told apart. */
const MOST = 8

/** The rungs of one cell that tell the most: those around the first that failed, and the lowest to compare with. */
export function representative(rungs: TrialPage[]): TrialPage[] {
  const sorted = rungs.slice().sort((a, b) => a.load - b.load)
  if (sorted.length <= MOST) return sorted
  const bad = sorted.findIndex(trial => trial.rung?.verdict !== 'PASS')
  const middle = bad < 0 ? sorted.length - 1 : bad
  const from = Math.min(Math.max(1, middle - MOST / 2), sorted.length - (MOST - 1))
  return [sorted[0], ...sorted.slice(from, from + MOST - 1)]
}

function ofCell(context: Context): TrialPage[] {
  const cell = cellName(context.trial.cell)
  return rungsOf(context.page).filter(trial => trial.rung !== null && cellName(trial.cell) === cell)
}

const panel: Panel = {
  id: 'overlay', title: 'Rungs overlaid', of: 'machine', order: 10,
  // The trials of a duel are at one load: its own picture compares them.
  shows: context => context.page.run.kind === 'climb' && ofCell(context).length > 1,
  mount: context => new Overlay(context),
}

class Overlay implements Mounted {
  readonly element = h('div', { class: 'overlay' })
  private readonly choice = h('select', { 'aria-label': 'times to overlay' })
  private readonly label = h('label', { class: 'quiet' }, 'shown: ', this.choice)
  private readonly place = h('div', { class: 'charts' })
  private readonly waiting = h('p', { class: 'muted' }, 'Rungs load when you scroll here.')
  private readonly seen: IntersectionObserver
  private chart: Chart | null = null
  private times: Times = ORDER[0]
  private isWanted = false
  private drawnFor = ''

  constructor(private context: Context) {
    replace(this.element, this.label, this.place, this.waiting)
    this.choice.addEventListener('change', () => { this.times = this.choice.value as Times; this.draw() })
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
    const all = ofCell(this.context)
    const rungs = representative(all)
    if (this.isWanted) for (const rung of rungs) this.context.load(rung.seq)
    const read = rungs.filter(rung => Object.keys(rung.distributions).length > 0)
    this.waiting.hidden = read.length === rungs.length
    this.waiting.textContent = this.isWanted ? `${read.length} of ${rungs.length} rungs loaded.` : 'Rungs load when you scroll here.'
    const told = ORDER.filter(times => read.some(rung => curveOf(rung, times).nines.length > 1))
    if (!told.includes(this.times)) this.times = told[0] ?? ORDER[0]
    const key = JSON.stringify([this.times, told.length, read.map(rung => rung.seq)])
    if (key === this.drawnFor) return
    this.drawnFor = key
    replace(this.choice, ...told.map(times => h('option', { value: times, selected: times === this.times }, TIMES[times])))
    this.label.hidden = told.length < 2
    this.chart?.destroy()
    this.chart = null
    const drawn = read.filter(rung => curveOf(rung, this.times).nines.length > 1)
    const plot = overlaid(this.times, drawn, (at, count) => ({ label: `${number(drawn[at].load)} ${unitText(drawn[at].load_unit)}`, colour: inOrder(at, count) }))
    if (!plot) return
    const left = all.length - rungs.length
    this.chart = new Chart({
      title: `${TIMES[this.times]} by load`, unit: 'ns', axis: 'nines', log: this.times !== 'tick_interval', wide: true,
      note: left > 0 ? `The lowest rung and those around the first that did not pass; ${left} more are in the table.` : 'A curve ends where fewer than 100 samples lie beyond it.',
    }, plot)
    this.place.append(this.chart.element)
  }
}

export default panel
