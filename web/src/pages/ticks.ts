// Tick logs: files of the command line, followed while they grow, and files dropped here. No run is needed.

import { api, followTicks, Refused } from '../api'
import { Chart, lineOf, type Line } from '../chart'
import { seconds } from '../columns'
import type { TickFile } from '../data'
import { h, replace, table } from '../dom'
import { shown } from '../figures'
import { number } from '../format'
import { nth } from '../theme'
import { menu } from '../save'
import { bandOf, histogramOf } from '../ticklogs'
import type { Page } from './page'

export function ticksPage(first: TickFile[]): Page {
  const files = new Map<string, TickFile>(first.map(file => [file.name, file]))
  const hidden = new Set<string>()
  const said = h('p', { class: 'bad', role: 'status' })
  const body = h('div')
  const charts = new Map<string, Chart>()
  const picker = h('input', { type: 'file', multiple: true, hidden: true, 'aria-label': 'tick logs' })
  const drop = h('div', { class: 'drop', tabindex: 0, role: 'button', onclick: () => picker.click() },
    h('b', null, 'Drop tick logs here'), h('span', null, 'or choose files: JSON lines, up to 64 MB. They are shown but not stored.'))
  const element = h('main', { class: 'ticks', 'aria-label': 'Tick logs' }, h('div', { class: 'bar' }, h('h1', null, 'Tick logs'), menu()), drop, picker, said, body)
  const figures = h('div')
  const histogram = h('div', { class: 'charts' })
  const overTime = h('div', { class: 'charts' })
  body.append(figures, histogram, overTime)

  const show = (key: string, options: ConstructorParameters<typeof Chart>[0], plot: ConstructorParameters<typeof Chart>[1] | null, parent: HTMLElement) => {
    const known = charts.get(key)
    if (!plot) { known?.destroy(); charts.delete(key); return }
    if (known) { known.update(plot); return }
    const chart = new Chart(options, plot)
    charts.set(key, chart)
    parent.append(chart.element)
  }

  const draw = () => {
    const all = [...files.values()]
    const tones = new Map(all.map((file, at) => [file.name, nth(at)]))
    const seen = all.filter(file => !hidden.has(file.name))
    body.hidden = all.length === 0
    if (all.length === 0) return
    replace(figures, table(['file', 'games', 'on time', 'over', 'under', 'missed', 'late', 'p50', 'p90', 'p99', 'longest', 'mean'], all.map(file => {
      const box = h('input', { type: 'checkbox', 'aria-label': `show ${file.name}` })
      box.checked = !hidden.has(file.name)
      box.addEventListener('change', () => { if (box.checked) hidden.delete(file.name); else hidden.add(file.name); draw() })
      const swatch = h('i', { class: 'swatch' })
      swatch.style.setProperty('--swatch', `var(--${tones.get(file.name)})`)
      return [
        h('label', { class: 'nowrap' }, box, swatch, file.name, file.malformed > 0 ? h('small', { class: 'bad' }, ` ${number(file.malformed)} lines could not be read`) : null),
        ...[file.games ?? 0, file.on_time, file.over, file.under, file.missed].map(count => shown(count, 'count')), shown(file.late_share, 'share', 'no ticks were due'),
        ...(['p50', 'p90', 'p99', 'max', 'mean'] as const).map(key => shown(file.interval_ms[key], 'ms', 'too few ticks')),
      ]
    })), h('p', { class: 'note' }, 'late = (over + under + missed) / due. The mean is no indicator: in a loop that catches up it always equals the period.'))
    const { x, columns } = histogramOf(seen)
    const band = bandOf(seen)
    show('histogram', { title: 'Intervals, as a share of each log’s ticks', unit: 'share', axis: 'ms', wide: true, log: true }, x.length === 0 ? null : {
      x, lines: seen.map((file, at) => ({ label: file.name, colour: tones.get(file.name)!, values: columns[at], drawn: seen.length === 1 ? 'bars' as const : 'points' as const })),
      band: band ? { from: band[0] - 0.5, to: band[1] + 0.5, name: `on time: ${band[0]}–${band[1]} ms` } : null,
    }, histogram)
    const times = [...new Set(seen.flatMap(file => seconds(file.series)))].sort((a, b) => a - b)
    const late = seen.map((file): Line | null => {
      const own = lineOf(file.series, 'late_share', file.name, tones.get(file.name)!)
      if (!own) return null
      const at = new Map(seconds(file.series).map((t, row) => [t, own.values[row]]))
      return { ...own, values: times.map(t => at.get(t) ?? null) }
    }).filter((line): line is Line => line !== null)
    show('late', { title: 'Late share over time', unit: 'share', top: 0.05, wide: true, note: 'Time since each file’s first entry.' }, late.length > 0 ? { x: times, lines: late } : null, overTime)
  }

  const take = async (list: Iterable<File>) => {
    said.textContent = ''
    for (const file of list) {
      try {
        const read = await api.dropTicks(file.name, file)
        files.set(read.name, read)
      } catch (error) {
        said.textContent = `${file.name}: ${error instanceof Refused ? error.message : String(error)}`
      }
      draw()
    }
  }
  picker.addEventListener('change', () => void take(picker.files ?? []))
  drop.addEventListener('keydown', event => { if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); picker.click() } })
  const over = (event: DragEvent) => { event.preventDefault(); drop.classList.toggle('over', event.type === 'dragover') }
  const dropped = (event: DragEvent) => { over(event); void take(event.dataTransfer?.files ?? []) }
  // Anywhere on the page: a file that misses the field must not replace the page.
  addEventListener('dragover', over)
  addEventListener('dragleave', over)
  addEventListener('drop', dropped)
  const unfollow = followTicks(some => { for (const file of some) files.set(file.name, file); draw() })
  draw()
  return {
    element, title: 'Tick logs · Stepladder',
    destroy: () => {
      unfollow()
      removeEventListener('dragover', over)
      removeEventListener('dragleave', over)
      removeEventListener('drop', dropped)
      for (const chart of charts.values()) chart.destroy()
    },
  }
}
