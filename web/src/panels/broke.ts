import type { ChartOptions, Line } from '../chart'
import { AROUND_S, broke, failedTrial } from '../broke'
import { holdSpan } from '../columns'
import { h, replace } from '../dom'
import { duration, inUnit, number, unitText } from '../format'
import { charts, marks, redrawn, type Context, type Panel } from './panel'

/** The seconds of the first rung that failed, around the moment at which it broke. */
const panel: Panel = {
  id: 'broke', title: 'When it broke', of: 'failure', order: 10,
  shows: ({ page }) => failedTrial(page) !== null,
  mount: context => {
    const words = redrawn(context, ({ page }) => `${failedTrial(page)?.seq} ${failedTrial(page)?.series.t?.length}`, ({ page }) => [h('p', { class: 'words' }, sentence(page))])
    // What is drawn is known once the seconds are here, and with it the units of the axes.
    let drawn: ReturnType<typeof charts> | null = null
    let drawnFor = 0
    const place = h('div')
    const update = (now: Context) => {
      words.update(now)
      now.load(failedTrial(now.page)!.seq)
      const found = broke(now.page)
      if (!found?.figure) return
      // A smaller load may fail later.
      if (drawnFor !== found.trial.seq) { drawn?.destroy(); drawn = null }
      drawnFor = found.trial.seq
      if (drawn) { drawn.update(now); return }
      const options: ChartOptions = {
        title: `${found.figure.label[0].toUpperCase()}${found.figure.label.slice(1)} at ${number(found.trial.load)} ${unitText(found.trial.load_unit)}`,
        unit: found.figure.unit, unitRight: found.cause?.unit, wide: true,
      }
      drawn = charts(now, [{ options, plot: ({ page }) => plotOf(page) }])
      replace(place, drawn.element)
    }
    update(context)
    return { element: h('div', null, words.element, place), update, destroy: () => drawn?.destroy() }
  },
}

function plotOf(page: Context['page']) {
  const found = broke(page)
  if (!found?.figure) return null
  const { figure, cause, at, x, trial } = found
  // A limit is drawn on the scale of its own figure.
  const objective = found.objective?.unit === figure.unit ? found.objective : null
  const lines: Line[] = [{ label: figure.label, colour: 'c5', values: figure.values }]
  if (cause && cause.label !== figure.label) lines.push({ label: cause.label, colour: 'c2', values: cause.values, right: true, dash: true })
  const { events = [], ...rest } = marks(trial)
  return {
    x, lines, ...rest, bounds: objective ? [{ at: objective.bound, name: `objective: ${objective.text}` }] : [],
    events: events.concat(at === null ? [] : [{ at, kind: 'broke here', text: '', isBad: false }]),
  }
}

/** When, by how much, and what is shown. */
function sentence(page: Context['page']): string {
  const { trial, at, row, x, figure, isInstead, objective } = broke(page)!
  if ((trial.series.t?.length ?? 0) === 0) return 'Its seconds are being loaded.'
  if (!figure) return 'What gave first is counted over the whole hold; no second tells it alone.'
  if (at === null) return `No single second tells when: what failed is a figure of the whole hold.${isInstead ? ` The chart shows the ${figure.label} instead.` : ''}`
  const span = holdSpan(trial)
  const after = at - (span?.[0] ?? 0)
  const when = after < 1 ? 'In the first second of the hold' : `${duration(after)} into the hold`
  const value = row < 0 ? null : figure.values[row]
  const limit = objective ? ` (objective: ${objective.text})` : ''
  return `${when}${typeof value === 'number' && objective ? `: ${figure.label} ${inUnit(figure.unit)(value)} in that second${limit}` : ' the server was gone'}.${x.length < trial.series.t!.length ? ` The chart shows the ${AROUND_S} s before and after it.` : ''}`
}

export default panel
