// A chart: uPlot in a card with its title, unit, legend, and its numbers as a table behind it.
//
// Charts of one trial share a cursor and a zoom (drag; double click to undo). A gap is a gap: null is never joined or
// drawn as zero. More points than pixels are thinned (decimate.ts), anew for each zoom.

import uPlot from 'uplot'
import { logLabels, logRange, nineSplits, pad, roomFor, span, top, unitName } from './axes'
import { column as columnOf } from './columns'
import type { ColumnName, Series } from './data'
import { decimate, window as rowsWithin, type Column, type Way } from './decimate'
import { h, replace, table } from './dom'
import { plotCsv } from './csv'
import { clock, digits, inUnit, NOT_STATED, onAxis, quantile } from './format'
import type { Event } from './events'
import { drawAbove, drawBehind, framed } from './paint'
import { colour, onTheme, rem, type Colour } from './theme'

export interface Line {
  label: string
  colour: Colour
  values: Column
  dash?: boolean
  /** filled down to the axis */
  fill?: boolean
  /** on the right axis */
  right?: boolean
  drawn?: 'line' | 'steps' | 'bars' | 'points'
}

export interface Bound { at: number; name: string; right?: boolean }

export interface Plot {
  x: number[]
  lines: Line[]
  /** seconds shaded as the hold, and those cut off its beginning */
  hold?: [number, number] | null
  cut?: [number, number] | null
  events?: Event[]
  /** shaded stretch of the x axis, with its name */
  band?: { from: number; to: number; name: string } | null
  /** horizontal lines: bounds */
  bounds?: Bound[]
  /** the least top of the left axis, from the data */
  top?: number
}

export interface ChartOptions {
  title: string
  unit: string
  unitRight?: string
  /** time in s, ms, or nines of a percentile */
  axis?: 'time' | 'ms' | 'nines'
  log?: boolean
  stacked?: boolean
  /** charts with one key share cursor and zoom */
  sync?: string
  height?: number
  note?: string
  /** the least top of the left and right axis */
  top?: number
  topRight?: number
  wide?: boolean
}

/** Charts that were not drawn yet: the answers and the ladder are painted first, the charts one by one behind them. */
const waiting = new Set<Chart>()

function drawWaiting(enough: () => boolean): void {
  for (const chart of waiting) {
    if (enough()) break
    waiting.delete(chart)
    chart.build()
  }
  if (waiting.size > 0) soon()
}

function soon(): void {
  if ('requestIdleCallback' in globalThis) requestIdleCallback(left => drawWaiting(() => left.timeRemaining() < 4 && !left.didTimeout), { timeout: 100 })
  else setTimeout(() => drawWaiting(() => false))
}

addEventListener('beforeprint', () => drawWaiting(() => false))

/** Redraws every chart of the page at once, each to its last stroke; ms of each. For bench/viewer. */
export function redrawAll(): number[] {
  return [...charts].map(chart => chart.redraw())
}

const charts = new Set<Chart>()

/** Charts of a part of the page, in its order. */
export function chartsWithin(part: Element): Chart[] {
  return [...part.querySelectorAll('.chart')].flatMap(element => [...charts].filter(chart => chart.element === element))
}

/** Shows or hides the tables of all charts of the page. */
export function toggleTables(): void {
  const show = [...charts].some(chart => !chart.showsTable)
  for (const chart of charts) chart.showTable(show)
}

export class Chart {
  readonly element: HTMLElement
  showsTable = false
  private plot: Plot
  private drawn: uPlot | null = null
  private shape = ''
  private per = 1
  private zoom: [number, number] | null = null
  private settling = false
  private readonly box = h('div', { class: 'plot' })
  private readonly legend = h('div', { class: 'legend' })
  private readonly behind = h('div', { class: 'behind', hidden: true })
  private readonly button: HTMLButtonElement
  private readonly thinned = h('span', { class: 'thinned' })
  private values: HTMLElement[] = []
  private readonly under = h('span', { class: 'under' })
  private readonly what = h('span', { class: 'what' })
  private readonly observer: ResizeObserver
  private readonly unlisten: () => void
  private width = 0
  private isSeen = true
  private isStale = false
  /** draws that came to their end */
  private strokes = 0
  private readonly seen: IntersectionObserver

  constructor(private readonly options: ChartOptions, plot: Plot) {
    this.plot = plot
    this.button = h('button', {
      class: 'quiet', type: 'button', 'aria-expanded': 'false', title: 'Show the data of this chart (t: of all charts)',
      onclick: () => this.showTable(!this.showsTable),
    }, 'Table')
    const units = this.units()
    this.element = h('figure', { class: options.wide ? 'chart wide' : 'chart' },
      h('figcaption', null,
        h('span', { class: 'title' }, options.title), units.length ? h('span', { class: 'unit' }, units.join(' · ')) : null,
        this.thinned, this.button),
      this.legend, this.box, options.note ? h('p', { class: 'note' }, options.note) : null, this.behind)
    this.observer = new ResizeObserver(() => {
      const width = Math.floor(this.box.clientWidth)
      if (width > 0 && width !== this.width) {
        this.width = width
        if (this.drawn) this.draw()
        else {
          if (waiting.size === 0) soon()
          waiting.add(this)
        }
      }
    })
    this.observer.observe(this.box)
    // Seconds of a live run redraw what is on the screen; the rest catches up when it is scrolled to.
    this.seen = new IntersectionObserver(([entry]) => {
      this.isSeen = entry.isIntersecting
      if (this.isSeen && this.isStale) this.update(this.plot)
    }, { rootMargin: '200px' })
    this.seen.observe(this.box)
    this.unlisten = onTheme(() => this.build())
    charts.add(this)
  }

  update(plot: Plot): void {
    this.plot = plot
    if (!this.drawn) return
    this.isStale = !this.isSeen
    if (this.isStale) {
      if (this.showsTable) this.fillTable()
      return
    }
    if (this.shapeOf() !== this.shape) this.build()
    else this.draw()
    if (this.showsTable) this.fillTable()
  }

  destroy(): void {
    charts.delete(this)
    waiting.delete(this)
    this.observer.disconnect()
    this.seen.disconnect()
    this.unlisten()
    this.drawn?.destroy()
    this.drawn = null
    this.element.remove()
  }

  showTable(show: boolean): void {
    this.showsTable = show
    this.behind.hidden = !show
    this.button.setAttribute('aria-expanded', String(show))
    if (show) this.fillTable()
    else this.behind.replaceChildren()
  }

  get title(): string {
    return this.options.title
  }

  csv(): string {
    return plotCsv(this.options, this.plot)
  }

  /** As it is drawn, with title, unit and legend; null where it has no width. */
  picture(): HTMLCanvasElement | null {
    if (!this.drawn) this.build()
    if (!this.drawn) return null
    const { canvas } = this.drawn.ctx
    return framed([this.options.title, ...this.units()].join(' · '), this.plot.lines.map(line => ({ label: line.label, colour: colour(line.colour) })), canvas, this.width, this.height())
  }

  private units(): string[] {
    return [this.options.unit, this.options.unitRight].map(unit => unit ? unitName(unit) : '').filter(Boolean)
  }

  private shapeOf(): string {
    return this.plot.lines.map(line => `${line.label}\u0000${line.colour}`).join('\u0001')
  }

  private fillTable(): void {
    const { x, lines } = this.plot
    const axis = this.options.axis ?? 'time'
    const rows: string[][] = []
    const limit = 2000
    for (let row = 0; row < x.length && rows.length < limit; row++) {
      if (lines.every(line => line.values[row] === null || line.values[row] === undefined)) continue
      rows.push([this.showX(x[row]), ...lines.map(line => this.unitOf(line)(line.values[row]))])
    }
    const head = [axis === 'time' ? 'time' : axis === 'ms' ? 'interval' : 'percentile', ...lines.map(line => line.label)]
    const caption = rows.length === limit ? `${this.options.title}: the first ${limit} rows` : this.options.title
    replace(this.behind, rows.length > 0 ? table(head, rows, { caption }) : h('p', null, 'Nothing was measured.'))
  }

  private unitOf(line: Line): (value: number | null | undefined) => string {
    return inUnit(line.right ? this.options.unitRight ?? this.options.unit : this.options.unit)
  }

  private showX(x: number): string {
    const axis = this.options.axis ?? 'time'
    return axis === 'time' ? clock(x) : axis === 'ms' ? `${digits(x)} ms` : quantile(1 - 10 ** -x)
  }

  /** Thinned to the width, stacked if asked for. */
  private data(): uPlot.AlignedData {
    const { x, lines } = this.plot
    const way: Way = this.options.stacked ? 'mean' : 'extremes'
    const isBars = lines.some(line => line.drawn === 'bars')
    const [from, to] = this.zoom ? rowsWithin(x, this.zoom[0], this.zoom[1]) : [0, x.length]
    const points = isBars ? Infinity : Math.max(200, this.width * (way === 'mean' ? 1 : 2))
    const thin = decimate(x, lines.map(line => line.values), points, way, from, to)
    this.per = thin.per
    this.thinned.textContent = thin.per > 1
      ? way === 'mean' ? `mean of ${thin.per} s` : `lowest and highest of ${thin.per}` : ''
    let columns = thin.columns
    if (this.options.stacked) columns = stack(columns, lines)
    if (this.options.log) columns = columns.map((values, at) => lines[at].right ? values : values.map(positive))
    return [thin.x, ...columns] as uPlot.AlignedData
  }

  private draw(): void {
    const chart = this.drawn
    if (!chart) return
    this.settling = true
    chart.batch(() => {
      if (chart.width !== this.width) chart.setSize({ width: this.width, height: this.height() })
      chart.setData(this.data(), this.zoom === null)
      if (this.zoom) chart.setScale('x', { min: this.zoom[0], max: this.zoom[1] })
    })
    this.settling = false
    this.showValues(chart)
  }

  /** Thins, scales and strokes; ms. Throws when the strokes were put off, since the figure would be none. */
  redraw(): number {
    const [began, strokes] = [performance.now(), this.strokes]
    this.draw()
    if (this.drawn && this.strokes === strokes) throw new Error('the redraw was put off')
    return performance.now() - began
  }

  private height(): number {
    return this.options.height ?? Math.round(Math.min(15 * rem(), Math.max(10.5 * rem(), this.width * 0.34)))
  }

  build(): void {
    this.drawn?.destroy()
    this.drawn = null
    this.width = Math.floor(this.box.clientWidth)
    if (this.width <= 0) return
    this.shape = this.shapeOf()
    this.fillLegend()
    const { options, plot } = this
    const font = `${Math.round(rem() * 0.72)}px ${getComputedStyle(document.body).fontFamily}`
    const hasRight = plot.lines.some(line => line.right)
    const axis = options.axis ?? 'time'
    const y = (unit: string, right: boolean): uPlot.Axis => ({
      scale: right ? 'right' : 'y', side: right ? 1 : 3, font, stroke: colour('muted'), size: Math.round(rem() * 3.9), gap: 4,
      grid: { show: !right, stroke: colour('grid'), width: 1, ...(options.log ? { filter: logLabels } : {}) }, ticks: { show: false }, space: rem() * 1.9,
      // "cores" stands in the title: beside every number it would not fit.
      values: (_, splits) => splits.map(split => split === null || split === undefined ? '' : onAxis(unit)(split)),
      ...(options.log && !right ? { filter: logLabels } : {}),
    })
    const scales: uPlot.Scales = {
      x: { time: false, ...(axis === 'time' ? { range: (_: uPlot, low: number, high: number) => span(low, high) } : { range: (_: uPlot, low: number, high: number) => pad(low, high, axis) }) },
      y: options.log
        ? { distr: 3, range: (_, low, high) => logRange(low, high, plot.bounds?.map(bound => bound.at) ?? []) }
        : { range: (_, __, high) => [0, top(high, Math.max(options.top ?? 0, this.plot.top ?? 0), this.plot.bounds, false)] },
    }
    if (hasRight) scales.right = { range: (_, __, high) => [0, top(high, options.topRight, this.plot.bounds, true)] }
    const config: uPlot.Options = {
      width: this.width, height: this.height(), legend: { show: false }, scales,
      // Half of the widest label of the x axis stands beyond its end.
      padding: [8, hasRight ? 0 : Math.round(rem() * 1.5), 0, 0],
      cursor: {
        drag: { x: true, y: false, uni: 8 }, points: { size: 6, width: 1 },
        ...(options.sync ? { sync: { key: options.sync, setSeries: false } } : {}),
      },
      axes: [
        {
          font, stroke: colour('muted'), grid: { show: false }, ticks: { stroke: colour('line'), size: 4, width: 1 },
          size: Math.round(rem() * 1.7), gap: 3, space: rem() * 3.6,
          ...(axis === 'nines'
            ? { splits: nineSplits, filter: roomFor(rem() * 2.6), values: (_: uPlot, splits: (number | null)[]) => splits.map(nines => nines === null ? '' : quantile(1 - 10 ** -nines)) }
            : axis === 'ms' ? { values: (_: uPlot, splits: number[]) => splits.map(split => `${split} ms`) }
                            : { incrs: [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400],
                  values: (_: uPlot, splits: number[]) => splits.map(split => clock(split)) }),
        },
        y(options.unit, false),
        ...(hasRight ? [y(options.unitRight ?? options.unit, true)] : []),
      ],
      series: [{}, ...plot.lines.map(line => this.series(line))],
      hooks: {
        drawClear: [chart => drawBehind(chart, this.plot)],
        draw: [chart => { drawAbove(chart, this.plot); this.strokes++ }],
        setCursor: [chart => this.showValues(chart)],
        setScale: [(chart, key) => { if (key === 'x') this.zoomed(chart) }],
      },
    }
    // A stack is drawn from the top down: each area is painted over the one above it, so what is seen is each class's own.
    this.settling = true
    this.drawn = new uPlot(config, this.data(), this.box)
    this.settling = false
    this.showValues(this.drawn)
  }

  private series(line: Line): uPlot.Series {
    const stroke = colour(line.colour)
    const isBars = line.drawn === 'bars'
    const paths = isBars ? uPlot.paths.bars!({ size: [0.92, 40], align: 0 })
      : line.drawn === 'steps' ? uPlot.paths.stepped!({ align: 1 }) : undefined
    const isStack = this.options.stacked && !line.right
    return {
      label: line.label, scale: line.right ? 'right' : 'y', stroke, width: isBars ? 0 : isStack ? 0.5 : 1.6,
      ...(line.dash ? { dash: [5, 4] } : {}),
      ...(isBars || isStack ? { fill: stroke } : line.fill ? { fill: faint(stroke) } : {}),
      ...(isBars && this.options.log ? { fillTo: (chart: uPlot) => chart.scales.y.min ?? 1 } : {}),
      ...(paths ? { paths } : {}),
      points: line.drawn === 'points' ? { show: true, size: 5 } : { show: !isBars && !isStack, size: 4, filter: alone },
      spanGaps: false,
    }
  }

  private zoomed(chart: uPlot): void {
    if (this.settling) return
    const { min, max } = chart.scales.x
    const x = this.plot.x
    if (min === undefined || max === undefined || min === null || max === null || x.length === 0) return
    const isWhole = min <= x[0] && max >= x[x.length - 1]
    const was = this.zoom
    this.zoom = isWhole ? null : [min, max]
    // Thinned points are for the width that they were thinned for: a closer look asks for its own.
    if (this.per > 1 || was !== null) queueMicrotask(() => { if (this.drawn === chart) this.draw() })
  }

  private fillLegend(): void {
    this.values = this.plot.lines.map(() => h('b'))
    replace(this.legend, this.under, ...this.plot.lines.map((line, at) => {
      const swatch = h('i', { class: line.dash ? 'swatch dashed' : 'swatch' })
      swatch.style.setProperty('--swatch', `var(--${line.colour})`)
      return h('span', { class: 'entry' }, swatch, line.label, this.values[at])
    }), this.what)
  }

  private showValues(chart: uPlot): void {
    const row = chart.cursor.idx
    this.under.textContent = row === null || row === undefined ? '' : this.showX(chart.data[0][row])
    this.what.textContent = row === null || row === undefined ? '' : this.happened(chart.data[0][row])
    for (const [at, line] of this.plot.lines.entries()) {
      if (!this.values[at]) continue
      if (row === null || row === undefined) {
        this.values[at].textContent = ''
        continue
      }
      let value = chart.data[at + 1]?.[row] as number | null | undefined
      if (this.options.stacked && !line.right && typeof value === 'number') {
        const below = chart.data[at + 2]?.[row]
        if (at + 1 < this.plot.lines.length && !this.plot.lines[at + 1].right && typeof below === 'number') value -= below
      }
      const text = this.unitOf(line)(value)
      this.values[at].textContent = ` ${text === NOT_STATED ? NOT_STATED : text}`
    }
  }

  /** What happened in the second under the cursor. */
  private happened(x: number): string {
    const per = Math.max(1, this.per)
    return (this.plot.events ?? []).filter(event => event.at >= x - per / 2 && event.at < x + per / 2).slice(0, 3)
      .map(event => event.text ? `${event.kind}: ${event.text}` : event.kind).join(' · ')
  }

}

function stack(columns: Column[], lines: Line[]): Column[] {
  const out = columns.map(values => values.slice())
  for (let at = lines.length - 2; at >= 0; at--) {
    if (lines[at].right || lines[at + 1].right) continue
    for (let row = 0; row < out[at].length; row++) {
      const above = out[at][row]
      const below = out[at + 1][row]
      if (above === null && below === null) continue
      out[at][row] = (above ?? 0) + (below ?? 0)
    }
  }
  return out
}

function positive(value: number | null): number | null {
  return value !== null && value > 0 ? value : null
}

/** Values between two gaps: no line reaches them, so they are drawn as points. */
function alone(chart: uPlot, series: number, show: boolean): number[] {
  const values = chart.data[series]
  const out: number[] = []
  if (show === false) return out
  for (let at = 0; at < values.length; at++) {
    const isGap = (other: number | null | undefined) => other === null || other === undefined
    if (!isGap(values[at]) && isGap(values[at - 1]) && isGap(values[at + 1])) out.push(at)
  }
  return out
}

function faint(value: string): string {
  return value.startsWith('#') && value.length === 7 ? `${value}26` : value
}

/** A line of a trial's series; null where the column has no value. */
export function lineOf(series: Series, name: ColumnName, label: string, tone: Colour, more: Partial<Line> = {}): Line | null {
  const values = columnOf(series, name)
  return values ? { label, colour: tone, values, ...more } : null
}
