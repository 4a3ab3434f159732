// The ladder: load against the figure that matters, rung by rung, with its bounds. SVG, so that each rung can be
// reached by keyboard, read aloud and printed sharply.

import type { MainFigure, Verdict } from './data'
import { svg } from './dom'
import { figureName } from './figures'
import { inUnit, number, NOT_STATED, onAxis } from './format'
import { mark, VERDICTS } from './verdict'

export interface Step {
  load: number
  figure: number | null
  verdict: Verdict | null
  /** of the trial, to open it */
  seq?: number
  live?: boolean
}

export interface Ladder { name: string; steps: Step[]; tone?: string }

export interface Drawing {
  ladders: Ladder[]
  figure: MainFigure
  loadUnit: string
  lower?: number | null
  upper?: number | null
  /** in which the capacity lies with 95 % */
  interval?: [number, number] | null
  /** loads that are still to be held: they have a place on the axis, so that it stays as it is while they come */
  planned?: number[]
  selected?: number | null
  onPick?: (seq: number) => void
  width: number
  height: number
  rem: number
}

interface Scale { to: (value: number) => number; ticks: number[]; isLog: boolean }

function linear(low: number, high: number, from: number, to: number, count: number): Scale {
  const span = high - low || 1
  const raw = span / count
  const power = 10 ** Math.floor(Math.log10(raw))
  const step = [1, 2, 2.5, 5, 10].map(times => times * power).find(size => size >= raw) ?? raw
  const ticks: number[] = []
  for (let tick = Math.ceil(low / step) * step; tick <= high + step * 1e-6; tick += step) ticks.push(Number(tick.toPrecision(12)))
  return { to: value => from + ((value - low) / span) * (to - from), ticks, isLog: false }
}

function logarithmic(low: number, high: number, from: number, to: number): Scale {
  const [a, b] = [Math.log10(low), Math.log10(high)]
  const ticks: number[] = []
  for (let power = Math.floor(a); power <= Math.ceil(b); power++) {
    for (const times of b - a < 2.2 ? [1, 2, 5] : [1]) {
      const tick = times * 10 ** power
      if (tick >= low * 0.999 && tick <= high * 1.001) ticks.push(tick)
    }
  }
  return { to: value => from + ((Math.log10(Math.max(value, low)) - a) / (b - a || 1)) * (to - from), ticks, isLog: true }
}

/** An axis over more than a decade and a half is logarithmic. */
const WIDE = 10 ** 1.5

/** Rungs far apart need a logarithmic axis; else the foot of the ladder is nought. */
function loads(all: number[], from: number, to: number): Scale {
  const low = Math.min(...all)
  const high = Math.max(...all)
  if (low === high) return linear(0, high * 2 || 1, from, to, 4)
  return low > 0 && high / low > WIDE ? logarithmic(low / 1.4, high * 1.25, from, to) : linear(0, high * 1.1 || 1, from, to, 8)
}

function figures(all: number[], figure: MainFigure, from: number, to: number): Scale {
  const most = Math.max(...all, 0)
  const bound = Number.isFinite(figure.bound) ? figure.bound : 0
  const positive = [...all, bound].filter(value => value > 0)
  const [least, highest] = [Math.min(...positive), Math.max(...positive)]
  if (highest / least > WIDE) return logarithmic(least / 1.5, figure.unit === 'share' ? Math.min(highest * 1.6, 1) : highest * 1.6, from, to)
  const head = Math.max(most, bound) * 1.22 || 1
  const ceiling = figure.unit === 'share' ? Math.min(Math.max(head, 0.02), Math.max(1.08, most * 1.08)) : head
  return linear(0, ceiling, from, to, 5)
}

export function draw(drawing: Drawing): SVGSVGElement {
  const { width, height, rem, figure } = drawing
  const steps = drawing.ladders.flatMap(ladder => ladder.steps)
  const known = steps.map(step => step.figure).filter((value): value is number => value !== null)
  const [left, right, top, bottom] = [rem * 4.4, width - rem * 1.2, rem * 1.9, height - rem * 3.3]
  const root = svg('svg', {
    class: 'ladder', viewBox: `0 0 ${width} ${height}`, width, height, role: 'group',
    'aria-label': `${figureName(figure.name)} by load`,
  })
  const x = loads(steps.map(step => step.load).concat(drawing.planned ?? [], [drawing.lower, drawing.upper].filter((load): load is number => typeof load === 'number')), left, right)
  const y = figures(known, figure, bottom, top)
  const small = rem * 0.75

  // Bounds of the capacity: what held, what did not, and the unknown between them.
  const { lower, upper } = drawing
  if (typeof lower === 'number' || typeof upper === 'number') {
    const from = typeof lower === 'number' ? x.to(lower) : left
    const to = typeof upper === 'number' ? x.to(upper) : right
    root.append(svg('rect', { class: 'capacity', x: from, y: top - rem * 1.1, width: Math.max(2, to - from), height: bottom - top + rem * 1.1 }))
    const label = typeof lower === 'number' && typeof upper === 'number' ? 'capacity' : typeof lower === 'number' ? 'at least' : 'less than'
    const roomy = to - from > rem * 4.5
    root.append(svg('text', {
      class: 'capacity-label', 'font-size': small, y: top - rem * 0.35,
      ...(roomy ? { x: (from + to) / 2, 'text-anchor': 'middle' } : { x: from - rem * 0.3, 'text-anchor': 'end' }),
    }, roomy ? `${label}${label === 'capacity' ? '' : ` ${number(lower ?? upper)}`}` : label))
  }

  for (const tick of y.ticks) {
    const at = y.to(tick)
    root.append(
      svg('line', { class: 'grid', x1: left, x2: right, y1: at, y2: at }),
      svg('text', { class: 'tick', 'font-size': small, x: left - rem * 0.5, y: at, 'text-anchor': 'end', 'dominant-baseline': 'middle' }, figure.unit === 'cores' ? inUnit('cores')(tick) : onAxis(figure.unit)(tick)))
  }
  axisOfLoads(root, x, steps, drawing, left, right, bottom, small)
  if (drawing.interval) {
    const [from, to] = drawing.interval.map(load => Math.min(right, Math.max(left, x.to(load))))
    root.append(svg('rect', { class: 'interval', x: from, y: bottom - rem * 0.2, width: Math.max(2, to - from), height: rem * 0.4 },
      svg('title', null, `the capacity lies between ${number(drawing.interval[0])} and ${number(drawing.interval[1])} with 95 %`)))
  }

  if (Number.isFinite(figure.bound)) {
    const at = y.to(figure.bound)
    const badAbove = figure.op.startsWith('<')
    const badBelow = figure.op.startsWith('>')
    if (badAbove && at > top) root.append(svg('rect', { class: 'forbidden', x: left, y: top, width: right - left, height: at - top }))
    if (badBelow && at < bottom) root.append(svg('rect', { class: 'forbidden', x: left, y: at, width: right - left, height: bottom - at }))
    const words = width < rem * 40 ? figure.text : `objective: ${figure.text}`
    // On the side where no rung stands behind the words.
    const reach = words.length * small * 0.56 + rem
    const isTaken = (from: number, to: number) => steps.some(step => step.figure !== null
      && Math.abs(y.to(step.figure) - (at - rem * 0.6)) < rem * 1.6 && x.to(step.load) > from && x.to(step.load) < to)
    const isRight = isTaken(left, left + reach) && !isTaken(right - reach, right)
    root.append(
      svg('line', { class: 'bound edge', x1: left, x2: right, y1: at, y2: at }),
      svg('text', {
        class: 'bound-label', 'font-size': small, y: at - rem * 0.4,
        ...(isRight ? { x: right - rem * 0.4, 'text-anchor': 'end' } : { x: left + rem * 0.4 }),
      }, words))
  }

  const labelled = drawing.ladders.length === 1 && steps.length <= Math.max(4, Math.floor((right - left) / (rem * 4.6)))
  const stems = svg('g')
  root.append(stems)
  for (const ladder of drawing.ladders) rungs(root, stems, ladder, drawing, x, y, bottom, top, labelled, small)
  return root
}

function axisOfLoads(
  root: SVGElement, x: Scale, steps: Step[], drawing: Drawing, left: number, right: number, bottom: number, small: number,
): void {
  const { rem } = drawing
  root.append(svg('line', { class: 'axis', x1: left, x2: right, y1: bottom, y2: bottom }))
  // Loads that were held are named first; where they stand too close, every second or third of them.
  let free = -Infinity
  const held = new Set(steps.map(step => step.load))
  for (const load of [...new Set([...held, ...drawing.planned ?? []])].sort((a, b) => a - b)) {
    const at = x.to(load)
    const text = number(load)
    const half = (text.length * small * 0.58) / 2
    root.append(svg('line', { class: 'axis', x1: at, x2: at, y1: bottom, y2: bottom + rem * 0.3 }))
    if (!held.has(load)) root.append(svg('circle', { class: 'planned', cx: at, cy: bottom, r: rem * 0.32 }, svg('title', null, `${text} ${drawing.loadUnit}: still to come`)))
    if (at - half < free + rem * 0.5) continue
    free = at + half
    root.append(svg('text', { class: held.has(load) ? 'tick strong' : 'tick', 'font-size': small, x: at, y: bottom + rem * 1.85, 'text-anchor': 'middle' }, text))
  }
  root.append(svg('text', { class: 'tick', 'font-size': small, x: (left + right) / 2, y: bottom + rem * 3, 'text-anchor': 'middle' },
    `load: ${drawing.loadUnit}${x.isLog ? ' (logarithmic)' : ''}`))
}

function rungs(
  root: SVGElement, stems: SVGElement, ladder: Ladder, drawing: Drawing, x: Scale, y: Scale, bottom: number, top: number, labelled: boolean, small: number,
): void {
  const { rem, figure } = drawing
  const show = inUnit(figure.unit)
  const tone = ladder.tone ? `var(--${ladder.tone})` : null
  const counted = ladder.steps.filter(step => step.figure !== null).sort((a, b) => a.load - b.load)
  const line = svg('polyline', {
    class: 'rail', points: counted.map(step => `${x.to(step.load).toFixed(1)},${y.to(step.figure!).toFixed(1)}`).join(' '),
  })
  if (tone) line.style.stroke = tone
  root.append(line)
  const r = ladder.steps.length > 40 ? rem * 0.34 : ladder.steps.length > 14 ? rem * 0.46 : rem * 0.6
  for (const step of ladder.steps) {
    const cx = x.to(step.load)
    const isKnown = step.figure !== null
    // What may not be stated has no height. Only a failure without a figure is known to be high: its percentile is infinite.
    const cy = isKnown ? y.to(step.figure!) : step.verdict === 'FAIL' ? top + rem * 0.4 : bottom
    const isSelected = step.seq !== undefined && step.seq === drawing.selected
    const word = step.live ? 'running' : step.verdict ? VERDICTS[step.verdict].word : 'not judged'
    const value = isKnown ? show(step.figure) : `${NOT_STATED} (not stated)`
    const text = `${ladder.name ? `${ladder.name}: ` : ''}${number(step.load)} ${drawing.loadUnit}, ${word}, ${figureName(figure.name)} ${value}${step.live && isKnown ? ' so far' : ''}`
    const canPick = step.seq !== undefined && drawing.onPick
    const group = svg('g', {
      class: `rung${isSelected ? ' selected' : ''}${canPick ? ' pick' : ''}`, transform: `translate(${cx.toFixed(1)} ${cy.toFixed(1)})`,
      ...(canPick ? {
        tabindex: 0, role: 'button', 'data-seq': step.seq,
        onclick: () => drawing.onPick!(step.seq!),
        onkeydown: (event: KeyboardEvent) => {
          if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); drawing.onPick!(step.seq!) }
        },
      } : {}),
    }, svg('title', null, text))
    if (isKnown) stems.append(svg('line', { class: `stem${isSelected ? ' selected' : ''}`, x1: cx, x2: cx, y1: cy + r, y2: bottom }))
    if (isSelected) group.append(svg('circle', { class: 'ring', r: r * 1.75 }))
    group.append(svg('circle', { class: 'reach', r: Math.max(r * 1.6, rem * 0.7) }), mark(step.live ? null : step.verdict, r))
    if (tone) {
      const halo = svg('circle', { class: 'halo', r: r * 1.4 })
      halo.style.stroke = tone
      group.prepend(halo)
    }
    if (labelled) {
      const nearTop = cy - r * 2 < top
      group.append(svg('text', {
        class: 'value', 'font-size': small, 'text-anchor': 'middle', y: nearTop ? r * 2 + small * 0.7 : -r * 1.9,
      }, isKnown ? show(step.figure) : step.live ? '…' : NOT_STATED))
    }
    root.append(group)
  }
}

/** The small ladder of a list. */
export function spark(steps: Step[], figure: MainFigure | null): SVGSVGElement {
  const [width, height, edge] = [132, 36, 6]
  const root = svg('svg', { class: 'spark', viewBox: `0 0 ${width} ${height}`, width, height, ...(steps.length > 0 ? { role: 'img', 'aria-label': sparkWords(steps) } : { 'aria-hidden': 'true' }) })
  if (steps.length === 0) return root
  const all = steps.map(step => step.load)
  const [low, high] = [Math.min(...all), Math.max(...all)]
  const wide = low > 0 && high / low > WIDE
  const place = (load: number) => wide ? Math.log(load / low) / Math.log(high / low || 2) : high > low ? (load - low) / (high - low) : 0.5
  const known = steps.map(step => step.figure).filter((value): value is number => value !== null)
  const bound = figure && Number.isFinite(figure.bound) ? figure.bound : 0
  const most = Math.max(...known, bound, Number.MIN_VALUE)
  const x = (load: number) => edge + place(load) * (width - 2 * edge)
  const y = (value: number | null) => value === null ? edge : height - edge - (value / most) * (height - 2 * edge)
  if (bound > 0) root.append(svg('line', { class: 'bound', x1: 0, x2: width, y1: y(bound), y2: y(bound) }))
  const line = steps.filter(step => step.figure !== null).sort((a, b) => a.load - b.load)
  root.append(svg('polyline', { class: 'rail', points: line.map(step => `${x(step.load).toFixed(1)},${y(step.figure).toFixed(1)}`).join(' ') }))
  const r = steps.length > 12 ? 2.6 : 4
  for (const step of steps) {
    root.append(svg('g', { transform: `translate(${x(step.load).toFixed(1)} ${y(step.figure).toFixed(1)})` }, mark(step.verdict, r)))
  }
  return root
}

function sparkWords(steps: Step[]): string {
  return steps.map(step => `${number(step.load)} ${step.verdict ? VERDICTS[step.verdict].word : 'running'}`).join(', ')
}
