// A panel: one thing that a run or a rung shows. One file each; whatever stands in this folder and has a default
// export is shown, in its order, as soon as its data are there. Nothing else names it.

import { Chart, type ChartOptions, type Plot } from '../chart'
import { holdSpan } from '../columns'
import type { ProfileGraph, RunPage, TrialPage } from '../data'
import { eventsOf } from '../events'

export interface Context {
  page: RunPage
  /** the rung that is open; panels of a rung are asked only when there is one */
  trial: TrialPage
  /** charts with one key share cursor and zoom */
  sync: string
  pick: (seq: number) => void
  /** asks for the seconds and distributions of a rung that came without; the panel is updated when they are here */
  load: (seq: number) => void
  /** flame graphs, null until they are here */
  profile: ProfileGraph[] | null
  /** asks for them, once */
  loadProfile: () => void
}

export interface Mounted {
  element: HTMLElement
  /** new data of the same rung or run; called at most once per frame */
  update(context: Context): void
  destroy(): void
}

export interface Panel {
  /** also the anchor of its section */
  id: string
  title: string
  /** those of a `run` stand between the answers and the open rung, those of its rungs together and its `machine` below both, those of its
   * first `failure` with what gave first */
  of: 'run' | 'rung' | 'machine' | 'failure'
  /** panels stand in this order, from 0 */
  order: number
  /** a panel without data is not shown */
  shows(context: Context): boolean
  mount(context: Context): Mounted
}

/** What all charts over the seconds of a trial have in common: the hold, its cut, its events. */
export function marks(trial: TrialPage): Pick<Plot, 'hold' | 'cut' | 'events'> {
  const hold = holdSpan(trial)
  return { hold, cut: hold && [hold[0] - trial.hold!.cut_s, hold[0]], events: eventsOf(trial) }
}

/** A panel that is a few charts: each entry makes its plot anew from the data, or null when it has none. */
export function charts(
  context: Context, entries: { options: ChartOptions; plot: (context: Context) => Plot | null }[], class_ = 'charts',
): Mounted {
  const element = document.createElement('div')
  element.className = class_
  const drawn: (Chart | null)[] = entries.map(() => null)
  const update = (now: Context) => {
    entries.forEach((entry, at) => {
      const plot = entry.plot(now)
      const chart = drawn[at]
      if (!plot) {
        chart?.destroy()
        drawn[at] = null
      } else if (chart) {
        chart.update(plot)
      } else {
        const made = new Chart(entry.options, plot)
        drawn[at] = made
        const after = drawn.slice(at + 1).find(other => other !== null)
        element.insertBefore(made.element, after?.element ?? null)
      }
    })
  }
  update(context)
  return { element, update, destroy: () => drawn.forEach(chart => chart?.destroy()) }
}

/** A panel that is made anew whenever `key` changes: tables and words. */
export function redrawn(context: Context, key: (context: Context) => unknown, make: (context: Context) => Node[], class_ = ''): Mounted {
  const element = document.createElement('div')
  element.className = class_
  let drawnFor: unknown = Symbol('never')
  const update = (now: Context) => {
    const wanted = key(now)
    if (wanted === drawnFor) return
    drawnFor = wanted
    element.replaceChildren(...make(now))
  }
  update(context)
  return { element, update, destroy: () => {} }
}
