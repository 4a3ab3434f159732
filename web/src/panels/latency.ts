import { lineOf, type Line, type Plot } from '../chart'
import { has, seconds } from '../columns'
import type { TrialPage } from '../data'
import { charts, marks, type Panel } from './panel'

/** The highest second of both, so that the two charts have one scale and their gap can be seen. */
function highest(trial: TrialPage): number {
  let most = 0
  for (const name of ['response_p99_ns', 'response_p50_ns', 'response_mean_ns', 'service_p99_ns', 'service_p50_ns'] as const) {
    for (const value of trial.series[name] ?? []) if (value !== null && value > most) most = value
  }
  return most
}

function plot(trial: TrialPage, family: 'response' | 'service', bound: Plot['bounds']): Plot | null {
  const lines = [
    lineOf(trial.series, `${family}_p99_ns`, 'p99', 'c5'),
    family === 'response' ? lineOf(trial.series, 'response_mean_ns', 'mean', 'c8', { dash: true }) : null,
    lineOf(trial.series, `${family}_p50_ns`, 'p50', 'c1'),
  ].filter((line): line is Line => line !== null)
  return lines.length > 0 ? { x: seconds(trial.series), ...marks(trial), lines, bounds: bound, top: highest(trial) } : null
}

/** Response and service side by side: their gap is the queueing that a tool hides when it times from the send. */
const panel: Panel = {
  id: 'latency', title: 'What users feel', of: 'rung', order: 40,
  shows: ({ trial }) => has(trial.series, 'response_mean_ns', 'response_p50_ns', 'response_p99_ns', 'service_p50_ns', 'service_p99_ns'),
  mount: context => {
    const bounds = context.page.objectives
      .filter(objective => objective.name.startsWith('response.') && objective.op.startsWith('<'))
      .map(objective => ({ at: objective.bound, name: objective.text }))
    return charts(context, [
      {
        options: { title: 'Response time: answered − planned', unit: 'ns', sync: context.sync, note: 'Seconds with too few answers have no percentile.' },
        plot: ({ trial }) => plot(trial, 'response', bounds),
      },
      {
        options: { title: 'Service time: answered − sent', unit: 'ns', sync: context.sync, note: 'Same scale. The difference to response time is time spent waiting to be sent.' },
        plot: ({ trial }) => plot(trial, 'service', []),
      },
    ])
  },
}
export default panel
