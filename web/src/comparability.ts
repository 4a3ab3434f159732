// What a comparison of stored runs comes to, and what it is worth. Both are said before any figure is shown.

import type { MainFigure, RunPage } from './data'
import { figureName, valueOf } from './figures'
import { change, inUnit, number, unitText } from './format'
import { capacityWords, nameOf } from './runs'
import { rungsOf } from './state'

const OF_MACHINE = ['cpu_model', 'kernel', 'online_cores', 'allowed_cores', 'memory_bytes', 'clock_source', 'virtual_machine', 'architecture']

/** From the largest load that held, or that most likely does, to the smallest that does not: the capacity lies in between. */
function bounds({ climb, run }: RunPage): [number, number] | null {
  const capacity = climb?.capacity ?? run.capacity
  if (!capacity || capacity.lower_bound === null && capacity.upper_bound === null) return null
  return capacity.interval ?? [capacity.lower_bound ?? 0, capacity.upper_bound ?? Infinity]
}

/** What the runs come to in words, the oldest first: capacities that overlap tell nothing apart. */
export function concluded(pages: RunPage[], figure: MainFigure | undefined): string {
  const unknown = pages.filter(page => bounds(page) === null).map(page => nameOf(page.run))
  const units = new Set(pages.map(page => (page.climb?.capacity ?? page.run.capacity)?.unit).filter(unit => unit !== undefined))
  if (unknown.length > 0) return `The capacity of ${unknown.join(' and ')} is not known, so capacities cannot be compared.${atLoad(pages, figure)}`
  if (units.size > 1) return `One counts ${[...units].map(unitText).join(', the other ')}: their capacities cannot be compared.`
  const all = pages.map(page => ({ name: nameOf(page.run), words: capacityWords(page.climb?.capacity ?? page.run.capacity), of: bounds(page)! }))
  const most = all.find(one => all.every(other => other === one || one.of[0] >= other.of[1]))
  const told = all.map(one => `${one.name}: ${one.words}`).join('; ')
  const old = all[0]
  const words = !most ? `The capacities overlap, so they do not tell the runs apart (${told}).`
    : all.length > 2 ? `${most.name} holds more than all others (${told}).`
    : `${all[1].name} holds ${most === old ? 'fewer' : 'more'} ${unitText([...units][0])} than ${old.name} (${told}).`
  return words + atLoad(pages, figure)
}

/** What two runs differ by at the largest load that both held. */
function atLoad(pages: RunPage[], figure: MainFigure | undefined): string {
  const load = sharedLoads(pages).at(-1)
  if (load === undefined || !figure || pages.length !== 2) return ''
  const trials = pages.map(page => rungsOf(page).find(trial => trial.load === load && trial.rung)!)
  const [from, to] = pages.map((page, at) => valueOf(trials[at].rung, { ...figure, text: textOf(page, figure) }))
  if (from === null || to === null) return ''
  const show = inUnit(figure.unit)
  return ` At ${number(load)} ${unitText(trials[0].load_unit)}: ${figureName(figure.name)} ${show(from)}, then ${show(to)} (${change(from, to) || 'from nothing'}).`
}

/** An objective's text as its own run has it: that is what its rungs were judged by. */
export function textOf(page: RunPage, figure: MainFigure): string {
  return page.objectives.find(one => one.name === figure.name)?.text ?? figure.text
}

/** Of what ended a hold the part that was planned: seconds may be added to see undisturbed ones. */
function planned(endedBy: string | undefined): string | undefined {
  return endedBy?.replace(/ and .* more, .*$/, '')
}

/** Reasons to doubt a difference between these runs; the last always holds for stored runs. */
export function doubts(pages: RunPage[]): string[] {
  const differing = (of: (page: RunPage) => unknown) => new Set(pages.map(page => JSON.stringify(of(page) ?? null))).size > 1
  const out: string[] = []
  const machine = OF_MACHINE.filter(key => differing(page => page.climb?.run.environment[key]))
  if (machine.length > 0) out.push(`The machines differ (${machine.map(key => key.replaceAll('_', ' ')).join(', ')}): this compares machines as much as servers.`)
  const plan = ([
    ['subject', page => page.run.subject], ['scenario', page => page.run.scenario], ['arrivals', page => page.climb?.run.arrivals],
    ['objectives', page => page.objectives.map(objective => objective.text).sort()],
    ['hold length', page => [...new Set(rungsOf(page).map(trial => planned(trial.rung?.ended_by)).filter(Boolean))].sort()],
    ['stepladder version', page => page.climb?.run.stepladder],
  ] as [string, (page: RunPage) => unknown][]).filter(([, of]) => differing(of)).map(([name]) => name)
  if (plan.length > 0) out.push(`The plans differ (${plan.join(', ')}).`)
  const common = sharedLoads(pages)
  if (common.length === 0) out.push('The runs have no load in common: only the shapes of their ladders can be compared.')
  if (pages.some(page => page.climb?.run.shared_cores)) out.push('Server and generator shared cores and competed for CPU.')
  const weak = pages.filter(page => rungsOf(page).some(trial => trial.rung && trial.rung.verdict !== 'PASS' && trial.rung.verdict !== 'FAIL'))
  if (weak.length > 0) out.push(`Some rungs neither passed nor failed (${weak.map(page => nameOf(page.run)).join(', ')}).`)
  out.push('The runs were measured one after the other, not interleaved: on a noisy machine, two equal servers can differ by tens of percent.')
  return out
}

export function sharedLoads(pages: RunPage[]): number[] {
  const sets = pages.map(page => new Set(rungsOf(page).filter(trial => trial.rung).map(trial => trial.load)))
  return [...(sets[0] ?? [])].filter(load => sets.every(set => set.has(load))).sort((a, b) => a - b)
}
