// What a page knows of a run, and how each live event changes it. Pure: no network, no document.
//
// Events may come twice (a reconnect goes on behind the last id, and late values are sent again), in any order within
// a second. Whatever comes twice leaves the same state.

import { putSecond } from './columns'
import type { ProcessPage, RunPage, Second, TrialPage } from './data'

export type LiveEvent =
  | { kind: 'second'; data: Second }
  | { kind: 'trial'; data: TrialPage }
  | { kind: 'rung'; data: TrialPage }
  | { kind: 'run'; data: RunPage }
  | { kind: 'process'; data: ProcessPage }
  | { kind: 'ping' }

/** A rung may stand in `climb` alone. */
export function normalize(page: RunPage): RunPage {
  for (const trial of page.trials) normalizeTrial(trial, page)
  return page
}

function normalizeTrial(trial: TrialPage, page: RunPage): TrialPage {
  trial.rung ??= page.climb?.rungs.find(rung => rung.seq === trial.seq) ?? null
  return trial
}

/** What has to be drawn anew. */
export interface Changed { page: boolean; trial: number | null; second: boolean }

const NOTHING: Changed = { page: false, trial: null, second: false }

/** Applies an event to `page`, in place: a second is appended to columns of an hour without copying them. */
export function apply(page: RunPage, event: LiveEvent): Changed {
  switch (event.kind) {
    case 'second': {
      const trial = page.trials.find(known => known.seq === event.data.seq)
      // A second of a trial that nobody announced is dropped: its `trial` event carries it again.
      if (!trial) return NOTHING
      putSecond(trial.series, event.data.t, event.data.values)
      return { page: false, trial: event.data.seq, second: true }
    }
    case 'trial':
    case 'rung': {
      put(page, event.data)
      return { page: true, trial: event.data.seq, second: false }
    }
    case 'run': {
      const known = page.trials
      Object.assign(page, normalize(event.data))
      // A page may come without the seconds that were seen already.
      page.trials = page.trials.map(trial => withSeconds(trial, known.find(old => old.seq === trial.seq)))
      return { page: true, trial: null, second: false }
    }
    case 'process': {
      const all = page.bench?.processes
      if (!all) return NOTHING
      const at = all.findIndex(known => known.number === event.data.number)
      if (at < 0) all.push(event.data)
      else all[at] = event.data
      return { page: at < 0, trial: null, second: true }
    }
    case 'ping':
      return NOTHING
  }
}

function put(page: RunPage, trial: TrialPage): void {
  trial = normalizeTrial(trial, page)
  const at = page.trials.findIndex(known => known.seq === trial.seq)
  if (at < 0) {
    page.trials.push(trial)
    page.trials.sort((a, b) => a.seq - b.seq)
  } else {
    const known = page.trials[at]
    // Neither a mark on the time axis nor an answer without its rung takes a verdict back.
    page.trials[at] = withSeconds({ ...trial, rung: trial.rung ?? known.rung }, known)
  }
}

function withSeconds(trial: TrialPage, known: TrialPage | undefined): TrialPage {
  const count = (of: TrialPage) => of.series.t?.length ?? 0
  if (!known || count(known) <= count(trial)) return trial
  const { series, slowest, distributions } = known
  return { ...trial, series, ...(Object.keys(trial.distributions).length === 0 ? { distributions, slowest } : {}) }
}

/** Trials that a ladder is made of: calibrations are none of its rungs. */
export function rungsOf(page: RunPage): TrialPage[] {
  return page.trials.filter(trial => trial.purpose === 'rung')
}

/** The trial that is being held, if the run goes on. */
export function running(page: RunPage): TrialPage | null {
  if (page.run.state !== 'running') return null
  const last = page.trials.at(-1)
  return last && last.rung === null && !last.events.some(event => event.kind === 'end') ? last : null
}
