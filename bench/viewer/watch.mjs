// A climb of the real program, watched in real time: what the page's memory does, and what watching costs a processor.
//
//   cargo build --release && npm --prefix web ci && node bench/viewer/watch.mjs [--minutes 10] [--games 500] [--out FILE]
//
// One rung of `arena` is held; every half minute the page's heap is read behind a collection of its garbage, with its nodes
// and the processor time and memory of all processes of the browser and of the climb itself (/proc).

import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { launch } from '../../web/e2e/browser.mjs'

const option = (name, otherwise) => process.argv.includes(name) ? process.argv[process.argv.indexOf(name) + 1] : otherwise
const minutes = Number(option('--minutes', 10))
const games = Number(option('--games', 500))
const program = process.env.STEPLADDER ?? fileURLToPath(new URL('../../target/release/stepladder', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'stepladder-watch-'))

/** Of a process: parent, CPU in s, resident bytes, and those it shares with none (the rest of a browser's are libraries). */
function processOf(pid) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const [, rss, shared] = readFileSync(`/proc/${pid}/statm`, 'utf8').split(' ').map(Number)
    return { parent: Number(fields[1]), cpu_s: (Number(fields[11]) + Number(fields[12])) / 100, own_bytes: (rss - shared) * 4096 }
  } catch { return null }
}

/** A process and all below it, summed. */
function tree(root) {
  const all = new Map()
  for (const name of readdirSync('/proc')) if (/^\d+$/.test(name)) { const one = processOf(name); if (one) all.set(Number(name), one) }
  const below = pid => pid === root || (all.has(pid) && all.get(pid).parent > 1 && below(all.get(pid).parent))
  const sum = { cpu_s: 0, own_bytes: 0 }
  for (const [pid, one] of all) if (below(pid)) { sum.cpu_s += one.cpu_s; sum.own_bytes += one.own_bytes }
  return sum
}

const hold = Math.round(minutes * 60) + 45
const climb = spawn(program, ['climb', 'arena', '--view', '--rungs', String(games), '--hold', `${hold}s`, '--store', join(folder, 'watch.db'), '--json', join(folder, 'watch.json')],
  { stdio: ['ignore', 'ignore', 'pipe'] })
const isOver = new Promise(resolve => climb.on('exit', resolve))
let browser = null
const samples = []
try {
  const url = await new Promise((resolve, reject) => {
    let said = ''
    climb.stderr.on('data', bytes => {
      said += bytes
      const found = /watch it: (\S+)\s/.exec(said)
      if (found) resolve(found[1])
    })
    climb.on('exit', code => reject(new Error(`the climb ended with ${code}: ${said}`)))
  })
  browser = await launch()
  const browserPid = () => readdirSync('/proc').filter(name => /^\d+$/.test(name)).map(Number).filter(pid => processOf(pid)?.parent === process.pid && pid !== climb.pid)
  const page = await browser.newPage({ viewport: { width: 1360, height: 900 } })
  await page.goto(url)
  await page.waitForSelector('.progress .phase')
  await page.waitForFunction(() => document.querySelector('.progress .phase')?.textContent === 'hold', null, { timeout: 120_000 })
  const session = await page.context().newCDPSession(page)
  const began = Date.now()
  for (;;) {
    await session.send('HeapProfiler.collectGarbage')
    const [{ usedSize }, { nodes, jsEventListeners }] = [await session.send('Runtime.getHeapUsage'), await session.send('Memory.getDOMCounters')]
    const browserIs = browserPid().map(tree).reduce((sum, one) => ({ cpu_s: sum.cpu_s + one.cpu_s, own_bytes: sum.own_bytes + one.own_bytes }))
    samples.push({
      at_s: (Date.now() - began) / 1000, heap_bytes: usedSize, nodes, listeners: jsEventListeners,
      browser: browserIs, climb: tree(climb.pid),
    })
    const now = samples.at(-1)
    console.log(`${now.at_s.toFixed(0).padStart(4)} s  heap ${(usedSize / 1e6).toFixed(2)} MB  nodes ${nodes}  listeners ${jsEventListeners}  browser ${(browserIs.own_bytes / 1e6).toFixed(0)} MB, ${browserIs.cpu_s.toFixed(1)} CPU-s`)
    if (now.at_s >= minutes * 60) break
    await page.waitForTimeout(Math.min(30_000, minutes * 60_000 - now.at_s * 1000 + 50))
  }
} finally {
  await browser?.close()
  climb.kill('SIGINT')
  await isOver
  rmSync(folder, { recursive: true, force: true })
}
// The first half minute fills caches and compiles code.
const [from, to] = [samples[1] ?? samples[0], samples.at(-1)]
const results = {
  measured: new Date().toISOString().slice(0, 10), cpu: cpus()[0].model, cores: cpus().length, games,
  commit: execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim(), load_after: readFileSync('/proc/loadavg', 'utf8').trim(),
  heap_bytes_per_s: (to.heap_bytes - from.heap_bytes) / (to.at_s - from.at_s), nodes_gained: to.nodes - from.nodes,
  browser_cores: (to.browser.cpu_s - from.browser.cpu_s) / (to.at_s - from.at_s), climb_cores: (to.climb.cpu_s - from.climb.cpu_s) / (to.at_s - from.at_s), samples,
}
console.log(`heap ${results.heap_bytes_per_s.toFixed(0)} B/s, nodes ${results.nodes_gained >= 0 ? '+' : ''}${results.nodes_gained}, the browser took ${results.browser_cores.toFixed(3)} cores, the climb ${results.climb_cores.toFixed(3)}`)
const out = option('--out', null)
if (out) writeFileSync(out, `${JSON.stringify(results, null, 1)}\n`)
