// What the page costs a browser: redraws, first paint, memory of a run that is watched. Planted runs over loopback.
//
//   npm --prefix web ci && npm --prefix web run build && node bench/viewer/browser.mjs [--watch SECONDS] [--out FILE]
//
// The server is web/e2e/server.mjs, so the figures are the page's own; those of the viewer are measured apart.

import { execFileSync } from 'node:child_process'
import { readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { cpus } from 'node:os'
import { launch } from '../../web/e2e/browser.mjs'
import { BUNDLE, serve } from '../../web/e2e/server.mjs'
import { begun, held } from '../../web/fixtures/planted.mjs'

const option = (name, otherwise) => process.argv.includes(name) ? process.argv[process.argv.indexOf(name) + 1] : otherwise
const watched = Number(option('--watch', 60))

/** Of raw values, by rank. */
function told(values) {
  const sorted = values.slice().sort((a, b) => a - b)
  const at = q => sorted[Math.min(sorted.length - 1, Math.ceil(q * sorted.length) - 1)]
  return { count: sorted.length, p50: at(0.5), p95: at(0.95), max: sorted.at(-1) }
}

async function opened(browser, url) {
  const context = await browser.newContext({ viewport: { width: 1360, height: 900 } })
  const page = await context.newPage()
  await page.goto(url)
  return { context, page }
}

/** Charts of a trial of `seconds` seconds, redrawn whole and zoomed. */
async function redraws(browser, seconds) {
  const server = await serve({ runs: [held('long', [30_000], { seconds })] })
  const { context, page } = await opened(browser, `${server.url}/#/runs/long`)
  await page.waitForSelector('#panel-generator canvas')
  await page.waitForTimeout(1000)
  // Each redraw thins 100 k rows to the width, scales and strokes; the second half shows a zoom to 70 % of them.
  const over = page.locator('#panel-flow .u-over').first()
  await over.scrollIntoViewIfNeeded()
  const raw = []
  for (let round = 0; round < 40; round++) {
    if (round === 20) {
      const box = await over.boundingBox()
      await page.mouse.move(box.x + box.width * 0.1, box.y + 30)
      await page.mouse.down()
      await page.mouse.move(box.x + box.width * 0.8, box.y + 40, { steps: 2 })
      await page.mouse.up()
    }
    raw.push(...await page.evaluate(() => stepladderRedraw()))
    await page.waitForTimeout(20)
  }
  // What a reader feels while the cursor moves: time between frames.
  const frames = await page.evaluate(async () => {
    const over = document.querySelector('#panel-flow .u-over')
    const box = over.getBoundingClientRect()
    const at = []
    for (let frame = 0; frame < 180; frame++) {
      const now = await new Promise(resolve => requestAnimationFrame(resolve))
      at.push(now)
      over.dispatchEvent(new MouseEvent('mousemove', { bubbles: true, clientX: box.left + box.width * (frame / 180), clientY: box.top + 40 }))
    }
    return at.slice(1).map((now, frame) => now - at[frame])
  })
  await context.close()
  await server.close()
  return { points_per_column: seconds, redraw_ms: told(raw), cursor_frame_ms: told(frames), raw_redraw_ms: raw.map(ms => Number(ms.toFixed(2))) }
}

/** From the navigation to the first paint, and to the ladder, of a run of ten rungs of 60 s. */
async function paints(browser, times) {
  const loads = Array.from({ length: 10 }, (_, at) => 200 + at * 200)
  const server = await serve({ runs: [held('ten', loads, { seconds: 60 })] })
  // What this machine and browser take for a page of one word, alternating with ours: below that nothing can be.
  const blank = createServer((_, answer) => answer.writeHead(200, { 'content-type': 'text/html' }).end('<!doctype html><title>blank</title>word'))
  await new Promise(resolve => blank.listen(0, '127.0.0.1', resolve))
  const out = { blank_first_paint_ms: [], first_paint_ms: [], ladder_ms: [], charts_ms: [] }
  for (let round = 0; round < times; round++) {
    const bare = await browser.newContext({ viewport: { width: 1360, height: 900 } })
    const word = await bare.newPage()
    await word.goto(`http://127.0.0.1:${blank.address().port}/`)
    await word.waitForFunction(() => performance.getEntriesByName('first-contentful-paint').length > 0)
    out.blank_first_paint_ms.push(await word.evaluate(() => performance.getEntriesByName('first-contentful-paint')[0].startTime))
    await bare.close()
    // A context of its own: nothing is cached, as on a first visit.
    const context = await browser.newContext({ viewport: { width: 1360, height: 900 } })
    const page = await context.newPage()
    await page.addInitScript(() => {
      globalThis.seen = {}
      const look = () => {
        if (!seen.ladder && document.querySelector('.ladder .rung')) seen.ladder = performance.now()
        if (!seen.charts && document.querySelector('#panel-generator canvas')) seen.charts = performance.now()
        if (!seen.charts) requestAnimationFrame(look)
      }
      requestAnimationFrame(look)
    })
    await page.goto(`${server.url}/#/runs/ten`)
    await page.waitForFunction(() => seen.charts && performance.getEntriesByName('first-contentful-paint').length > 0)
    const now = await page.evaluate(() => ({ ...seen, paint: performance.getEntriesByName('first-contentful-paint')[0].startTime }))
    out.first_paint_ms.push(now.paint)
    out.ladder_ms.push(now.ladder)
    out.charts_ms.push(now.charts)
    await context.close()
  }
  await server.close()
  blank.close()
  return { rungs: 10, hold_s: 60, ...Object.fromEntries(Object.entries(out).map(([name, values]) => [name, told(values)])), raw: out }
}

/** The page's heap while a run is watched, 20 of its seconds in one; what the columns themselves need is told apart. */
async function memory(browser, seconds) {
  const pace = 50
  const server = await serve({ runs: [], pace: 0 })
  const live = held('watched', [500], { seconds: Math.round((seconds * 1000) / pace) + 60, state: 'running' })
  const [full] = live.trials
  Object.assign(live, { climb: null, trials: [{ ...begun(full), events: full.events.slice(0, 2) }] })
  const listeners = new Set()
  server.state.runs.set('watched', live)
  server.state.live.set('watched', listeners)
  const { context, page } = await opened(browser, `${server.url}/#/runs/watched`)
  const session = await context.newCDPSession(page)
  const heap = async () => {
    await session.send('HeapProfiler.collectGarbage')
    const [{ usedSize }, { nodes }] = [await session.send('Runtime.getHeapUsage'), await session.send('Memory.getDOMCounters')]
    return { heap_bytes: usedSize, nodes }
  }
  const names = Object.keys(full.series).filter(name => name !== 't')
  let t = 0
  const timer = setInterval(() => {
    if (t >= full.series.t.length) return
    const data = { seq: full.seq, t, values: Object.fromEntries(names.map(name => [name, full.series[name][t]])) }
    for (const answer of listeners) answer.write(`event: second\ndata: ${JSON.stringify(data)}\n\n`)
    t++
  }, pace)
  const samples = []
  for (let step = 0; step <= 6; step++) {
    await page.waitForTimeout(step === 0 ? 3000 : (seconds * 1000) / 6)
    samples.push({ seconds_seen: t, ...await heap() })
  }
  clearInterval(timer)
  await context.close()
  await server.close()
  const [from, to] = [samples[1], samples.at(-1)]
  return {
    seconds_per_second: 1000 / pace, columns: names.length, samples,
    heap_bytes_per_second_seen: (to.heap_bytes - from.heap_bytes) / (to.seconds_seen - from.seconds_seen), nodes_gained: to.nodes - from.nodes,
  }
}

const browser = await launch()
const results = {
  measured: new Date().toISOString().slice(0, 10), chromium: browser.version(), node: process.version, cpu: cpus()[0].model, cores: cpus().length,
  commit: execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim(), load_before: readFileSync('/proc/loadavg', 'utf8').trim(),
  bundle_bytes: statSync(BUNDLE).size, redraws: await redraws(browser, 100_000), first_paint: await paints(browser, 20), memory: await memory(browser, watched),
}
await browser.close()
const show = ({ p50, p95, max, count }) => `p50 ${p50.toFixed(1)} ms, p95 ${p95.toFixed(1)} ms, longest ${max.toFixed(1)} ms (${count})`
console.log(`redraw of a chart with 100 k points per column: ${show(results.redraws.redraw_ms)}; goal p95 ≤ 16 ms`)
console.log(`frames while the cursor moves: ${show(results.redraws.cursor_frame_ms)}`)
console.log(`first paint: ${show(results.first_paint.first_paint_ms)}; goal ≤ 300 ms; of a page of one word: ${show(results.first_paint.blank_first_paint_ms)}`)
console.log(`ladder drawn: ${show(results.first_paint.ladder_ms)}; every chart: ${show(results.first_paint.charts_ms)}`)
console.log(`watched ${results.memory.samples.at(-1).seconds_seen} s of a run: ${results.memory.heap_bytes_per_second_seen.toFixed(0)} B of heap per second in ${results.memory.columns} columns, ${results.memory.nodes_gained} nodes gained`)
const out = option('--out', null)
if (out) writeFileSync(out, `${JSON.stringify(results, null, 1)}\n`)
