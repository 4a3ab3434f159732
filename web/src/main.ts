// Begins here: a report shows the run that it carries; a live page shows what its address names.

import 'uplot/dist/uPlot.min.css'
import './style/base.css'
import './style/page.css'
import { api, inlined, Refused } from './api'
import { redrawAll, toggleTables } from './chart'
import type { RunPage } from './data'
import { help } from './dialog'
import { h, replace } from './dom'
import { benchPage } from './pages/bench'
import { besidePage } from './pages/beside'
import { comparePage } from './pages/compare'
import type { Page } from './pages/page'
import { runPage } from './pages/run'
import { runsPage } from './pages/runs'
import { ticksPage } from './pages/ticks'
import { begin, toggle } from './theme'

const app = document.getElementById('app')!
let report: RunPage | null = null
let unreadable: Error | null = null
let page: Page | null = null
/** Counts navigations, so that an answer that comes late does not replace a newer page. */
let visit = 0

begin()
try { report = await inlined() } catch (error) { unreadable = error as Error }

const main = h('div', { class: 'content' })
const link = (hash: string, words: string) => h('a', { href: hash }, words)
replace(app,
  h('a', { class: 'skip', href: '#content' }, 'Skip to content'),
  h('nav', { class: 'top', 'aria-label': 'Stepladder' },
    report ? h('span', { class: 'brand' }, logo(), 'Stepladder') : h('a', { class: 'brand', href: '#/' }, logo(), 'Stepladder'),
    ...(report ? [h('span', { class: 'muted' }, 'report')] : [link('#/', 'Runs'), link('#/ticks', 'Tick logs')]),
    h('span', { class: 'spring' }),
    h('button', { class: 'quiet', type: 'button', title: 'light or dark (d)', onclick: toggle }, '◐', h('span', { class: 'wide-only' }, ' Light or dark')),
    h('button', { class: 'quiet', type: 'button', title: 'keyboard shortcuts (?)', 'aria-label': 'keyboard shortcuts', onclick: () => void help() }, '?')),
  main)
main.id = 'content'

function logo(): SVGElement {
  const ns = 'http://www.w3.org/2000/svg'
  const root = document.createElementNS(ns, 'svg')
  for (const [name, value] of [['viewBox', '0 0 24 24'], ['class', 'logo'], ['aria-hidden', 'true']]) root.setAttribute(name, value)
  const path = document.createElementNS(ns, 'path')
  path.setAttribute('d', 'M8 2 4 22M13 2l5 20M7 7h7.2M6 12h9.4M5 17h11.7M13 2 8 2')
  root.append(path)
  return root
}

function show(next: Page): void {
  page?.destroy()
  page = next
  document.title = next.title
  replace(main, next.element)
}

function words(title: string, ...lines: (string | Node)[]): Page {
  return {
    title: `${title} · Stepladder`, destroy: () => {},
    element: h('main', { class: 'words' }, h('h1', null, title), ...lines.map(line => h('p', null, line))),
  }
}

const go = (hash: string) => { location.hash = hash }

function pageOf(run: RunPage, options: { isReport: boolean; seq: number | null; go: (hash: string) => void }): Page {
  return run.bench ? benchPage(run, run.bench, options) : runPage(run, options)
}

async function route(): Promise<void> {
  const mine = ++visit
  const isEntry = location.hash === ''
  const [, room = '', first = '', second = ''] = location.hash.split('/')
  try {
    let next: Page
    if (room === '' || room === 'runs' && first === '') {
      const all = await api.runs()
      // Whoever opens the address as it was printed wants to see what is being recorded.
      const now = isEntry ? all.find(run => run.state === 'running') : undefined
      if (now) {
        if (mine !== visit) return
        history.replaceState(null, '', `#/runs/${encodeURIComponent(now.id)}`)
        return await route()
      }
      next = runsPage(all, go)
    }
    else if (room === 'live') {
      const now = await theLiveRun(() => mine === visit)
      if (mine !== visit) return
      history.replaceState(null, '', now ? `#/runs/${encodeURIComponent(now)}` : '#/')
      return await route()
    }
    else if (room === 'runs') next = pageOf(await api.run(decodeURIComponent(first)), { isReport: false, seq: second === '' ? null : Number(second), go })
    else if (room === 'compare') next = await compared(await withSeconds(first.split(',').map(decodeURIComponent)))
    else if (room === 'ticks') next = ticksPage(await api.ticks())
    else next = words('There is no such page', link('#/', 'All runs'))
    if (mine === visit) { show(next); scrollTo(0, 0) } else next.destroy()
  } catch (error) {
    if (mine !== visit) return
    const refused = error instanceof Refused ? error : null
    show(words(refused?.status === 404 ? 'There is no such run' : refused?.status === 401 ? 'This page needs its token' : 'Something went wrong',
      refused?.status === 401 ? 'Open the address that stepladder printed when it started; it carries the token.' : String((error as Error).message), link('#/', 'All runs')))
  }
}

/** Runs of one kind beside each other. */
async function compared(pages: RunPage[]): Promise<Page> {
  if (!pages.some(page => page.bench)) return comparePage(pages)
  const [old, young] = pages.slice().sort((a, b) => a.run.started_unix_ms - b.run.started_unix_ms)
  if (pages.length !== 2 || !old.bench || !young.bench) {
    return words('These runs cannot be compared', 'Two comparisons of client libraries can be laid beside each other, and they have no figures in common with climbs.', link('#/', 'All runs'))
  }
  return besidePage(await api.beside(old.run.id, young.run.id), old, young)
}

/** The run that goes on, waited for while it prepares itself; else the newest one, null without any. */
async function theLiveRun(isWanted: () => boolean): Promise<string | null> {
  for (let tries = 0; ; tries++) {
    const all = await api.runs()
    const now = all.find(run => run.state === 'running')
    if (now || tries >= 40 || !isWanted()) return (now ?? all[0])?.id ?? null
    if (tries === 0) show(words('The run is about to begin', 'It will appear here as soon as it does.'))
    await new Promise(resolve => setTimeout(resolve, 250))
  }
}

/** Pages of several runs, with the distributions of their rungs where the page came without. */
async function withSeconds(ids: string[]): Promise<RunPage[]> {
  return Promise.all(ids.filter(Boolean).slice(0, 8).map(async id => {
    const one = await api.run(id)
    one.trials = await Promise.all(one.trials.map(trial =>
      trial.rung && Object.keys(trial.distributions ?? {}).length === 0 && (trial.series?.t?.length ?? 0) === 0 ? api.trial(id, trial.seq).catch(() => trial) : trial))
    return one
  }))
}

addEventListener('keydown', event => {
  if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector('dialog[open]')) return
  const target = event.target as HTMLElement
  if (/^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName)) {
    if (event.key === 'Escape') target.blur()
    return
  }
  switch (event.key) {
    case 'j': page?.step?.(1); break
    case 'k': page?.step?.(-1); break
    case 't': toggleTables(); break
    case 'd': toggle(); break
    case '?': void help(); break
    case '/': {
      const search = document.getElementById('search')
      if (!search) return
      event.preventDefault()
      search.focus()
      break
    }
    case 'Escape': if (!report && location.hash.length > 2) go('#/'); break
  }
})

if (report) {
  show(pageOf(report, { isReport: true, seq: null, go: () => {} }))
} else if (unreadable) {
  show(words('This report cannot be read', 'Its data is damaged or incomplete. Write it again with: stepladder report RUN -o FILE.html', unreadable.message))
} else {
  addEventListener('hashchange', () => void route())
  void route()
}

// For bench/viewer, which measures what redraws take in a browser.
Object.defineProperty(globalThis, 'stepladderRedraw', { value: redrawAll })
