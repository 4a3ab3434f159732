// The head of a page: how many, why not more, can I trust it. The words are the run's own (ladder's wording); this
// file only picks the figure that each is led by.

import type { Conclusion, MainFigure, Rung, RunPage } from './data'
import { h } from './dom'
import { figureName, valueOf } from './figures'
import { inUnit, ns, number, share, unitText } from './format'
import { running, rungsOf } from './state'

interface Answer { id: string; question: string; lead: string; tone: string; words: string; facts: [string, string][] }

function conclusion(page: RunPage, id: string): Conclusion | undefined {
  return page.climb?.conclusions.find(one => one.id === id)
}

function howMany(page: RunPage): Answer {
  const capacity = page.climb?.capacity ?? page.run.capacity
  const counted = capacity?.unit ?? rungsOf(page).at(-1)?.load_unit
  const unit = counted ? unitText(counted) : ''
  const lower = capacity?.lower_bound ?? null
  const upper = capacity?.upper_bound ?? null
  let lead = 'unknown'
  let tone = 'unsure'
  if (lower !== null && upper !== null) [lead, tone] = [`${number(lower)} – ${number(upper)}`, 'pass']
  else if (lower !== null) [lead, tone] = [`≥ ${number(lower)}`, 'pass']
  else if (upper !== null) [lead, tone] = [`< ${number(upper)}`, 'fail']
  const rungs = rungsOf(page).filter(trial => trial.rung)
  const facts: [string, string][] = []
  const held = rungs.filter(trial => trial.rung!.verdict === 'PASS').length
  if (rungs.length > 0) facts.push(['held', `${held} of ${rungs.length} rungs`])
  return {
    id: 'how_many', question: 'How many?', lead: lower === null && upper === null ? lead : `${lead} ${unit}`, tone, facts,
    words: page.run.state === 'running' && lower !== null && upper === null ? `${number(lower)} ${unit} held so far; the climb is still running.` : conclusion(page, 'how_many')?.text ?? (page.run.state === 'running' ? 'No rung has been judged yet.' : 'No rung was judged.'),
  }
}

function whyNotMore(page: RunPage): Answer {
  const said = conclusion(page, 'why_not_more')
  const rung = page.climb?.rungs.find(one => one.load === said?.evidence.load && one.verdict !== 'PASS') ?? null
  const signal = page.climb?.capacity.first_failing_signal ?? rung?.signal ?? null
  const objective = page.objectives.find(one => one.name === signal) ?? null
  const facts: [string, string][] = []
  if (page.run.state === 'running' && !rung) {
    // The run's words are about a climb that has ended.
    return { id: 'why_not_more', question: 'Why not more?', lead: said ? 'nothing failed yet' : 'not known yet', tone: 'unsure', facts, words: 'The climb is still running.' }
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
    id: 'why_not_more', question: 'Why not more?', lead, tone, facts,
    words: said?.text ?? 'The run ended before anything was judged.',
  }
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
  if (rung.verdict === 'INCONCLUSIVE') return signal === 'disturbed' ? 'the machine was disturbed' : `not judged: ${reason}`
  return signal ? SIGNALS[signal] ?? figureName(signal) : reason
}

function canITrustIt(page: RunPage): Answer {
  const said = conclusion(page, 'can_i_trust_it')
  const evidence = said?.evidence ?? {}
  const word = /^(Yes|No|With care)\b/.exec(said?.text ?? '')?.[1] ?? null
  const facts: [string, string][] = []
  if (typeof evidence.send_lag_p99_ns === 'number') facts.push(['send lag p99', `≤ ${ns(evidence.send_lag_p99_ns)}`])
  if (typeof evidence.busy_share_max === 'number') facts.push(['busiest worker', share(evidence.busy_share_max)])
  if (typeof evidence.books_broken === 'number') facts.push(['books', evidence.books_broken === 0 ? 'balance' : `broken in ${evidence.books_broken}`])
  if (typeof evidence.disturbed_share_max === 'number') facts.push(['disturbed', share(evidence.disturbed_share_max)])
  if (evidence.shared_cores === true) facts.push(['cores', 'shared with the server'])
  return {
    id: 'can_i_trust_it', question: 'Can I trust it?', lead: word ?? (said ? 'see below' : 'too early to tell'),
    tone: word === 'Yes' ? 'pass' : word === 'No' ? 'fail' : 'unsure', facts,
    words: said?.text ?? (page.run.state === 'running' ? 'Books, steadiness and the generator are checked with each rung.' : 'Nothing was judged.'),
  }
}

export function answers(page: RunPage): HTMLElement {
  const goesOn = running(page) !== null || page.run.state === 'running'
  return h('section', { class: 'answers', 'aria-label': 'The three answers' },
    ...[howMany(page), whyNotMore(page), canITrustIt(page)].map(answer =>
      h('article', { class: `answer ${answer.tone}`, id: answer.id },
        h('h2', null, answer.question, goesOn && page.climb ? h('small', null, ' so far') : null),
        h('p', { class: 'lead' }, answer.lead),
        answer.facts.length > 0 ? h('dl', { class: 'facts' }, ...answer.facts.map(([name, value]) => h('div', null, h('dt', null, name), h('dd', null, value)))) : null,
        h('p', { class: 'words' }, answer.words))))
}
