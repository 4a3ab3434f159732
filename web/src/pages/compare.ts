// Runs over each other, old against new, and how much such a comparison is worth.

import { Chart } from '../chart'
import { overlaid, TIMES, type Times } from '../curves'
import type { MainFigure, Rung, RunPage, TrialPage } from '../data'
import { h, replace, table } from '../dom'
import { drawable, failedOf, figureName, percentile, shown, valueOf } from '../figures'
import { change, number, unitText, when } from '../format'
import { draw } from '../ladder'
import { rungsOf } from '../state'
import { nth, onTheme, rem } from '../theme'
import { badge, icon, VERDICTS } from '../verdict'
import type { Page } from './page'
import { nameOf } from '../runs'
import { capacityWords } from '../runs'
import { concluded, doubts, sharedLoads, textOf } from '../comparability'
import { menu } from '../save'

export function comparePage(all: RunPage[]): Page {
  // The oldest first: old against new.
  const pages = all.slice().sort((a, b) => a.run.started_unix_ms - b.run.started_unix_ms)
  const rungs = pages.flatMap(page => rungsOf(page).map(trial => trial.rung))
  const objectives = pages[0].objectives.filter(one => pages.every(page => page.objectives.some(other => other.name === one.name)))
  const figures = drawable(rungs, objectives.length > 0 ? objectives : pages[0].objectives)
  let figure: MainFigure | undefined = figures.find(one => rungs.some(rung => (valueOf(rung, one) ?? 0) !== 0)) ?? figures[0]
  const loads = sharedLoads(pages)
  let load = loads.at(-1) ?? null
  const charts: Chart[] = []
  const picture = h('div', { class: 'picture' })
  const overlay = h('div', { class: 'charts' })
  const choice = h('select', { 'aria-label': 'figure to compare' }, ...figures.map(one => h('option', { value: one.name, selected: one === figure }, figureName(one.name))))
  const rung = h('select', { 'aria-label': 'load to compare' }, ...loads.map(one => h('option', { value: one, selected: one === load }, number(one))))
  const units = new Set(pages.map(page => rungsOf(page)[0]?.load_unit).filter(unit => unit !== undefined).map(unitText))

  let width = 0
  const drawLadders = () => {
    if (!figure || width <= 0 || rungs.length === 0) return
    replace(picture, draw({
      ladders: pages.map((page, at) => ({
        name: nameOf(page.run), tone: nth(at),
        steps: rungsOf(page).filter(trial => trial.rung).map(trial => ({ load: trial.load, verdict: trial.rung!.verdict, figure: valueOf(trial.rung, { ...figure!, text: textOf(page, figure!) }) })),
      })),
      figure, loadUnit: [...units].join(' / '), width, height: Math.round(Math.min(24 * rem(), Math.max(15 * rem(), width * 0.36))), rem: rem(),
    }))
  }
  const drawOverlay = () => {
    for (const chart of charts.splice(0)) chart.destroy()
    if (load === null) return
    const trials = pages.map(page => rungsOf(page).find(trial => trial.load === load && trial.rung) ?? null)
    for (const times of Object.keys(TIMES) as Times[]) {
      const plot = overlaid(times, trials, at => ({ label: nameOf(pages[at].run), colour: nth(at) }))
      if (!plot) continue
      const chart = new Chart({ title: `${TIMES[times]} at ${number(load)}`, unit: 'ns', axis: 'nines', log: true, sync: 'compare' }, plot)
      charts.push(chart)
      overlay.append(chart.element)
    }
  }
  choice.addEventListener('change', () => { figure = figures.find(one => one.name === choice.value); drawLadders() })
  rung.addEventListener('change', () => { load = Number(rung.value); drawOverlay() })

  const observer = new ResizeObserver(() => { if (picture.clientWidth !== width) { width = Math.floor(picture.clientWidth); drawLadders() } })
  observer.observe(picture)
  const unlisten = onTheme(drawLadders)
  drawOverlay()

  const element = h('main', { class: 'compare' },
    h('h1', null, pages.length === 2 ? 'Old against new' : `${pages.length} runs compared`),
    h('p', { class: 'concluded' }, concluded(pages, figure)),
    h('section', { class: 'doubts', 'aria-label': 'Limits of this comparison' }, h('h2', null, 'Limits of this comparison'), h('ul', null, ...doubts(pages).map(one => h('li', null, one)))),
    h('ol', { class: 'compared' }, ...pages.map((page, at) => {
      const swatch = h('i', { class: 'swatch' })
      swatch.style.setProperty('--swatch', `var(--${nth(at)})`)
      return h('li', null, swatch, h('a', { href: `#/runs/${encodeURIComponent(page.run.id)}` }, nameOf(page.run)), badge(page.run.verdict, page.run.state),
        h('b', null, capacityWords(page.run.capacity)), h('small', null, `${page.run.subject} · ${when(page.run.started_unix_ms)} UTC`))
    })),
    h('section', { class: 'ladder-box', 'aria-label': 'Ladders overlaid' }, h('div', { class: 'bar' }, h('h2', null, 'Ladders overlaid'), h('label', { class: 'quiet' }, 'figure ', choice), menu()), picture),
    h('section', { 'aria-label': 'Figures side by side' }, h('div', { class: 'bar' }, h('h2', null, 'Figures side by side'), menu()), sideBySide(pages, loads)),
    load === null ? null : h('section', { 'aria-label': 'Distributions at one load' }, h('div', { class: 'bar' }, h('h2', null, 'Distributions at one load'), h('label', { class: 'quiet' }, 'load ', rung), menu()), overlay))
  return {
    element, title: `${pages.map(page => nameOf(page.run)).join(' and ')} · Stepladder`,
    destroy: () => { observer.disconnect(); unlisten(); charts.forEach(chart => chart.destroy()) },
  }
}

function sideBySide(pages: RunPage[], loads: number[]): HTMLElement {
  const rows: (string | Node)[][] = []
  type Figure = (rung: Rung) => number | null | undefined
  const figure = (trial: TrialPage | undefined, of: Figure) => trial?.rung ? of(trial.rung) : undefined
  const entries: [string, Figure, (rung: Rung) => Node | string][] = [
    ['late share', rung => rung.ticks?.late_share, rung => shown(rung.ticks?.late_share, 'share')],
    ['rate', rung => rung.rate_per_s, rung => shown(rung.rate_per_s, 'per_s')],
    ['response p50', rung => rung.response_ns?.p50, rung => percentile(rung.response_ns, 'p50')],
    ['response p99', rung => rung.response_ns?.p99, rung => percentile(rung.response_ns, 'p99')],
    ['delivery p99', rung => rung.deliveries?.latency_ns?.p99, rung => percentile(rung.deliveries?.latency_ns, 'p99')],
    ['failed and lost', failedOf, rung => shown(failedOf(rung), 'count')],
    ['server CPU', rung => rung.subject?.cpu_cores, rung => shown(rung.subject?.cpu_cores, 'cores')],
    ['server memory', rung => rung.subject?.rss_bytes, rung => shown(rung.subject?.rss_bytes, 'bytes')],
  ]
  for (const load of loads) {
    const trials = pages.map(page => rungsOf(page).find(trial => trial.load === load && trial.rung))
    const named = `${number(load)} ${trials[0] ? unitText(trials[0].load_unit) : ''}`
    rows.push([named, 'verdict', ...trials.map(trial => {
      const verdict = trial?.rung?.verdict ?? null
      return h('span', { class: 'nowrap' }, icon(verdict), ` ${verdict ? VERDICTS[verdict].word : ''}`)
    }), ''])
    for (const [name, value, show] of entries) {
      if (!trials.some(trial => typeof figure(trial, value) === 'number')) continue
      rows.push([h('span', { class: 'unseen' }, named), name, ...trials.map(trial => trial?.rung ? show(trial.rung) : '—'), change(figure(trials[0], value), figure(trials.at(-1), value))])
    }
  }
  if (rows.length === 0) return h('p', { class: 'empty' }, 'The runs have no load in common.')
  return table(['load', 'figure', ...pages.map(page => nameOf(page.run)), pages.length === 2 ? 'new : old' : 'last : first'], rows, { class: 'side-by-side' })
}
