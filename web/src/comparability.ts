// What a comparison of stored runs is worth. It is said before any figure is shown.

import type { RunPage } from './data'
import { nameOf } from './runs'
import { rungsOf } from './state'

const OF_MACHINE = ['cpu_model', 'kernel', 'online_cores', 'allowed_cores', 'memory_bytes', 'clock_source', 'virtual_machine', 'architecture']

/** Reasons to doubt a difference between these runs; the last always holds for stored runs. */
export function doubts(pages: RunPage[]): string[] {
  const differing = (of: (page: RunPage) => unknown) => new Set(pages.map(page => JSON.stringify(of(page) ?? null))).size > 1
  const out: string[] = []
  const machine = OF_MACHINE.filter(key => differing(page => page.climb?.run.environment[key]))
  if (machine.length > 0) out.push(`The machines differ (${machine.map(key => key.replaceAll('_', ' ')).join(', ')}): this compares machines as much as servers.`)
  const plan = ([
    ['subject', page => page.run.subject], ['scenario', page => page.run.scenario], ['arrivals', page => page.climb?.run.arrivals],
    ['objectives', page => page.objectives.map(objective => objective.text).sort()],
    ['hold length', page => [...new Set(rungsOf(page).map(trial => trial.rung?.ended_by).filter(Boolean))].sort()],
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
