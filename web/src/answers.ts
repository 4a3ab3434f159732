// The three answers: how many, why not more, can I trust it. The words are the run's own (ladder's wording); this file only
// picks the figure that each is led by, and the figures behind the five marks.

import type { Capacity, Conclusion, MainFigure, Rung, RunPage } from './data'
import { h, svg, table } from './dom'
import { figureName, percentile, shown, valueOf } from './figures'
import { inUnit, number, share, unitText } from './format'
import { capacityWords } from './runs'
import { menu } from './save'
import { running } from './state'
import { mark, VERDICTS } from './verdict'

interface Answer { id: string; question: string; lead: string; tone: string; words: string; facts: [string, string][] }

function conclusion(page: RunPage, id: string): Conclusion | undefined {
  return page.climb?.conclusions.find(one => one.id === id)
}

function isRunning(page: RunPage): boolean {
  return running(page) !== null || page.run.state === 'running'
}

/** The answer in one line, with its uncertainty. */
export function howMany(page: RunPage): HTMLElement {
  const capacity = page.climb?.capacity ?? page.run.capacity
  const [lower, upper] = [capacity?.lower_bound ?? null, capacity?.upper_bound ?? null]
  const goesOn = page.run.state === 'running'
  const words = goesOn && lower !== null && upper === null ? `${number(lower)} ${unitText(capacity!.unit)} held so far; the climb is still running.`
    : conclusion(page, 'how_many')?.text ?? (goesOn ? 'No rung has been judged yet.' : 'No rung was judged.')
  return h('article', { class: `answer ${lower !== null ? 'pass' : upper !== null ? 'fail' : 'unsure'}`, id: 'how_many' },
    h('h2', null, h('small', null, `How many?${goesOn && page.climb ? ' So far:' : ''}`), ' ', h('b', { class: 'lead' }, most(capacity)), ' ', h('small', { class: 'unsure' }, howSure(capacity))),
    h('p', { class: 'words' }, words))
}

/** The most likely capacity where the run states one, else its bounds. */
function most(capacity: Capacity | null): string {
  return capacity && typeof capacity.estimate === 'number' ? `about ${number(Number(capacity.estimate.toPrecision(3)))} ${unitText(capacity.unit)}` : capacityWords(capacity)
}

function howSure(capacity: Capacity | null): string {
  if (!capacity) return ''
  const { lower_bound: lower, upper_bound: upper, interval, confidence } = capacity
  const rounded = (load: number) => number(Number(load.toPrecision(3)))
  if (interval) return `${rounded(interval[0])} to ${rounded(interval[1])} with 95 %`
  if (confidence !== null) return `with ${share(confidence)}`
  if (lower !== null && upper !== null) return 'no confidence: the bounds were held too few times'
  return lower !== null ? 'a lower bound: nothing failed' : upper !== null ? 'an upper bound: nothing held' : ''
}

function whyNotMoreOf(page: RunPage): Answer {
  const said = conclusion(page, 'why_not_more')
  const rung = page.climb?.rungs.find(one => one.load === said?.evidence.load && one.verdict !== 'PASS') ?? null
  const signal = page.climb?.capacity.first_failing_signal ?? rung?.signal ?? null
  const objective = page.objectives.find(one => one.name === signal) ?? null
  const facts: [string, string][] = []
  if (page.run.state === 'running' && !rung) {
    // The run's words are about a climb that has ended.
    return { id: 'why_not_more', question: 'What gave first?', lead: said ? 'nothing failed yet' : 'not known yet', tone: 'unsure', facts, words: 'The climb is still running.' }
  }
  let lead = said ? 'nothing failed' : 'not known yet'
  let tone = said ? 'pass' : 'unsure'
  if (rung) {
    tone = rung.verdict === 'FAIL' ? 'fail' : rung.verdict === 'GENERATOR_LIMITED' ? 'limited' : 'unsure'
    lead = leadOf(rung, signal, objective)
    facts.push(['at', `${number(rung.load)} ${unitText(rung.load_unit)}`])
    if (objective) facts.push(['objective', objective.text])
    else if (rung.verdict === 'GENERATOR_LIMITED' && signal) facts.push(['limited by', figureName(signal)])
    const cause = said?.evidence.cause as { name: string; standing: string } | null | undefined
    if (cause && cause.standing !== 'open') facts.push(['cause', `${cause.name.replaceAll('-', ' ')}${cause.standing === 'suspected' ? ' (suspected)' : ''}`])
    if (rung.subject) facts.push(['server', `${inUnit('cores')(rung.subject.cpu_cores)}${typeof rung.subject.cpu_share === 'number' ? ` (${share(rung.subject.cpu_share)})` : ''}`])
  }
  return {
    id: 'why_not_more', question: 'What gave first?', lead, tone, facts,
    words: said ? behind(lead, said.text) : 'The run ended before anything was judged.',
  }
}

/** What a text says behind the word that already leads the answer. */
function behind(lead: string, text: string): string {
  const rest = text.slice(lead.length + 2)
  return text.toLowerCase().startsWith(`${lead.toLowerCase()}: `) && rest !== '' ? `${rest[0].toUpperCase()}${rest.slice(1)}` : text
}

/** What the judge names beside figures, as the head of an answer. */
const SIGNALS: Record<string, string> = {
  'server exited': 'the server exited', 'connections.open_min': 'connections missing', 'ticks.due': 'fewer games than requested',
  'ticks.silence': 'the server stopped ticking', 'client_ticks.silence': 'clients received nothing', 'stopped replying': 'the server stopped replying', not_sent: 'messages were never sent',
  unanswered: 'messages were never answered', pairing: 'pairing out of step',
  drifting: 'it degraded during the hold', interrupted: 'interrupted', bug: 'a bug in Stepladder', 'no hold': 'the hold never began',
}

/** What stood in the way, in a few words and with its figure. */
function leadOf(rung: Rung, signal: string | null, objective: MainFigure | null): string {
  if (objective) {
    const value = valueOf(rung, objective)
    if (value === null) return figureName(objective.name)
    return objective.unit === 'count' ? `${number(value)} ${figureName(objective.name)}` : `${figureName(objective.name)} ${inUnit(objective.unit)(value)}`
  }
  const reason = (rung.reason ?? 'no reason given').split(/[:;,]/)[0]
  if (rung.verdict === 'GENERATOR_LIMITED') return 'the load generator reached its limit'
  if (rung.verdict === 'INCONCLUSIVE') return signal === 'disturbed' ? 'the machine was disturbed' : `not judged: ${signal === 'inconsistent' ? 'server and clients disagree' : reason}`
  return signal ? SIGNALS[signal] ?? figureName(signal) : reason
}

/** What gave first. */
export function whyNotMore(page: RunPage): HTMLElement {
  const answer = whyNotMoreOf(page)
  return h('article', { class: `answer ${answer.tone}`, id: answer.id },
    h('h2', null, answer.question, isRunning(page) && page.climb ? h('small', null, ' so far') : null),
    h('p', { class: 'lead' }, answer.lead),
    answer.facts.length > 0 ? h('dl', { class: 'facts' }, ...answer.facts.map(([name, value]) => h('div', null, h('dt', null, name), h('dd', null, value)))) : null,
    h('p', { class: 'words' }, answer.words))
}

type MarkId = 'generator' | 'books' | 'steady' | 'undisturbed' | 'certainty'
interface Mark { id: MarkId; standing: 'good' | 'care' | 'bad'; text: string }

const MARKS: Record<MarkId, string> = {
  generator: 'Generator fit', books: 'Books balance', steady: 'Steady', undisturbed: 'Undisturbed', certainty: 'Certain',
}
const STANDINGS = { good: { word: 'yes', sign: 'PASS' }, care: { word: 'with care', sign: 'INCONCLUSIVE' }, bad: { word: 'no', sign: 'FAIL' } } as const

/** Whether it can be trusted: five marks that open to their figures. Those in `open` are open, and stay so while a run goes on. */
export function canITrustIt(page: RunPage, open: Set<string>): HTMLElement {
  const said = conclusion(page, 'can_i_trust_it')
  const word = /^(Yes|No|With care)\b/.exec(said?.text ?? '')?.[1] ?? null
  const marks = (said?.evidence.marks ?? []) as Mark[]
  return h('article', { class: `answer ${word === 'Yes' ? 'pass' : word === 'No' ? 'fail' : 'unsure'}`, id: 'can_i_trust_it' },
    h('div', { class: 'bar' }, h('h2', null, 'Can I trust it?', isRunning(page) && page.climb ? h('small', null, ' so far') : null), marks.length > 0 && menu()),
    h('p', { class: 'lead' }, word ?? (said ? 'see below' : 'too early to tell')),
    h('p', { class: 'words' }, said ? behind(word ?? '', said.text) : (page.run.state === 'running' ? 'Books, steadiness and the generator are checked with each rung.' : 'Nothing was judged.')),
    h('div', { class: 'five' }, ...marks.map(one => {
      const { word, sign } = STANDINGS[one.standing]
      const { head, rows } = FIGURES[one.id](page.climb?.rungs ?? [])
      const details = h('details', { 'data-mark': one.id, open: open.has(one.id) },
        h('summary', null,
          svg('svg', { class: 'icon', viewBox: '-12 -12 24 24', width: '1.1em', height: '1.1em', 'aria-hidden': 'true' }, mark(sign, 10)),
          h('b', null, MARKS[one.id]), h('span', { class: `standing ${VERDICTS[sign].class}` }, word)),
        h('p', null, `${one.text[0].toUpperCase()}${one.text.slice(1)}.`), table(head, rows, { caption: `${MARKS[one.id]}, load by load` }))
      details.addEventListener('toggle', () => { if (details.open) open.add(one.id); else open.delete(one.id) })
      return details
    })))
}

type Cell = string | Node
type Figures = (rungs: Rung[]) => { head: string[]; rows: Cell[][] }
/** A row per rung, its load first. */
const perRung = (head: string[], of: (rung: Rung) => Cell[]): Figures => rungs =>
  ({ head: [unitText(rungs[0]?.load_unit ?? 'clients'), ...head], rows: rungs.map(rung => [shown(rung.load, 'count'), ...of(rung)]) })

const FIGURES: Record<MarkId, Figures> = {
  generator: perRung(['send lag p99', 'limit', 'busiest worker', 'waited for a core', 'not sent'], rung => [
    percentile(rung.send_lag_ns, 'p99'), shown(rung.evidence.send_lag_limit_ns, 'ns'), shown(rung.worker.busy_share_max, 'share'),
    shown(rung.worker.waiting_share_max, 'share'), shown(rung.not_sent, 'count'),
  ]),
  books: rungs => {
    const broadcast = rungs.some(rung => rung.deliveries) ? (['owed', 'delivered', 'lost', 'residual'] as const) : []
    return perRung(['offered', 'sent', 'answered', 'failed', 'lost', 'unanswered', ...broadcast.map(name => name === 'owed' ? 'deliveries owed' : `${name} of them`)], rung => [
      ...[rung.offered, rung.sent, rung.answered, rung.failed, rung.lost, rung.unanswered_at_stop].map(count => shown(count, 'count')),
      ...broadcast.map(name => shown(rung.deliveries?.[name], 'count', 'nothing was broadcast')),
    ])(rungs)
  },
  steady: perRung(['measured for', 'it was'], rung => [shown(rung.hold_s * 1e9, 'ns'), rung.steady ?? 'too short or too disturbed to tell']),
  undisturbed: perRung(['seconds disturbed', 'other programs', 'host took', 'throttled', 'largest'], rung => [
    shown(rung.disturbed_share, 'share', 'not readable on this machine'), shown(rung.disturbance?.others_cores, 'cores', 'nothing disturbed it'),
    shown(rung.disturbance?.steal_share, 'share', 'nothing disturbed it'), shown(rung.disturbance?.throttled, 'count', 'nothing disturbed it'),
    Object.entries(rung.disturbance?.programs ?? {}).map(([name, cores]) => `${name} ${inUnit('cores')(cores)}`).join(', '),
  ]),
  certainty: rungs => {
    const loads = [...new Set(rungs.map(rung => rung.load))].sort((a, b) => a - b)
    const count = (load: number, verdict?: string) => rungs.filter(rung => rung.load === load && (!verdict || rung.verdict === verdict)).length
    return {
      head: [unitText(rungs[0]?.load_unit ?? 'clients'), 'held', 'passed', 'failed'],
      rows: loads.map(load => [shown(load, 'count'), ...[count(load), count(load, 'PASS'), count(load, 'FAIL')].map(times => shown(times, 'count'))]),
    }
  },
}
