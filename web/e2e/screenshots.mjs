// Pictures of every page, for people to look at: light and dark, wide and narrow. `npm run screenshots [FOLDER] [PART OF A NAME]`

import { mkdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { launch } from './browser.mjs'
import { readTicks, serve } from './server.mjs'

const folder = process.argv[2] ?? fileURLToPath(new URL('../screenshots', import.meta.url))
const only = process.argv[3] ?? ''
mkdirSync(folder, { recursive: true })

const log = (name, late, stall) => {
  const lines = []
  for (let t = 0; t < 50; t++) {
    const off = Math.round(1000 * late * (0.7 + ((t * 7) % 10) / 15))
    lines.push(JSON.stringify({ level: 40, time: 1795230437402 + t * 1000, title: 'tickInterval', pointSet: { 13: off / 5 | 0, 15: 300, 16: 1300 - off, 17: 1200, 18: off, 19: off / 2 | 0, 21: off / 4 | 0, [stall]: t % 9 === 0 ? 3 : 0 } }))
    lines.push(JSON.stringify({ level: 40, time: 1795230437402 + t * 1000, title: 'tickOnTime', count: 2800 - off }))
    lines.push(JSON.stringify({ level: 40, time: 1795230437402 + t * 1000, title: 'tickIntervalOverrun', count: off * 2 }))
    lines.push(JSON.stringify({ level: 40, time: 1795230437402 + t * 1000, title: 'tickIntervalUnderrun', count: off / 5 | 0 }))
  }
  return readTicks(name, lines.join('\n'))
}

const full = await serve({ ticks: [log('game-500.log', 0.08, 62), log('game-1000.log', 0.33, 115)] })
const empty = await serve({ runs: [] })
const PAGES = [
  ['runs', full, '#/'], ['run', full, '#/runs/arena-1'], ['twenty', full, '#/runs/arena-3'], ['one-rung', full, '#/runs/arena-4'], ['died', full, '#/runs/arena-5'],
  ['limited', full, '#/runs/arena-6'], ['chat', full, '#/runs/chat-1'], ['sweep', full, '#/runs/poll-loop-1'], ['clients', full, '#/runs/clients-1'], ['duel', full, '#/runs/duel-1'], ['profiled', full, '#/runs/profiled-1'], ['clients-broken', full, '#/runs/broken-clients-1'], ['interrupted', full, '#/runs/arena-7'],
  ['compare', full, '#/compare/arena-1,arena-2'], ['beside', full, '#/compare/clients-1,clients-2'], ['ticks', full, '#/ticks'], ['empty', empty, '#/'], ['empty-ticks', empty, '#/ticks'], ['live', null, '#/runs/live-1', 3400],
]
const LOOKS = [['light-wide', 'light', 1280], ['dark-wide', 'dark', 1280], ['light-middle', 'light', 768], ['light-narrow', 'light', 390], ['dark-narrow', 'dark', 390]]

const browser = await launch()
let bad = 0
for (const [name, server, hash, wait = 350] of PAGES) {
  for (const [look, scheme, width] of LOOKS) {
    if (!`${name}-${look}`.includes(only)) continue
    // A live run is another second later: each picture has one of its own.
    const from = server ?? await serve({ pace: 100 })
    const context = await browser.newContext({ colorScheme: scheme, viewport: { width, height: width > 600 ? 900 : 800 } })
    const page = await context.newPage()
    page.on('console', message => { if (message.type() === 'error') { bad++; console.error(`${name} ${look}: ${message.text()}`) } })
    page.on('pageerror', error => { bad++; console.error(`${name} ${look}: ${error.message}`) })
    await page.goto(`${from.url}/${hash}`)
    await page.waitForSelector('main')
    await page.waitForTimeout(wait)
    const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)
    if (over > 0) { bad++; console.error(`${name} ${look}: ${over} px too wide`) }
    await page.screenshot({ path: join(folder, `${name}-${look}.png`), fullPage: true })
    await context.close()
    if (!server) await from.close()
  }
}
await browser.close()
for (const server of [full, empty]) await server.close()
console.log(`pictures in ${folder}`)
process.exit(bad > 0 ? 1 : 0)
