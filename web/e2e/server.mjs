// A small viewer over planted runs: the routes of the real one, in memory, on loopback. For tests and screenshots only.

import { createServer } from 'node:http'
import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { begun, HISTORY, planted } from '../fixtures/planted.mjs'
import beside from '../fixtures/beside.json' with { type: 'json' }

export const BUNDLE = fileURLToPath(new URL('../dist/index.html', import.meta.url))

/** The policy of the viewer: what is inlined is named by its hash, all else is refused. */
export function policy(html) {
  const hashes = (tag, of) => [...html.matchAll(of)].map(match => `'sha256-${createHash('sha256').update(match[1]).digest('base64')}'`).join(' ') || tag
  return [
    "default-src 'self'", `script-src ${hashes("'none'", /<script(?: type="module")?(?: crossorigin)?>([\s\S]*?)<\/script>/g)}`,
    `style-src 'self' ${hashes('', /<style[^>]*>([\s\S]*?)<\/style>/g)}`, "img-src 'self' data:", "connect-src 'self'", "object-src 'none'", "base-uri 'none'", "frame-ancestors 'none'",
  ].join('; ')
}

/** The bundle with a run inside: what `stepladder report` writes. */
export function reportOf(run) {
  const html = readFileSync(BUNDLE, 'utf8')
  const data = JSON.stringify(run).replaceAll('<', '\\u003c')
  return html.replace(/(<script type="application\/json" id="stepladder-data">)(<\/script>)/, (_, open, close) => open + data + close)
}

/** Sums of a tick log in the original's dialect; only what the page shows. */
export function readTicks(name, text) {
  const histogram = {}
  const file = { name, games: 0, on_time: 0, over: 0, under: 0, missed: 0, late_share: null, interval_ms: { p50: null, p90: null, p99: null, max: null, mean: null }, histogram, series: { t: [], late_share: [] }, malformed: 0 }
  let first = null
  const seconds = new Map()
  for (const line of text.split('\n')) {
    if (line.trim() === '') continue
    let entry
    try { entry = JSON.parse(line) } catch { file.malformed++; continue }
    if (!entry || typeof entry !== 'object') { file.malformed++; continue }
    first ??= entry.time
    const t = Math.round((entry.time - first) / 1000)
    const at = seconds.get(t) ?? seconds.set(t, { on: 0, off: 0 }).get(t)
    if (entry.title === 'tickInterval') for (const [ms, count] of Object.entries(entry.pointSet)) histogram[ms] = (histogram[ms] ?? 0) + count
    if (entry.title === 'tickOnTime') { file.on_time += entry.count; at.on += entry.count }
    if (entry.title === 'tickIntervalOverrun') { file.over += entry.count; at.off += entry.count }
    if (entry.title === 'tickIntervalUnderrun') { file.under += entry.count; at.off += entry.count }
    if (entry.title === 'games-played') file.games += entry.count
  }
  const due = file.on_time + file.over + file.under
  file.late_share = due ? (file.over + file.under) / due : null
  for (const [t, { on, off }] of [...seconds].sort((a, b) => a[0] - b[0])) { file.series.t.push(t); file.series.late_share.push(on + off ? off / (on + off) : null) }
  const all = Object.entries(histogram).map(([ms, count]) => [Number(ms), count]).sort((a, b) => a[0] - b[0])
  const count = all.reduce((sum, [, times]) => sum + times, 0)
  const quantile = q => { let below = 0; for (const [ms, times] of all) { below += times; if (below >= count * q) return ms } return null }
  if (count) file.interval_ms = { p50: quantile(0.5), p90: quantile(0.9), p99: quantile(0.99), max: all.at(-1)[0], mean: all.reduce((sum, [ms, times]) => sum + ms * times, 0) / count }
  return file
}

/** Plays a climb of two rungs second by second, from when somebody listens. `pace` is ms per second of the run. */
function play(state, pace) {
  const whole = planted('live-1')
  const rungs = whole.trials.filter(trial => trial.rung)
  const row = { state: 'running', verdict: null, capacity: null, rungs: [], started_unix_ms: Date.now() }
  const live = { ...whole, climb: null, trials: [], run: { ...whole.run, ...row } }
  const listeners = new Set()
  state.runs.set(live.run.id, live)
  state.live.set(live.run.id, listeners)
  const say = (kind, data) => listeners.forEach(answer => answer.write(`event: ${kind}\ndata: ${JSON.stringify(data)}\n\n`))
  let [at, second] = [0, 0]
  const timer = setInterval(() => {
    if (at === 0 && second === 0 && listeners.size === 0) return
    const full = rungs[at]
    if (!full) {
      clearInterval(timer)
      Object.assign(live, whole)
      say('run', live)
      return
    }
    if (second === 0) {
      live.trials.push(begun(full))
      live.run.rungs.push({ load: full.load, verdict: null, figure: null })
      say('trial', live.trials.at(-1))
    }
    const trial = live.trials.at(-1)
    if (second < full.series.t.length) {
      const events = full.events.filter(event => event.at_ns <= second * 1e9 && event.kind !== 'end')
      if (events.length !== trial.events.length) {
        const { from_ns, to_ns } = full.hold
        const hold = second * 1e9 < from_ns ? null : { ...full.hold, to_ns: second * 1e9 < to_ns ? null : to_ns }
        Object.assign(trial, { events, hold })
        say('trial', { ...trial })
      }
      const measured = Object.entries(full.series).map(([name, column]) => [name, column[second]])
      const values = Object.fromEntries(measured.filter(([name, value]) => name !== 't' && value !== null))
      for (const [name, value] of measured) (trial.series[name] ??= []).push(value)
      say('second', { seq: full.seq, t: second, values })
      second++
      return
    }
    live.trials[live.trials.length - 1] = full
    const judged = whole.climb.rungs.slice(0, at + 1)
    const bounds = at === 0 ? { upper_bound: null, first_failing_signal: null } : {}
    live.climb = { ...whole.climb, rungs: judged, capacity: { ...whole.climb.capacity, ...bounds } }
    Object.assign(live.run, { rungs: whole.run.rungs.slice(0, at + 1), capacity: live.climb.capacity })
    say('rung', full)
    say('run', { ...live, trials: live.trials })
    second = 0
    at++
  }, pace)
  return timer
}

export async function serve({ port = 0, runs = HISTORY.map(id => planted(id)), ticks = [], pace = 0 } = {}) {
  const html = readFileSync(BUNDLE, 'utf8')
  const state = { runs: new Map(runs.map(run => [run.run.id, run])), live: new Map(), ticks, asked: [] }
  const headers = { 'content-security-policy': policy(html), 'x-content-type-options': 'nosniff', 'cache-control': 'no-store' }
  const server = createServer((request, answer) => {
    const url = new URL(request.url, 'http://localhost')
    state.asked.push(`${request.method} ${url.pathname}`)
    const json = (status, value) => { answer.writeHead(status, { ...headers, 'content-type': 'application/json' }); answer.end(JSON.stringify(value)) }
    const body = () => new Promise(resolve => { const parts = []; request.on('data', part => parts.push(part)); request.on('end', () => resolve(Buffer.concat(parts))) })
    const parts = url.pathname.split('/').filter(Boolean).map(decodeURIComponent)
    if (url.pathname === '/') { answer.writeHead(200, { ...headers, 'content-type': 'text/html; charset=utf-8' }); answer.end(html); return }
    if (parts[0] === 'report') { answer.writeHead(200, { 'content-type': 'text/html' }); answer.end(reportOf(state.runs.get(parts[1].replace(/\.html$/, '')))); return }
    if (parts[0] !== 'api') { json(404, { error: 'no such page' }); return }
    if (parts[1] === 'beside') { json(200, beside); return }
    if (parts[1] === 'runs' && parts.length === 2) { json(200, { runs: [...state.runs.values()].map(run => run.run) }); return }
    if (parts[1] === 'runs') {
      const run = state.runs.get(parts[2])
      if (!run) { json(404, { error: `no run is called ${parts[2]}` }); return }
      if (parts.length === 3 && request.method === 'DELETE') {
        if (url.searchParams.get('confirm') !== parts[2]) { json(409, { error: 'the id must be repeated' }); return }
        state.runs.delete(parts[2])
        json(200, {})
      } else if (parts.length === 3) json(200, { ...run, profile: null })
      else if (parts[3] === 'profile') json(200, run.profile ?? [])
      else if (parts[3] === 'trials') json(200, run.trials.find(trial => trial.seq === Number(parts[4])) ?? null)
      else if (parts[3] === 'labels') void body().then(bytes => { Object.assign(run.run.labels, JSON.parse(bytes)); json(200, {}) })
      else if (parts[3] === 'live') {
        answer.writeHead(200, { ...headers, 'content-type': 'text/event-stream' })
        answer.write('event: ping\ndata: {}\n\n')
        const listeners = state.live.get(parts[2])
        listeners?.add(answer)
        request.on('close', () => listeners?.delete(answer))
      } else json(404, { error: 'no such page' })
      return
    }
    if (parts[1] === 'ticks' && parts[2] === 'live') { answer.writeHead(200, { ...headers, 'content-type': 'text/event-stream' }); answer.write('event: ping\ndata: {}\n\n'); return }
    if (parts[1] === 'ticks' && request.method === 'POST') { void body().then(bytes => json(200, readTicks(url.searchParams.get('name'), bytes.toString()))); return }
    if (parts[1] === 'ticks') { json(200, { files: state.ticks }); return }
    json(404, { error: 'no such page' })
  })
  await new Promise(resolve => server.listen(port, '127.0.0.1', resolve))
  const timer = pace > 0 ? play(state, pace) : null
  return {
    url: `http://127.0.0.1:${server.address().port}`, state,
    close: () => { clearInterval(timer); server.closeAllConnections(); return new Promise(resolve => server.close(resolve)) },
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { url } = await serve({ port: 42099, pace: 1000 })
  console.log(`planted runs at ${url}`)
}
