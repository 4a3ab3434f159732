// A comparison of client libraries: what limits its figures, its table, rates run after run. Live, from history and as a report.

import { follow } from '../api'
import { cellsOf, clientsOf, isOf, measured, runAfterRun, runningProcess, spread, taskName, tasksOf, type CurveColumn, type Task } from '../bench'
import { Chart, type ChartOptions, type Plot } from '../chart'
import type { BenchPage, CellFigures, Heap, ProfileFigures, RunPage } from '../data'
import { h, onWidth, replace, table } from '../dom'
import { shown } from '../figures'
import { bytes, number, perSecond, ratio, share } from '../format'
import { machineFacts } from '../machine'
import { aligned, curve } from '../percentile'
import { rates } from '../rates'
import { RunHead } from '../run-head'
import { nameOf } from '../runs'
import { menu } from '../save'
import { apply, type LiveEvent } from '../state'
import { nth, onTheme, rem, type Colour } from '../theme'
import { icon } from '../verdict'
import type { Page } from './page'

export function benchPage(page: RunPage, bench: BenchPage, options: { isReport: boolean; go: (hash: string) => void }): Page {
  return new BenchView(page, bench, options)
}

/** Charts of the seconds of a task, one line per client. A chart without data is not shown. */
const CURVES: { column: CurveColumn; chart: ChartOptions }[] = [
  { column: 'ops_per_s', chart: { title: 'Operations per second', unit: 'per_s', sync: 'bench', wide: true, note: 'The measured seconds of all runs of this task, in the order in which they ran.' } },
  { column: 'p99_ns', chart: { title: 'Latency p99 of each second', unit: 'ns', log: true, sync: 'bench' } },
  { column: 'loop_delay_max_ns', chart: { title: 'Event-loop or timer delay at worst', unit: 'ns', sync: 'bench', note: 'How much later than due a timer of the runtime ran. Not every runtime tells.' } },
  { column: 'gc_share', chart: { title: 'Time paused to collect garbage', unit: 'share', sync: 'bench' } },
]

class BenchView implements Page {
  readonly element = h('main', { class: 'run bench' })
  private readonly head: RunHead
  private readonly state = h('p', { class: 'reason' })
  private readonly progress = h('div', { class: 'progress', 'aria-live': 'off' })
  private readonly limits = h('section', { class: 'doubts', 'aria-label': 'Limits of these figures' })
  private readonly conclusions = h('ul', { class: 'conclusions' })
  private readonly figures = h('div', { class: 'figures' })
  private readonly choice = h('select', { 'aria-label': 'task that is drawn' })
  private readonly bars = h('div', { class: 'bars' })
  private readonly curves = h('div', { class: 'charts' })
  private readonly profiles = h('div')
  private readonly drawn = new Map<string, Chart>()
  private readonly unwatch: () => void
  private readonly unlisten: () => void
  private unfollow: (() => void) | null = null
  private frame = 0
  private width = 0
  private connected = true
  private isWhole = true
  private task: Task | null = null
  private isChosen = false

  constructor(private readonly page: RunPage, private bench: BenchPage, options: { isReport: boolean; go: (hash: string) => void }) {
    this.head = new RunHead(page, options)
    this.choice.addEventListener('change', () => {
      this.isChosen = true
      this.task = this.tasks()[Number(this.choice.value)] ?? null
      this.drawTask()
    })
    replace(this.element, this.head.element, this.state, this.progress, this.limits,
      h('section', { class: 'panel', id: 'panel-clients', 'aria-label': 'Clients' }, h('div', { class: 'bar' }, h('h2', null, 'Clients side by side'), menu()), this.conclusions, this.figures),
      h('section', { class: 'panel', id: 'panel-task', 'aria-label': 'One task' },
        h('div', { class: 'bar' }, h('h2', null, 'Run by run'), h('label', { class: 'quiet' }, 'task ', this.choice), menu()), this.bars, this.curves),
      this.profiles,
      h('section', { class: 'panel', id: 'panel-machine', 'aria-label': 'Machine' }, h('div', { class: 'bar' }, h('h3', null, 'Machine and command'), menu()),
        table(['fact', 'value'], machineFacts([['command', h('code', null, page.command)], ['seed', String(bench.seed)], ['stepladder', bench.stepladder]], bench.environment), { class: 'words' })))
    this.unwatch = onWidth(this.bars, width => { this.width = width; this.drawBars() })
    this.unlisten = onTheme(() => this.drawBars())
    this.drawAll()
    if (!options.isReport && page.run.state === 'running') {
      this.unfollow = follow(page.run.id, event => this.take(event), open => { this.connected = open; this.drawProgress() })
    }
  }

  get title(): string {
    return `${nameOf(this.page.run)} · Stepladder`
  }

  step(by: 1 | -1): void {
    const all = this.tasks()
    const at = all.findIndex(task => this.task !== null && isOf(task, this.task))
    this.task = all[Math.min(all.length - 1, Math.max(0, at + by))] ?? null
    this.isChosen = true
    this.drawTask()
  }

  destroy(): void {
    this.unfollow?.()
    this.unwatch()
    this.unlisten()
    cancelAnimationFrame(this.frame)
    for (const chart of this.drawn.values()) chart.destroy()
  }

  private take(event: LiveEvent): void {
    const changed = apply(this.page, event)
    if (!changed.page && !changed.second) return
    this.bench = this.page.bench ?? this.bench
    if (event.kind === 'run' && this.page.run.state !== 'running') { this.unfollow?.(); this.unfollow = null }
    this.isWhole ||= event.kind === 'run'
    if (this.frame === 0) this.frame = requestAnimationFrame(() => { this.frame = 0; if (this.isWhole) this.drawAll(); else { this.drawProgress(); this.drawTask() } })
  }

  private tasks(): Task[] {
    return tasksOf(this.bench.comparison, this.bench.processes)
  }

  private clients(): string[] {
    return clientsOf(this.bench.comparison, this.bench.processes)
  }

  private colour(client: string): Colour {
    return nth(this.clients().indexOf(client))
  }

  private drawAll(): void {
    this.isWhole = false
    const { comparison } = this.bench
    this.head.draw()
    this.drawState()
    this.drawProgress()
    this.limits.hidden = comparison.limits.length === 0
    replace(this.limits, h('h2', null, 'Limits of these figures'), h('ul', null, ...comparison.limits.map(one => h('li', null, one))))
    this.conclusions.hidden = comparison.conclusions.length === 0
    replace(this.conclusions, ...comparison.conclusions.map(one => h('li', null, one.text)))
    this.drawFigures()
    this.drawTask()
    replace(this.profiles, ...comparison.profiles.map(profile))
  }

  /** How it ended, where that was not by itself. */
  private drawState(): void {
    const { state } = this.page.run
    const done = `${measured(this.bench.processes)}${this.bench.planned === null ? '' : ` of ${this.bench.planned}`} runs were measured`
    const words = state === 'interrupted' ? `This comparison was interrupted: ${done}.`
      : state === 'broken' ? `This comparison could not go on: ${this.bench.reason ?? 'no reason given'}. ${done}.`
      : state === 'cut_off' ? `${this.bench.reason ?? 'Its process was killed'}. ${done}.` : ''
    this.state.hidden = words === ''
    this.state.textContent = words
  }

  private drawProgress(): void {
    const { run } = this.page
    this.progress.hidden = run.state !== 'running'
    if (run.state !== 'running') return
    const now = runningProcess(run.state, this.bench.processes)
    const done = measured(this.bench.processes)
    const { planned } = this.bench
    const rate = now?.curve.ops_per_s.at(-1)
    replace(this.progress, icon(null),
      now ? h('b', null, `${now.client}, ${taskName(now)}`) : h('span', null, this.bench.processes.length === 0 ? 'the first client is being started' : 'between two runs'),
      now ? h('span', { class: 'phase' }, now.profile !== null ? 'profiled' : now.curve.t.length === 0 ? 'warm-up' : 'measured') : null,
      planned !== null ? h('progress', { max: planned, value: done, 'aria-label': 'runs measured' }) : null,
      h('span', null, planned !== null ? `${number(done)} of ${number(planned)} runs` : `${number(done)} runs`),
      rate !== undefined ? h('span', null, perSecond(rate)) : null,
      this.connected ? null : h('span', { class: 'bad' }, 'connection lost; retrying'))
  }

  private drawFigures(): void {
    const { comparison } = this.bench
    if (comparison.cells.length === 0) {
      replace(this.figures, h('p', { class: 'empty' }, this.page.run.state === 'running' ? 'The first run has not ended.' : 'No client finished a run.'))
      return
    }
    const tasks = tasksOf(comparison, [])
    const grouped = (columns: [string, (cell: CellFigures) => Node | string][]) => {
      const rows = tasks.flatMap(task => [
        ...tasks.length > 1 ? [[h('b', null, taskName(task)), ...columns.map(() => '')]] : [],
        ...cellsOf(comparison, task).map(cell => [this.named(cell.client), ...columns.map(([, of]) => of(cell))]),
      ])
      return table(['client', ...columns.map(([name]) => name)], rows, { class: 'clients' })
    }
    const any = (of: (cell: CellFigures) => unknown) => comparison.cells.some(cell => of(cell) !== null && of(cell) !== undefined)
    const where = (of: (cell: CellFigures) => unknown, ...columns: [string, (cell: CellFigures) => Node | string][]) => any(of) ? columns : []
    const versions = [...new Set(comparison.cells.map(cell => cell.member_version).filter(Boolean))]
    const server = [comparison.target, versions.length > 0 ? `server version ${versions.join(', ')}` : null,
      comparison.total !== null ? `${number(comparison.total)} operations per run, warm-up included` : null].filter(Boolean).join(' · ')
    replace(this.figures,
      h('p', { class: 'facts-line' }, tasks.length === 1 ? `${taskName(tasks[0])} · ${server}` : server),
      grouped([
        ['operations', cell => shown(cell.ops_per_s, 'per_s')],
        ['spread', cell => shown(spread(cell), 'share', 'needs two runs')],
        ['against the first', against],
        ['p50', cell => shown(cell.latency_ns.p50, 'ns')], ['p90', cell => shown(cell.latency_ns.p90, 'ns')], ['p99', cell => shown(cell.latency_ns.p99, 'ns')],
        ['p99.9', cell => shown(cell.latency_ns.p999, 'ns')], ['longest', cell => shown(cell.latency_ns.max, 'ns')],
        ['CPU per op.', cell => shown(cell.cpu_ns_per_op, 'ns')], ['cores', cell => shown(cell.cpu_cores, 'number')],
        ['memory', cell => shown(cell.rss_peak_bytes, 'bytes')],
        ['server CPU per op.', cell => shown(cell.member_cpu_ns_per_op, 'ns', 'the server’s process is not known')],
        ['own cost', cell => shown(cell.own_overhead_ns_per_op, 'ns')],
      ]),
      h('h3', null, 'What became of the operations'),
      grouped([
        ['runs', cell => shown(cell.runs, 'count')], ['operations', cell => shown(cell.ops, 'count')], ['right', cell => shown(cell.hits, 'count')],
        ['nothing found', cell => shown(cell.misses, 'count')], ['wrong', cell => bad(cell.wrong)], ['failed', cell => bad(cell.failed)],
        ['unknown', cell => bad(cell.unknown)], ['stopped early', cell => cell.stopped ?? 'no'],
      ]),
      errors(comparison.cells),
      h('h3', null, 'Library and runtime'),
      grouped([
        ['library', cell => cell.library ?? '—'], ['runtime', cell => cell.runtime ?? '—'],
        ...where(cell => cell.fitness.loop_delay_p99_ns, ['timer delay p99', cell => told(cell.fitness.loop_delay_p99_ns, 'ns')], ['at worst', cell => told(cell.fitness.loop_delay_max_ns, 'ns')]),
        ...where(cell => cell.fitness.gc_share, ['GC', cell => told(cell.fitness.gc_share, 'share')], ['longest pause', cell => told(cell.fitness.gc_pause_max_ns, 'ns')], ['pauses', cell => told(cell.fitness.gc_count, 'count')]),
        ...where(cell => cell.fitness.heap_bytes, ['heap', cell => told(cell.fitness.heap_bytes, 'bytes')]),
      ]))
  }

  private named(client: string): Node {
    const swatch = h('i', { class: 'swatch' })
    swatch.style.setProperty('--swatch', `var(--${this.colour(client)})`)
    return h('span', { class: 'client', title: client }, swatch, client)
  }

  private drawTask(): void {
    const all = this.tasks()
    const now = runningProcess(this.page.run.state, this.bench.processes)
    if (!this.isChosen && now) this.task = all.find(task => isOf(task, now)) ?? null
    this.task ??= all[0] ?? null
    const at = all.findIndex(task => this.task !== null && isOf(task, this.task))
    replace(this.choice, ...all.map((task, index) => h('option', { value: index, selected: index === at }, taskName(task))))
    this.choice.value = String(at)
    this.choice.disabled = all.length < 2
    this.drawBars()
    const { task } = this
    if (!task) return
    const clients = this.clients()
    for (const { column, chart } of CURVES) {
      const { x, columns } = runAfterRun(this.bench.processes, task, clients, column)
      const lines = columns.map((values, index) => ({ label: clients[index], colour: nth(index), values })).filter(line => line.values.some(value => value !== null))
      this.put(column, chart, lines.length > 0 ? { x, lines } : null)
    }
    this.put('latencies', { title: 'Latency of all runs', unit: 'ns', axis: 'nines', log: true }, this.latencies(task))
  }

  private latencies(task: Task): Plot | null {
    const { comparison, latencies } = this.bench
    const there = comparison.cells.map((cell, at) => ({ cell, of: curve(latencies[at] ?? []) })).filter(({ cell, of }) => isOf(task, cell) && of.nines.length > 1)
    if (there.length === 0) return null
    const { x, columns } = aligned(there.map(one => one.of))
    return { x, lines: there.map(({ cell }, at) => ({ label: cell.client, colour: this.colour(cell.client), values: columns[at], drawn: 'steps' as const })) }
  }

  private put(name: string, options: ChartOptions, plot: Plot | null): void {
    const there = this.drawn.get(name)
    if (plot && there) there.update(plot)
    else if (plot) {
      const chart = new Chart(options, plot)
      this.drawn.set(name, chart)
      this.curves.append(chart.element)
    } else if (there) {
      there.destroy()
      this.drawn.delete(name)
    }
  }

  private drawBars(): void {
    const cells = this.task ? cellsOf(this.bench.comparison, this.task) : []
    if (this.width <= 0 || cells.length === 0) { this.bars.replaceChildren(); return }
    replace(this.bars, rates(cells, cells.map(cell => this.colour(cell.client)), this.width, rem()))
  }
}

/** `0.51 × rust (0.49–0.53)`: within blocks, with the 95 % interval. */
function against(cell: CellFigures): Node | string {
  const of = cell.ratio
  if (!of) return ''
  return h('span', { title: `geometric mean of the ratios within a block, 95 % interval; ${of.to} is the first client` }, `${ratio(of.mean)} × (${ratio(of.low)}–${ratio(of.high)})`)
}

function bad(count: number): Node | string {
  return count > 0 ? h('b', { class: 'bad' }, shown(count, 'count')) : '0'
}

function told(value: number | null, unit: string): Node {
  return shown(value, unit, 'this runtime does not tell')
}

function errors(cells: CellFigures[]): Node | null {
  const rows = cells.flatMap(cell => cell.errors.map(error => [cell.client, taskName(cell), error.cause, shown(error.count, 'count'), error.first]))
  return rows.length === 0 ? null : table(['client', 'task', 'cause', 'times', 'the first'], rows, { caption: 'Errors', class: 'words errors' })
}

function profile(one: ProfileFigures): HTMLElement {
  const what = one.subject === 'cpu' ? 'CPU time' : 'bytes allocated'
  return h('section', { class: 'panel', 'aria-label': `Profile of ${one.client}` },
    h('div', { class: 'bar' }, h('h3', null, `${one.client}, ${taskName({ ...one, total: 0 })}: ${what}`), menu()),
    h('p', { class: 'facts-line' }, Object.entries(one.shares).filter(([, of]) => of > 0).map(([kind, of]) => `${kind} ${share(of)}`).join(' · ')),
    table(['function', 'with what it calls outside user code', 'alone', 'belongs to'], one.top.map(function_ => [function_.function, shown(function_.share, 'share'), shown(function_.share_without_callees, 'share'), function_.kind]), { class: 'words' }),
    ...one.heap ? alive(one.heap) : [])
}

/** What was alive, by what holds most of it. */
function alive(heap: Heap): Node[] {
  const what = heap.by === 'type' ? 'type (without what its objects refer to)' : 'function that allocated them (estimated from samples)'
  return [
    h('h4', null, `Alive after the measured part: ${bytes(heap.bytes)} in ${number(heap.objects)} objects`),
    table([what, 'share', 'bytes', 'objects'], heap.types.map(type => [type.name, shown(heap.bytes > 0 ? type.bytes / heap.bytes : 0, 'share'), shown(type.bytes, 'bytes'), shown(type.objects, 'count')]), { class: 'words' }),
  ]
}
