import type { TrialPage } from '../data'
import { h, table } from '../dom'
import { failedOf, shown } from '../figures'
import { digits, number, unitText } from '../format'
import { rungsOf } from '../state'
import { nth } from '../theme'
import { icon, VERDICTS } from '../verdict'
import { redrawn, type Panel } from './panel'

interface Cell { name: string; trials: TrialPage[] }

export function cellName(cell: Record<string, string>): string {
  return Object.entries(cell).map(([axis, value]) => `${axis} ${value}`).join(' · ')
}

export function cellsOf(trials: TrialPage[]): Cell[] {
  const cells = new Map<string, Cell>()
  for (const trial of trials) {
    const name = cellName(trial.cell)
    const cell = cells.get(name) ?? { name, trials: [] }
    cell.trials.push(trial)
    cells.set(name, cell)
  }
  return [...cells.values()]
}

/** Cells of a sweep against each other: requesters down, cells across. */
const panel: Panel = {
  id: 'sweep', title: 'Cell by cell', of: 'run', order: 10,
  shows: ({ page }) => rungsOf(page).some(trial => Object.keys(trial.cell).length > 0),
  mount: context => redrawn(context, ({ page }) => rungsOf(page).filter(trial => trial.rung !== null).map(trial => trial.seq).join(), now =>
    cellsOf(rungsOf(now.page).filter(trial => trial.rung !== null)).map((cell, at) => cellTable(cell, at, now.pick)), 'tables'),
}

function cellTable(cell: Cell, at: number, pick: (seq: number) => void): HTMLElement {
  const base = cell.trials.reduce((least, trial) => trial.load < least.load ? trial : least)
  const hasFrames = cell.trials.some(trial => frameRate(trial) !== null)
  const unit = unitText(base.load_unit)
  const rows = cell.trials.slice().sort((a, b) => a.load - b.load).map(trial => {
    const rung = trial.rung!
    const speedUp = base.rung!.rate_per_s > 0 ? (rung.rate_per_s / base.rung!.rate_per_s) : null
    return [
      h('button', { class: 'link', type: 'button', 'data-value': trial.load, onclick: () => pick(trial.seq) }, number(trial.load)),
      h('span', { class: 'nowrap' }, icon(rung.verdict), ` ${VERDICTS[rung.verdict].word}`),
      h('span', { 'data-value': rung.rate_per_s, 'data-unit': 'per_s' }, `${rung.rate_per_s.toFixed(1)}/s`), speedUp === null ? '—' : h('span', { 'data-value': speedUp }, speedUp.toFixed(2)),
      ...(hasFrames ? [shown(frameRate(trial), 'per_s', 'the server does not report frames')] : []),
      shown(rung.response_ns?.p50, 'ns', 'too few answers'), shown(rung.response_ns?.p99, 'ns', 'too few answers for a p99'),
      shown(failedOf(rung), 'count'), rung.subject ? h('span', { 'data-value': rung.subject.cpu_cores, 'data-unit': 'cores' }, digits(rung.subject.cpu_cores)) : '—',
    ]
  })
  const swatch = h('i', { class: 'swatch' })
  swatch.style.setProperty('--swatch', `var(--${nth(at)})`)
  const heading = h('h4', null, swatch, cell.name || 'all')
  return h('div', { class: 'cell' }, heading, table([unit, 'verdict', 'answers', 'speed-up', ...(hasFrames ? ['frames'] : []), 'resp. p50', 'resp. p99', 'failed', 'server cores'], rows))
}

function frameRate(trial: TrialPage): number | null {
  return trial.rung?.frames?.rate_per_s ?? null
}
export default panel
