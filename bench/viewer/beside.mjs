// What a climb reads while it is watched: the same rung without a viewer, with one that nobody looks at, and with a browser
// on the same machine that shows every second. The three alternate, so that a noisy minute falls on all.
//
//   cargo build --release && npm --prefix web ci && node bench/viewer/beside.mjs [--rounds 3] [--games 500] [--hold 30s] [--out FILE]

import { execFileSync, spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { launch } from '../../web/e2e/browser.mjs'

const option = (name, otherwise) => process.argv.includes(name) ? process.argv[process.argv.indexOf(name) + 1] : otherwise
const rounds = Number(option('--rounds', 3))
const games = option('--games', '500')
const hold = option('--hold', '30s')
const program = process.env.STEPLADDER ?? fileURLToPath(new URL('../../target/release/stepladder', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'stepladder-beside-'))
const WAYS = ['alone', 'with a viewer', 'watched by a browser']

async function climb(way, round) {
  const json = join(folder, `${WAYS.indexOf(way)}-${round}.json`)
  const words = ['climb', 'arena', '--rungs', games, '--hold', hold, '--store', join(folder, 'beside.db'), '--json', json, ...(way === 'alone' ? [] : ['--view'])]
  const child = spawn(program, words, { stdio: ['ignore', 'ignore', 'pipe'] })
  const isOver = new Promise(resolve => child.on('exit', resolve))
  let browser = null
  try {
    let said = ''
    child.stderr.setEncoding('utf8').on('data', text => { said += text })
    if (way === 'watched by a browser') {
      while (!/watch it: \S+\s/.test(said)) await new Promise(resolve => setTimeout(resolve, 20))
      browser = await launch()
      const page = await browser.newPage({ viewport: { width: 1360, height: 900 } })
      await page.goto(/watch it: (\S+)\s/.exec(said)[1])
    }
    await isOver
  } finally {
    await browser?.close()
    child.kill('SIGINT')
  }
  const rung = JSON.parse(readFileSync(json, 'utf8')).rungs[0]
  return {
    way, round, verdict: rung.verdict, late_share: rung.ticks.late_share, tick_p99_ns: rung.ticks.interval_ns.p99, response_p50_ns: rung.response_ns.p50,
    send_lag_p99_ns: rung.send_lag_ns.p99, server_cores: rung.subject.cpu_cores, bots_cores: rung.worker.cpu_cores, disturbed_share: rung.disturbed_share,
  }
}

const raw = []
try {
  for (let round = 0; round < rounds; round++) for (const way of WAYS) {
    raw.push(await climb(way, round))
    console.log(JSON.stringify(raw.at(-1)))
  }
} finally {
  rmSync(folder, { recursive: true, force: true })
}
const median = values => values.slice().sort((a, b) => a - b)[Math.floor(values.length / 2)]
const figures = Object.keys(raw[0]).filter(name => typeof raw[0][name] === 'number' && name !== 'round')
const medians = Object.fromEntries(WAYS.map(way => [way, Object.fromEntries(figures.map(name => [name, median(raw.filter(one => one.way === way).map(one => one[name]))]))]))
console.table(medians)
const out = option('--out', null)
if (out) {
  writeFileSync(out, `${JSON.stringify({
    measured: new Date().toISOString().slice(0, 10), cpu: cpus()[0].model, cores: cpus().length, games, hold,
    commit: execFileSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).trim(), medians, raw,
  }, null, 1)}\n`)
}
