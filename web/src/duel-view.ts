// What a duel knows: both sides, each figure with its verdict and interval, and how the interval narrowed block by block.

import type { DuelAnswers, DuelFigure, DuelLoad, RunPage, TrialPage } from './data'
import { h, onWidth, replace, table } from './dom'
import { duelChart } from './duel-chart'
import { changeText, isRatio } from './duel'
import { figureName, shown } from './figures'
import { number, share, unitText } from './format'
import { rungsOf } from './state'
import { menu } from './save'
import { onTheme, rem } from './theme'

const TONES: Record<DuelFigure['verdict'], string> = { smaller: 'known', larger: 'known', no_difference_larger_than_delta: 'same', undecided: 'open' }
const GATES = { met: 'pass', not_met: 'fail', undecided: 'unsure' } as const

export class DuelView {
  readonly element = h('div', { class: 'duel' })
  private readonly picture = h('div', { class: 'picture' })
  private readonly load = h('select', { 'aria-label': 'load that is drawn' })
  private readonly figure = h('select', { 'aria-label': 'figure that is drawn' })
  private readonly behind = h('details', null)
  private readonly unwatch: () => void
  private readonly unlisten: () => void
  private duel: DuelAnswers | null = null
  private width = 0

  constructor() {
    for (const choice of [this.load, this.figure]) choice.addEventListener('change', () => this.draw())
    this.unwatch = onWidth(this.picture, width => { this.width = width; this.draw() })
    this.unlisten = onTheme(() => this.draw())
  }

  destroy(): void {
    this.unwatch()
    this.unlisten()
  }

  update(page: RunPage): void {
    const duel = this.duel = page.duel
    if (!duel) {
      replace(this.element, h('section', { class: 'panel' }, h('p', { class: 'empty' }, page.run.state === 'running' ? 'No block has been held yet.' : 'No block was held, so nothing can be compared.')))
      return
    }
    const unit = unitText(rungsOf(page)[0]?.load_unit ?? 'clients')
    const goesOn = page.run.state === 'running'
    const told = duel.loads.filter(load => load.blocks > 0 || load.dropped.length > 0)
    replace(this.element,
      h('section', { class: 'panel', id: 'panel-sides', 'aria-label': 'The two servers' },
        h('dl', { class: 'sides' }, ...([['A', duel.a], ['B', duel.b]] as const).flatMap(([side, text]) => [h('dt', null, side), h('dd', null, h('code', null, text))])),
        duel.differs.length > 0 ? table(['setting', 'A', 'B'], duel.differs.map(one => [one.what, plain(one.old), plain(one.new)]), { caption: 'Settings that differ', class: 'words' }) : null,
        h('p', { class: 'ended' }, goesOn ? 'The duel is still running; this is what is known so far.' : duel.ended)),
      ...told.map(load => this.known(load, duel, unit)),
      told.length === 0 ? null : h('section', { class: 'panel', id: 'panel-blocks', 'aria-label': 'Block by block' },
        h('div', { class: 'bar' }, h('h2', null, 'Block by block'), h('label', { class: 'quiet' }, 'load ', this.load), h('label', { class: 'quiet' }, 'figure ', this.figure), menu()),
        this.picture,
        h('p', { class: 'note' }, `B against A: a dot for each block, the line is the estimate and the shade its ${share(duel.level)} interval after each block, from the fourth on. The interval holds at whichever block the duel ended. Differences within the dashed lines count as equal.`),
        this.behind))
    this.choices(told, unit)
    this.draw()
  }

  private known(load: DuelLoad, duel: DuelAnswers, unit: string): HTMLElement {
    const blocks = (count: number) => `${number(count)} block${count === 1 ? '' : 's'}`
    return h('section', { class: 'panel', 'aria-label': `${number(load.load)} ${unit}` },
      h('div', { class: 'bar' }, h('h2', null, `${number(load.load)} ${unit}`, h('small', null, ` ${blocks(load.blocks)} of at most ${duel.blocks_most}${load.dropped.length > 0 ? `, ${load.dropped.length} dropped` : ''}`)), menu()),
      load.figures.length === 0 ? h('p', { class: 'empty' }, 'Nothing could be compared.') : table(
        ['figure', 'with B', `B against A (${share(duel.level)})`, 'A', 'B', 'known after', 'blocks'],
        load.figures.map(one => [
          figureName(one.figure), h('b', { class: `verdict ${TONES[one.verdict]}` }, one.in_words), one.change,
          shown(one.median_a, one.unit), shown(one.median_b, one.unit),
          one.known_after_blocks === null ? '' : blocks(one.known_after_blocks),
          one.blocks_unstated > 0 ? h('span', { title: one.unstated_because ?? '' }, `${one.blocks}, ${one.blocks_unstated} without it`) : String(one.blocks),
        ]), { class: 'found-by' }),
      load.gates.length > 0 ? h('p', { class: 'gates' }, ...load.gates.flatMap(gate => [h('span', { class: `badge ${GATES[gate.state]}` }, `${gate.gate}: ${gate.state.replace('_', ' ')}`), ' '])) : null,
      load.dropped.length > 0 ? h('ul', { class: 'dropped' }, ...load.dropped.map(why => h('li', null, `A block was dropped, ${why}`))) : null)
  }

  private choices(loads: DuelLoad[], unit: string): void {
    const load = this.load.value
    replace(this.load, ...loads.map(one => h('option', { value: one.load }, `${number(one.load)} ${unit}`)))
    this.load.value = loads.some(one => String(one.load) === load) ? load : String(loads.at(-1)?.load ?? '')
    this.load.disabled = loads.length < 2
  }

  private draw(): void {
    const load = this.duel?.loads.find(one => String(one.load) === this.load.value)
    const figures = load?.figures.filter(one => one.by_block.length > 0) ?? []
    const asked = this.figure.value
    // A reader wants to see what is known to differ first.
    const drawn = figures.find(one => one.figure === asked) ?? figures.find(one => TONES[one.verdict] === 'known') ?? figures[0]
    replace(this.figure, ...figures.map(one => h('option', { value: one.figure }, figureName(one.figure))))
    this.figure.disabled = figures.length < 2
    this.behind.hidden = !drawn
    if (!drawn || !this.duel) { replace(this.picture, h('p', { class: 'empty' }, 'No block states a figure.')); return }
    this.figure.value = drawn.figure
    if (this.width > 0) replace(this.picture, duelChart(drawn, this.duel.delta, this.width, rem()))
    const interval = (low: number | null, high: number | null) => low === null && high === null ? '' : `${changeText(drawn, low)} to ${changeText(drawn, high)}`
    replace(this.behind, h('summary', null, 'Table'), table(['block', 'A', 'B', isRatio(drawn) ? 'B / A' : 'B − A', 'estimate so far', 'interval'],
      drawn.by_block.map((block, at) => [String(at + 1), shown(block.a, drawn.unit), shown(block.b, drawn.unit), changed(drawn, block.change), changed(drawn, block.estimate), interval(block.low, block.high)])))
  }
}

function changed(figure: DuelFigure, value: number | null): HTMLElement {
  return h('span', { 'data-value': value, 'data-unit': isRatio(figure) ? 'number' : figure.unit }, changeText(figure, value))
}

/** `--ticker steady` */
function plain(value: unknown): string {
  if (Array.isArray(value)) return value.length > 0 ? value.map(plain).join(' ') : 'none'
  return value === null || value === undefined ? '—' : typeof value === 'object' ? JSON.stringify(value) : String(value)
}

/** Which side a trial of a duel held. */
export function sideOf(trial: TrialPage): string {
  return trial.cell.side ?? ''
}
