// A run: how many, the ladder it is read from, what gave first, whether it can be trusted; then its rungs, and the one that is open. The same page live, from history and as a report.

import { canITrustIt, howMany, whyNotMore } from '../answers'
import { api, follow, Refused } from '../api'
import { phase, seconds } from '../columns'
import type { MainFigure, ProfileGraph, Rung, RunPage, TrialPage } from '../data'
import { h, onWidth, replace, table } from '../dom'
import { drawable, failedOf, figureName, percentile, shown, soFar, valueOf } from '../figures'
import { clock, duration, inUnit, number, unitText } from '../format'
import { draw, type Step } from '../ladder'
import { DuelView, sideOf } from '../duel-view'
import { Host } from '../panels/host'
import type { Context } from '../panels/panel'
import { cellName } from '../panels/sweep'
import { RunHead } from '../run-head'
import { nameOf } from '../runs'
import { menu } from '../save'
import { apply, running, rungsOf, type LiveEvent } from '../state'
import { nth, onTheme, rem } from '../theme'
import { badge, icon, VERDICTS } from '../verdict'
import type { Page } from './page'

export function runPage(page: RunPage, options: { isReport: boolean; seq: number | null; go: (hash: string) => void }): Page {
  return new RunView(page, options)
}

/** The objectives' figures; a run without any is drawn by its rate. */
function figuresOf(page: RunPage): MainFigure[] {
  const objectives = page.objectives.length > 0 ? page.objectives : page.run.main ? [page.run.main] : []
  return drawable(rungsOf(page).map(trial => trial.rung), objectives)
}

class RunView implements Page {
  readonly element = h('main', { class: 'run' })
  private readonly head: RunHead
  private readonly howMany = h('div')
  private readonly whyNotMore = h('div')
  private readonly trust = h('div')
  private readonly openMarks = new Set<string>()
  /** of a duel: in place of the answers and the ladder, which are of one server */
  private readonly duel: DuelView | null
  private readonly progress = h('div', { class: 'progress', 'aria-live': 'off' })
  private readonly choice = h('select', { 'aria-label': 'figure shown in the ladder' })
  private readonly picture = h('div', { class: 'picture' })
  private readonly rungTable = h('div')
  private readonly rungHead = h('div', { class: 'rung-head' })
  private readonly rungBox = h('section', { class: 'rung-view', id: 'rung', 'aria-label': 'The selected rung' })
  private readonly ofFailure = new Host('failure')
  private readonly ofRun = new Host('run')
  private readonly ofMachine = new Host('machine')
  private ofRung = new Host('rung')
  private open: number | null
  private isFollowing: boolean
  private figure = ''
  private unfollow: (() => void) | null = null
  private frame = 0
  private width = 0
  private dirty = { page: true, second: true }
  private connected = true
  private readonly fetched = new Set<number>()
  private profile: ProfileGraph[] | null
  private isProfileAsked = false
  private readonly unwatch: () => void
  private readonly unlisten: () => void
  private readonly ticking: number

  constructor(private readonly page: RunPage, private readonly options: { isReport: boolean; seq: number | null; go: (hash: string) => void }) {
    this.head = new RunHead(page, options)
    this.profile = page.profile
    this.duel = page.run.kind === 'duel' ? new DuelView() : null
    this.open = options.seq ?? this.first()
    this.isFollowing = options.seq === null && page.run.state === 'running'
    this.choice.addEventListener('change', () => { this.figure = this.choice.value; this.drawLadder() })
    const server = this.duel ? [] : [
      this.howMany,
      h('section', { class: 'ladder-box', id: 'ladder', 'aria-label': 'Where the capacity is read' },
        h('div', { class: 'bar' }, h('h2', null, 'Load against the objective'), h('label', { class: 'quiet' }, 'figure ', this.choice), menu()),
        this.picture, this.legend()),
      h('div', { class: 'pair' }, h('div', null, this.whyNotMore, this.ofFailure.element), this.trust),
    ]
    replace(this.element, this.head.element, this.progress, this.duel?.element, ...server,
      h('section', { class: 'ladder-box', id: 'rungs', 'aria-label': this.duel ? 'The trials' : 'The rungs' },
        h('div', { class: 'bar' }, h('h2', null, this.duel ? 'Trials' : 'Rungs'), menu()), this.rungTable),
      this.duel ? null : this.ofRun.element, this.rungBox, this.ofMachine.element)
    this.unwatch = onWidth(this.picture, width => { this.width = width; this.drawLadder() })
    this.unlisten = onTheme(() => this.drawLadder())
    this.ticking = window.setInterval(() => { if (this.page.run.state === 'running') this.drawProgress() }, 1000)
    this.drawAll()
    if (!options.isReport && page.run.state === 'running') {
      this.unfollow = follow(page.run.id, event => this.take(event), open => { this.connected = open; this.drawProgress() })
    }
  }

  get title(): string {
    return `${nameOf(this.page.run)} · Stepladder`
  }

  step(by: 1 | -1): void {
    const all = rungsOf(this.page)
    const at = all.findIndex(trial => trial.seq === this.open)
    const next = all[Math.min(all.length - 1, Math.max(0, at + by))]
    if (next) this.pick(next.seq, true)
  }

  destroy(): void {
    this.unfollow?.()
    this.unwatch()
    this.unlisten()
    clearInterval(this.ticking)
    cancelAnimationFrame(this.frame)
    this.ofFailure.destroy()
    this.ofRun.destroy()
    this.duel?.destroy()
    this.ofMachine.destroy()
    this.ofRung.destroy()
  }

  /** What a reader wants to see first: the rung being held, else the first that did not hold, else the highest. */
  private first(): number | null {
    const all = rungsOf(this.page)
    const failed = all.find(trial => trial.rung?.verdict === 'FAIL')
    return (running(this.page) ?? failed ?? all.at(-1))?.seq ?? null
  }

  private take(event: LiveEvent): void {
    const changed = apply(this.page, event)
    if (event.kind === 'run' && this.page.run.state !== 'running') { this.unfollow?.(); this.unfollow = null }
    if (changed.page) {
      this.dirty.page = true
      if (this.isFollowing) {
        const now = running(this.page)
        if (now && now.seq !== this.open && rungsOf(this.page).includes(now)) this.open = now.seq
        if (event.kind === 'run') this.open = this.first()
      }
    }
    if (changed.second) this.dirty.second = true
    if (this.frame === 0) this.frame = requestAnimationFrame(() => { this.frame = 0; this.flush() })
  }

  private flush(): void {
    if (this.dirty.page) this.drawAll()
    else if (this.dirty.second) { this.drawLadder(); this.drawProgress(); this.drawRung() }
    this.dirty = { page: false, second: false }
  }

  private drawAll(): void {
    this.head.draw()
    if (this.duel) this.duel.update(this.page)
    else {
      replace(this.howMany, howMany(this.page))
      replace(this.whyNotMore, whyNotMore(this.page))
      replace(this.trust, canITrustIt(this.page, this.openMarks))
    }
    this.drawProgress()
    this.drawChoice()
    this.drawLadder()
    this.drawTable()
    this.drawRung()
    this.drawRun()
  }

  /** Panels of the run; those that compare rungs stay within the cell of the open one. */
  private drawRun(): void {
    if (this.duel) {
      const any = rungsOf(this.page)[0]
      if (any) this.ofMachine.update(this.context(any))
      return
    }
    const all = rungsOf(this.page)
    const any = all.find(trial => trial.seq === this.open) ?? all[0]
    if (any) for (const host of [this.ofFailure, this.ofRun, this.ofMachine]) host.update(this.context(any))
  }

  private context(trial: TrialPage): Context {
    return { page: this.page, trial, sync: `trial-${trial.seq}`, pick: seq => this.pick(seq, true), load: seq => this.load(seq), profile: this.profile, loadProfile: () => void this.loadProfile() }
  }

  private async loadProfile(): Promise<void> {
    if (this.options.isReport || this.isProfileAsked) return
    this.isProfileAsked = true
    try {
      this.profile = await api.profile(this.page.run.id)
    } catch (error) {
      this.profile = [{ of: 'cpu', graph: null, problem: (error as Error).message }]
    }
    // The reader may have gone on meanwhile.
    if (this.element.isConnected) this.drawRun()
  }

  private legend(): HTMLElement {
    return h('p', { class: 'marks' }, ...Object.entries(VERDICTS).map(([verdict, { word, meaning }]) =>
      h('span', { title: meaning }, icon(verdict as keyof typeof VERDICTS), ' ', word)))
  }

  /** Trial, phase, time left: an estimate from the hold before it, or from the plan. */
  private drawProgress(): void {
    const { run } = this.page
    const trial = running(this.page)
    this.progress.hidden = run.state !== 'running'
    if (run.state !== 'running') return
    if (!trial) {
      replace(this.progress, icon(null), h('span', null, this.connected ? 'between two trials' : 'the viewer is not responding; retrying'))
      return
    }
    const now = seconds(trial.series).at(-1) ?? 0
    const going = phase(trial)
    const held = trial.hold ? Math.max(0, now + 1 - trial.hold.from_ns / 1e9) : 0
    const length = this.holdSeconds()
    const left = going === 'hold' && length !== null ? Math.max(0, length - held) : null
    const open = trial.series.open?.findLast(value => value !== null) ?? null
    const main = this.page.objectives[0] ?? run.main
    const value = main ? soFar(trial, main.name) : null
    const bar = h('progress', { max: 1, ...(going === 'hold' && length ? { value: Math.min(1, held / length) } : {}), 'aria-label': 'progress of the hold' })
    replace(this.progress, icon(null),
      h('b', null, `${trial.purpose} ${number(trial.load)} ${unitText(trial.load_unit)}`),
      Object.keys(trial.cell).length > 0 ? h('span', null, cellName(trial.cell)) : null,
      h('span', { class: 'phase' }, going), bar,
      h('span', null, going === 'hold' ? (left !== null ? `${duration(left)} left` : `held for ${duration(held)}`) : clock(now)),
      open !== null ? h('span', null, `${number(open)} connections`) : null,
      main && value !== null ? h('span', null, `${figureName(main.name)} ${inUnit(main.unit)(value)} so far`) : null,
      this.connected ? null : h('span', { class: 'bad' }, 'connection lost; retrying'))
  }

  private holdSeconds(): number | null {
    const before = rungsOf(this.page).filter(trial => trial.rung).at(-1)?.hold
    return before && before.to_ns !== null ? (before.to_ns - before.from_ns) / 1e9 + before.cut_s : this.page.hold_s
  }

  private drawChoice(): void {
    const all = figuresOf(this.page)
    if (!all.some(figure => figure.name === this.figure)) this.figure = this.preferred(all)?.name ?? ''
    replace(this.choice, ...all.map(figure => h('option', { value: figure.name, selected: figure.name === this.figure }, figureName(figure.name))))
    this.choice.value = this.figure
    this.choice.disabled = all.length < 2
  }

  /** The first objective; where that is nought on every rung, the first that draws a ladder; the rate of a sweep. */
  private preferred(all: MainFigure[]): MainFigure | undefined {
    const trials = rungsOf(this.page)
    const rungs = trials.map(trial => trial.rung)
    if (trials.some(trial => Object.keys(trial.cell).length > 0)) return all.find(figure => figure.name === 'rate_per_s') ?? all[0]
    const says = (figure: MainFigure) => rungs.some(rung => (valueOf(rung, figure) ?? 0) !== 0)
    return all.find(figure => Number.isFinite(figure.bound) && says(figure)) ?? all.find(says) ?? all[0]
  }

  private drawLadder(): void {
    if (this.width <= 0) return
    const all = rungsOf(this.page)
    const figure = figuresOf(this.page).find(one => one.name === this.figure)
    if (all.length === 0 || !figure) {
      replace(this.picture, h('p', { class: 'empty' }, this.page.run.state === 'running' ? 'The first rung has not begun: the generator is calibrated first.' : 'This run has no rungs.'))
      return
    }
    const now = running(this.page)
    const steps: Step[] = all.map((trial, at) => ({
      load: trial.load, seq: trial.seq, live: trial === now, verdict: trial.rung?.verdict ?? null,
      figure: trial.rung ? valueOf(trial.rung, figure) ?? (figure.name === this.page.run.main?.name ? this.page.run.rungs[at]?.figure ?? null : null) : soFar(trial, figure.name),
    }))
    const cells = [...new Set(all.map(trial => cellName(trial.cell)))]
    const ladders = cells.map((name, at) => ({
      name, tone: cells.length > 1 ? nth(at) : undefined, steps: steps.filter((_, index) => cellName(all[index].cell) === name),
    }))
    const capacity = this.page.climb?.capacity
    const focused = (document.activeElement as Element | null)?.getAttribute?.('data-seq')
    replace(this.picture, draw({
      ladders, figure, loadUnit: unitText(all[0].load_unit), lower: capacity?.lower_bound, upper: capacity?.upper_bound, interval: capacity?.interval, planned: this.page.run.state === 'running' ? this.page.planned : [],
      selected: this.open, onPick: seq => this.pick(seq, true), width: this.width, height: Math.round(Math.min(20 * rem(), Math.max(15 * rem(), this.width * 0.33))), rem: rem(),
    }))
    if (focused) (this.picture.querySelector(`[data-seq="${CSS.escape(focused)}"]`) as SVGElement | null)?.focus({ preventScroll: true })
  }

  private drawTable(): void {
    const all = rungsOf(this.page)
    const judged = all.filter(trial => trial.rung)
    // A sweep has a table per cell (panels/sweep.ts).
    if (judged.length === 0 || !this.duel && all.some(trial => Object.keys(trial.cell).length > 0)) { this.rungTable.replaceChildren(); return }
    type Cell = [string, (rung: Rung) => Node | string]
    const where = (has: (rung: Rung) => unknown, ...cells: Cell[]) => judged.some(trial => has(trial.rung!)) ? cells : []
    const columns: Cell[] = [
      ...where(rung => rung.ticks,
        ['late', rung => shown(rung.ticks?.late_share, 'share', 'no ticks were due')], ['tick p99', rung => percentile(rung.ticks?.interval_ns, 'p99')]),
      ...where(rung => rung.deliveries,
        ['lost', rung => shown(rung.deliveries?.lost, 'count')], ['deliv. p99', rung => percentile(rung.deliveries?.latency_ns, 'p99')]),
      ['rate', rung => shown(rung.rate_per_s, 'per_s')],
      ...where(rung => rung.response_ns,
        ['resp. p50', rung => percentile(rung.response_ns, 'p50')], ['resp. p99', rung => percentile(rung.response_ns, 'p99')]),
      ['failed', rung => shown(failedOf(rung), 'count')],
      ...where(rung => rung.subject,
        ['server', rung => shown(rung.subject?.cpu_cores, 'cores')], ['memory', rung => shown(rung.subject?.rss_bytes, 'bytes')]),
      ['lag p99', rung => shown(rung.send_lag_ns?.p99, 'ns', 'too few sends for a p99')],
    ]
    const rows = all.map(trial => {
      const rung = trial.rung
      return [
        h('button', { class: 'link', type: 'button', 'data-row': trial.seq, 'data-value': trial.load, onclick: () => this.pick(trial.seq, true) }, number(trial.load)),
        h('span', { class: 'nowrap', title: rung?.reason ?? '' }, icon(rung?.verdict ?? null), ` ${rung ? VERDICTS[rung.verdict].word : this.page.run.state === 'running' ? 'running' : 'not judged'}`),
        ...this.duel ? [sideOf(trial)] : [],
        ...columns.map(([, of]) => rung ? of(rung) : ''),
      ]
    })
    const body = table([unitText(all[0].load_unit), 'verdict', ...this.duel ? ['side'] : [], ...columns.map(([name]) => name)], rows, { class: 'rungs' })
    replace(this.rungTable, body)
    this.markRow()
  }

  private markRow(): void {
    for (const row of this.rungTable.querySelectorAll('tbody tr')) {
      row.toggleAttribute('aria-current', row.querySelector('[data-row]')?.getAttribute('data-row') === String(this.open))
    }
  }

  private pick(seq: number, byHand: boolean): void {
    if (byHand) this.isFollowing = running(this.page)?.seq === seq
    if (this.open === seq) {
      this.rungBox.scrollIntoView({ block: 'nearest', behavior: 'smooth' })
      return
    }
    this.open = seq
    if (!this.options.isReport) history.replaceState(null, '', `#/runs/${encodeURIComponent(this.page.run.id)}/${seq}`)
    this.drawLadder()
    this.markRow()
    this.drawRung()
    this.drawRun()
  }

  private shownSeq: number | null = null

  private drawRung(): void {
    const trial = this.page.trials.find(one => one.seq === this.open)
    if (!trial) { this.rungBox.replaceChildren(); this.shownSeq = null; return }
    this.load(trial.seq)
    const context = this.context(trial)
    if (this.shownSeq !== trial.seq) {
      this.ofRung.destroy()
      this.ofRung = new Host('rung')
      this.shownSeq = trial.seq
      replace(this.rungBox, this.rungHead, this.ofRung.element)
    }
    const all = rungsOf(this.page)
    const at = all.indexOf(trial)
    const to = (other: TrialPage | undefined, word: string) => h('button', {
      class: 'quiet', type: 'button', disabled: !other, title: word === '‹' ? 'previous rung (k)' : 'next rung (j)',
      'aria-label': word === '‹' ? 'previous rung' : 'next rung', onclick: () => other && this.pick(other.seq, true),
    }, word)
    const rung = trial.rung
    replace(this.rungHead,
      h('div', { class: 'bar' },
        h('h2', null, `Rung ${number(trial.load)} ${unitText(trial.load_unit)}`, Object.keys(trial.cell).length > 0 ? h('small', null, ` ${cellName(trial.cell)}`) : null),
        badge(rung?.verdict ?? null, rung ? 'finished' : trial === running(this.page) ? 'running' : this.page.run.state),
        trial.bots !== trial.load ? h('span', { class: 'muted' }, `${number(trial.bots)} bots`) : null,
        h('span', { class: 'spring' }), to(all[at - 1], '‹'), to(all[at + 1], '›')),
      rung?.reason ? h('p', { class: 'reason' }, rung.reason) : null,
      rung?.remark ? h('p', { class: 'remark' }, rung.remark) : null,
      trial.seconds_per_point > 1 ? h('p', { class: 'note' }, `Long trial: each point is the lowest or highest value of about ${number(trial.seconds_per_point)} s.`) : null)
    this.ofRung.update(context)
  }

  /** A judged rung's own data, once; a report has them all. */
  private load(seq: number): void {
    const trial = this.page.trials.find(one => one.seq === seq)
    if (this.options.isReport || !trial?.rung || this.fetched.has(seq)) return
    if ((trial.series.t?.length ?? 0) === 0 || Object.keys(trial.distributions).length === 0) void this.fetch(seq)
  }

  private async fetch(seq: number): Promise<void> {
    this.fetched.add(seq)
    try {
      const trial = await api.trial(this.page.run.id, seq)
      this.take({ kind: 'rung', data: trial })
    } catch (error) {
      if (error instanceof Refused) this.rungHead.append(h('p', { class: 'bad' }, error.message))
    }
  }
}
