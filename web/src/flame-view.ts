// A flame graph on the page: from above, callers over what they call. Width is time or memory per operation at one load, colour the
// difference to the other one; signs, lines and figures say the same without colour.

import type { FunctionKind, KeptStacks, ProfileGraph } from './data'
import { h, onWidth, replace, svg } from './dom'
import { callersOf, fitted, framesOf, layout, neighbour, ownCost, search, type Box, type Frame, type Side } from './flame'
import { bytes, change, ns, number, share } from './format'
import { unseen, type ProfileWords } from './profile'
import { rem } from './theme'

const KINDS: Record<FunctionKind, string> = { user: 'own code', runtime: 'runtime or library', gc: 'garbage collection', kernel: 'kernel' }
const NAMES: Record<KeptStacks, string> = { cpu: 'CPU', waits: 'Waiting', alloc: 'Memory allocated' }
/** Narrower frames are not drawn, px. */
const LEAST_PX = 1
/** Callers that are named besides the outermost one. */
const CRUMBS = 3

export class FlameView {
  readonly element = h('div', { class: 'flame' })
  private readonly of = h('select')
  private readonly at = h('select')
  private readonly field = h('input', { type: 'search', placeholder: 'name of a function', autocomplete: 'off', spellcheck: 'false' })
  private readonly found = h('output', { class: 'muted' })
  private readonly caption = h('p', { class: 'caption' })
  private readonly crumbs = h('nav', { class: 'crumbs', 'aria-label': 'callers of the frame that is shown' })
  private readonly box = h('div', { class: 'frames' })
  private readonly detail = h('p', { class: 'detail' })
  private readonly notes = h('div')
  private readonly unwatch: () => void
  private graph: ProfileGraph
  private frames: Frame[] = []
  private boxes: Box[] = []
  private side: Side = 1
  private zoom = 0
  private before: number[] = []
  private focus = 0
  private width = 0

  constructor(private readonly graphs: ProfileGraph[], private readonly words: ProfileWords, first: number) {
    this.graph = graphs[first]
    replace(this.of, ...graphs.map((one, at) => h('option', { value: at, selected: at === first }, NAMES[one.of])))
    replace(this.at, h('option', { value: 1 }, `${words.loads[1]} (failed)`), h('option', { value: 0 }, `${words.loads[0]} (held)`))
    this.of.addEventListener('change', () => { this.graph = this.graphs[Number(this.of.value)]; this.begin() })
    this.at.addEventListener('change', () => { this.side = Number(this.at.value) as Side; this.draw() })
    this.field.addEventListener('input', () => this.draw())
    this.box.addEventListener('keydown', event => this.key(event))
    for (const name of ['click', 'focusin', 'mouseover'] as const) this.box.addEventListener(name, event => this.point(event))
    this.box.addEventListener('mouseleave', () => this.tell(this.focus))
    replace(this.element,
      h('div', { class: 'bar' },
        graphs.length > 1 ? h('label', { class: 'quiet' }, 'stacks of ', this.of) : null,
        h('label', { class: 'quiet' }, 'width at ', this.at), h('label', { class: 'quiet' }, 'search ', this.field), this.found),
      this.caption, this.crumbs, this.box, this.detail, this.notes)
    this.unwatch = onWidth(this.box, width => { this.width = width; this.draw() })
    this.begin()
  }

  destroy(): void { this.unwatch() }

  private begin(): void {
    this.frames = this.graph.graph ? framesOf(this.graph.graph) : []
    this.zoom = this.focus = 0
    this.before = []
    this.draw()
  }

  private draw(): void {
    const { graph, problem } = this.graph
    if (!graph) {
      replace(this.box, h('p', { class: 'bad' }, `The flame graph cannot be drawn: ${problem ?? 'its stacks cannot be read.'}`))
      replace(this.notes)
      for (const one of [this.caption, this.crumbs, this.detail]) replace(one)
      return
    }
    const { frames, side, words } = this
    const load = (of: number) => {
      const samples = this.graph.of === 'cpu' ? words.samples[of] : null
      return `${words.loads[of]}: ${this.amount(frames[0].cost[of])}${samples === null ? '' : ` (${number(samples)} sample${samples === 1 ? '' : 's'})`}`
    }
    const { found, share: part } = search(frames, this.field.value, side)
    replace(this.found, this.field.value.trim() === '' ? '' : `${found.size} frame${found.size === 1 ? '' : 's'}: ${share(part)} of ${this.all()}`)
    replace(this.caption, `${NAMES[this.graph.of]} per ${words.per} at ${load(side)}; at ${load(1 - side)}.`)
    this.drawCrumbs()
    this.drawFrames(found)
    this.tell(this.focus)
    this.drawNotes()
  }

  private drawCrumbs(): void {
    const callers = callersOf(this.frames, this.zoom)
    const shown = callers.filter((_, at) => at === 0 || at >= callers.length - CRUMBS)
    replace(this.crumbs, ...shown.flatMap((at, place) => [
      h('button', { class: 'link', type: 'button', title: this.frames[at].name, onclick: () => this.go(at) }, fitted(this.frames[at].name, 30)),
      place === 0 && shown.length < callers.length ? ' › … › ' : ' › ',
    ]), callers.length > 0 ? h('b', null, fitted(this.frames[this.zoom].name, 60)) : null)
    this.crumbs.hidden = callers.length === 0
  }

  private drawFrames(found: Set<number>): void {
    if (this.width <= 0) return
    const held = this.box.contains(document.activeElement)
    this.boxes = layout(this.frames, this.zoom, this.side, LEAST_PX / this.width)
    if (this.boxes.length === 0) {
      replace(this.box, h('p', { class: 'empty' }, `Nothing was seen here at ${this.words.loads[this.side]}.`))
      return
    }
    if (!this.boxes.some(box => box.frame === this.focus)) this.focus = this.zoom
    const row = Math.round(1.3 * rem())
    const height = row * (1 + Math.max(...this.boxes.map(box => box.row)))
    replace(this.box, svg('svg', {
      role: 'tree', 'aria-label': `Flame graph: ${this.caption.textContent}`, viewBox: `0 0 ${this.width} ${height}`, width: this.width, height,
    }, ...this.boxes.map(box => this.frame(box, row, found))))
    if (held) this.node(this.focus)?.focus({ preventScroll: true })
  }

  private frame({ frame: at, row, x, width }: Box, height: number, found: Set<number>): SVGElement {
    const frame = this.frames[at]
    const [left, top, wide] = [x * this.width, row * height, Math.max(0.5, width * this.width - 0.5)]
    const size = 0.72 * rem()
    const sign = frame.change === 0 ? '' : frame.change > 0 ? '▲ ' : '▼ '
    const chars = Math.floor((wide - 8) / (size * 0.61)) - sign.length
    const more = frame.change === 0 ? '' : ` ${this.difference(frame)}`
    const name = fitted(frame.name, chars)
    const label = name === frame.name && name.length + more.length <= chars ? name + more : name
    const names = ['frame', toneOf(frame.change), frame.kind ?? 'all', found.has(at) ? 'found' : found.size > 0 ? 'other' : '']
    return svg('g', { class: names.join(' ').trim(), role: 'treeitem', 'aria-level': row + 1, tabindex: at === this.focus ? 0 : -1, 'data-frame': at },
      svg('title', null, this.sentence(at)),
      svg('rect', { x: left, y: top, width: wide, height: height - 1 }),
      frame.kind === null || frame.kind === 'runtime' ? null : svg('path', { class: 'kind', d: `M${left} ${top + height - 2.2}h${wide}` }),
      label === '' ? null : svg('text', { x: left + 4, y: top + height * 0.66, 'font-size': size }, sign + label))
  }

  private amount(cost: number): string { return this.graph.of === 'alloc' ? bytes(cost) : ns(cost) }

  private all(): string { return this.graph.of === 'alloc' ? 'all bytes' : 'the time' }

  private difference(frame: Frame): string {
    const more = frame.cost[1] - frame.cost[0]
    return `${more < 0 ? '−' : '+'}${this.amount(Math.abs(more))}`
  }

  /** Everything about a frame but its name, for those who hear it, and for the line below the picture. */
  private figures(at: number): string {
    const frame = this.frames[at]
    const own = ownCost(this.frames, at)
    const load = (side: Side) => {
      const whole = this.frames[0].cost[side]
      const itself = at > 0 && own[side] > 0 && own[side] < frame.cost[side] ? `, ${this.amount(own[side])} of it in itself` : ''
      return `${this.amount(frame.cost[side])} per ${this.words.per} at ${this.words.loads[side]} (${share(whole > 0 ? frame.cost[side] / whole : 0)}${itself})`
    }
    const notes = [
      frame.kind ? KINDS[frame.kind] : '', frame.cost[0] > 0 && frame.cost[1] > 0 ? change(frame.cost[0], frame.cost[1]) : '',
      frame.change === 0 && at > 0 && frame.cost[0] !== frame.cost[1] ? this.whyNone(frame) : '',
    ].filter(note => note !== '')
    return ` ${this.difference(frame)}${notes.length > 0 ? ` (${notes.join(', ')})` : ''}: ${load(1)}; ${load(0)}`
  }

  /** Why a difference does not count. */
  private whyNone(frame: Frame): string {
    const [least] = this.graph.graph!.steps
    return Math.abs(frame.cost[1] - frame.cost[0]) < least * Math.max(...this.frames[0].cost) ? `a difference below ${share(least)} of ${this.all()}` : 'may be chance'
  }

  private sentence(at: number): string {
    return this.frames[at].name + this.figures(at)
  }

  private tell(at: number): void {
    const frame = this.frames[at]
    replace(this.detail, ...frame ? [h('bdi', null, h('code', null, frame.name)), this.figures(at)] : [])
  }

  private drawNotes(): void {
    const { steps, left_out, too_deep, least_share } = this.graph.graph!
    const tone = (step: number) => svg('svg', { class: 'tone', viewBox: '0 0 14 14', width: 14, height: 14, 'aria-hidden': 'true' }, svg('g', { class: `frame ${toneOf(step)}` }, svg('rect', { width: 14, height: 14 })))
    const line = (kind: FunctionKind) => svg('svg', { class: 'tone', viewBox: '0 0 22 14', width: 22, height: 14, 'aria-hidden': 'true' }, svg('g', { class: `frame ${kind}` }, svg('path', { class: 'kind', d: 'M0 11h22' })))
    const kinds = (['user', 'kernel', 'gc'] as const).filter(kind => this.frames.some(frame => frame.kind === kind))
    const [, failed] = this.words.loads
    const said = (parts: [number, number], what: string) => Math.max(...parts) > 0
      ? ` ${what}: ${share(parts[1])} of ${this.all()} at ${failed}, ${share(parts[0])} at ${this.words.loads[0]}.` : ''
    replace(this.notes,
      h('p', { class: 'marks' },
        h('span', null, tone(-3), tone(-2), tone(-1), ` ▼ less at ${failed}`), h('span', null, tone(0), ' as much, or no more than chance'),
        h('span', null, tone(1), tone(2), tone(3), ` ▲ more at ${failed}`), ...kinds.map(kind => h('span', null, line(kind), ` ${KINDS[kind]}`))),
      h('p', { class: 'note' }, `Shades from ${steps.map(step => share(step)).join(', ')} of ${this.all()} of a ${this.words.per} on.`,
        said(left_out, `Frames below ${share(least_share)} are left out`), said(too_deep, 'Too deep to be shown'),
        { cpu: ` ${unseen(this.words, this.frames[0].cost)}`, waits: ' Idle threads wait too; their time shrinks when there is more to do.', alloc: ' Bytes are estimated from samples.' }[this.graph.of],
        h('span', { class: 'keys-of-flame' }, ' Click or Enter: zoom in; Escape or Backspace: back; arrow keys: other frames.')))
  }

  private node(at: number): SVGElement | null {
    return this.box.querySelector<SVGElement>(`[data-frame="${at}"]`)
  }

  private point(event: Event): void {
    const node = (event.target as Element).closest('[data-frame]')
    if (!node) return
    const at = Number(node.getAttribute('data-frame'))
    if (event.type === 'click') this.go(at)
    else if (event.type === 'focusin') this.look(at)
    else this.tell(at)
  }

  /** The one frame that Tab reaches. */
  private look(at: number): void {
    this.node(this.focus)?.setAttribute('tabindex', '-1')
    this.focus = at
    this.node(at)?.setAttribute('tabindex', '0')
    this.tell(at)
  }

  private go(at: number): void {
    if (at === this.zoom) return
    this.before.push(this.zoom)
    this.show(at)
  }

  private show(at: number): void {
    const isInside = this.box.contains(document.activeElement) || this.crumbs.contains(document.activeElement)
    this.zoom = this.focus = at
    this.draw()
    if (isInside) this.node(at)?.focus({ preventScroll: true })
  }

  private key(event: KeyboardEvent): void {
    if (event.ctrlKey || event.metaKey || event.altKey) return
    let done = true
    if (event.key === 'Enter' || event.key === ' ') this.go(this.focus)
    else if (event.key === 'Escape' || event.key === 'Backspace') {
      const back = this.before.pop()
      if (back !== undefined) this.show(back)
      else done = false
    } else {
      const to = neighbour(this.frames, this.boxes, this.focus, event.key)
      if (to !== null) this.node(to)?.focus()
      done = to !== null || event.key.startsWith('Arrow')
    }
    if (done) { event.preventDefault(); event.stopPropagation() }
  }
}

function toneOf(step: number): string {
  return step === 0 ? 'same' : `${step > 0 ? 'more' : 'less'}${Math.abs(step)}`
}
