// History: every run with its small ladder; search; choose several to compare.

import { api } from '../api'
import type { RunRow } from '../data'
import { h, replace } from '../dom'
import { figureName } from '../figures'
import { when } from '../format'
import { spark } from '../ladder'
import { capacityWords, matches } from '../runs'
import { badge, STATES } from '../verdict'
import type { Page } from './page'

const REFRESH_MS = 3000
const KINDS = { climb: 'climb', bench: 'client libraries', duel: 'duel' } as const

export function runsPage(first: RunRow[], go: (hash: string) => void): Page {
  let runs = first
  const chosen = new Set<string>()
  const search = h('input', { type: 'search', id: 'search', placeholder: 'Search name, subject, tag, verdict  ( / )', 'aria-label': 'Search the runs' })
  const list = h('ul', { class: 'runs' })
  const compare = h('button', { class: 'strong', type: 'button', onclick: () => go(`#/compare/${[...chosen].map(encodeURIComponent).join(',')}`) })
  const element = h('main', { class: 'history' }, h('div', { class: 'bar' }, h('h1', null, 'Runs'), search, h('span', { class: 'muted' }, 'Times are UTC.'), h('span', { class: 'spring' }), compare), list)

  const kindOf = () => runs.find(run => chosen.has(run.id))?.kind ?? null
  /** Whether a run may be chosen besides those that are. A duel compares within itself. */
  const choice = (run: RunRow): { disabled: boolean; why: string | null } => {
    if (run.kind === 'duel') return { disabled: true, why: 'a duel compares within itself' }
    const kind = kindOf()
    if (chosen.has(run.id) || kind === null) return { disabled: false, why: null }
    if (run.kind !== kind) return { disabled: true, why: 'it has no figures in common with those that are chosen' }
    return run.kind === 'bench' && chosen.size > 1 ? { disabled: true, why: 'two comparisons of clients can be compared' } : { disabled: false, why: null }
  }
  const boxes = (): [HTMLInputElement, { disabled: boolean }][] => [...list.querySelectorAll<HTMLInputElement>('input[data-run]')].flatMap(box => {
    const run = runs.find(one => one.id === box.dataset.run)
    return run ? [[box, choice(run)] as [HTMLInputElement, { disabled: boolean }]] : []
  })
  const count = () => {
    compare.disabled = chosen.size < 2
    compare.textContent = chosen.size < 2 ? 'Choose two to compare' : `Compare ${chosen.size}`
  }

  const draw = () => {
    const words = search.value.trim()
    const found = runs.filter(run => words === '' || matches(run, words))
      .sort((a, b) => Number(b.labels?.pinned === 'true') - Number(a.labels?.pinned === 'true') || b.started_unix_ms - a.started_unix_ms)
    count()
    compare.hidden = runs.length < 2
    search.hidden = runs.length === 0
    if (runs.length === 0) { replace(list, empty()); return }
    if (found.length === 0) { replace(list, h('li', { class: 'empty' }, `No run matches “${words}”.`)); return }
    replace(list, ...found.map(row))
  }

  const row = (run: RunRow) => {
    const box = h('input', { type: 'checkbox', 'aria-label': `choose ${run.labels?.name || run.id} to compare`, 'data-run': run.id })
    box.checked = chosen.has(run.id)
    box.addEventListener('change', () => {
      if (box.checked) chosen.add(run.id)
      else chosen.delete(run.id)
      count()
      for (const [other, { disabled }] of boxes()) other.disabled = disabled
    })
    const tags = (run.labels?.tags ?? '').split(',').map(tag => tag.trim()).filter(Boolean)
    const isClimb = run.kind === 'climb'
    const { disabled, why } = choice(run)
    box.disabled = disabled
    return h('li', { class: 'row' },
      h('label', { class: 'choose', title: why }, box),
      h('a', { class: 'open', href: `#/runs/${encodeURIComponent(run.id)}` },
        h('span', { class: 'who' },
          h('b', null, run.labels?.name || run.id), run.labels?.pinned === 'true' ? h('span', { class: 'pin' }, ' pinned') : null, ...tags.map(tag => h('span', { class: 'tag' }, tag)),
          h('small', null, `${run.subject} · ${when(run.started_unix_ms)}${run.state === 'finished' || run.state === 'running' || run.verdict === null ? '' : ` · ${STATES[run.state]}`}`),
          run.labels?.note ? h('small', { class: 'note' }, run.labels.note) : null),
        ...isClimb
          ? [h('span', { class: 'how-many' }, h('b', null, capacityWords(run.capacity)), run.main ? h('small', null, `by ${figureName(run.main.name)}`) : null),
            h('span', { class: 'small-ladder' }, spark(run.rungs, run.main))]
          : [h('span', { class: 'found' }, h('small', null, KINDS[run.kind]), run.answer ?? '—')],
        badge(run.verdict, run.state)))
  }

  search.addEventListener('input', draw)
  draw()
  const ticking = window.setInterval(async () => {
    if (document.hidden || document.querySelector('dialog[open]')) return
    try {
      const now = await api.runs()
      if (JSON.stringify(now) !== JSON.stringify(runs)) { runs = now; draw() }
    } catch { /* the viewer may be starting again: the list stays as it was */ }
  }, REFRESH_MS)
  return { element, title: 'Runs · Stepladder', destroy: () => clearInterval(ticking) }
}

function empty(): HTMLElement {
  return h('li', { class: 'empty' },
    h('h2', null, 'No run yet'),
    h('p', null, 'A run holds a server at one load after another and reports how many clients it holds, why not more, and how certain that is. The first takes a few minutes:'),
    h('pre', null, h('code', null, 'stepladder climb arena --view')),
    h('p', null, 'Your own server: ', h('code', null, 'stepladder climb ws://127.0.0.1:9001 --rungs 500,1000,2000'), '. Tick logs need no run: ', h('a', { href: '#/ticks' }, 'drop them here'), '.'))
}
