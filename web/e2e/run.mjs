// The page in a browser, over planted runs: what a reader does and sees. `npm run e2e [PART OF A NAME]`
//
// Every test has a server and a context of its own (harness.mjs); it is the page alone that is tried here, since the
// server is server.mjs. What stands behind the real program is in real.mjs.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { deflateSync } from 'node:zlib'
import { crowd, held, planted } from '../fixtures/planted.mjs'
import { answerOf, eventually, saysAnswer, test as testOf, walk } from './harness.mjs'
import { reportOf, serve } from './server.mjs'

const folder = mkdtempSync(join(tmpdir(), 'stepladder-e2e-'))
process.on('exit', () => rmSync(folder, { recursive: true }))
const test = (name, options, body) => testOf(name, options, given => body({
  ...given,
  open: async hash => {
    // Another hash alone would be the same document: each page is opened as a reader opens it.
    await given.page.goto('about:blank')
    await given.page.goto(`${given.server.url}/${hash}`)
  },
}))

test('a rung appears, its seconds arrive, its verdict is shown, and the run ends with three answers', { pace: 200 }, async ({ page, open }) => {
  await open('#/runs/live-1')
  await page.waitForSelector('.progress .phase')
  await eventually(async () => assert.match(await page.textContent('.progress'), /rung 500 games/))
  await page.waitForSelector('.rung-head .badge.live')
  // The table behind a chart grows as seconds arrive.
  await page.click('#panel-flow .chart button')
  const rows = () => page.locator('#panel-flow .behind tbody tr').count()
  const before = await rows()
  await page.waitForFunction(was => document.querySelectorAll('#panel-flow .behind tbody tr').length > was, before, { timeout: 20_000 })
  await page.waitForSelector('.rungs tr:nth-child(1) .mark.pass', { timeout: 20_000 })
  await eventually(async () => assert.match(await page.textContent('#why_not_more'), /nothing failed yet/))
  await page.waitForSelector('.rungs tr:nth-child(2) .mark.fail', { timeout: 20_000 })
  await page.waitForSelector('.progress', { state: 'hidden', timeout: 20_000 })
  await eventually(async () => assert.equal(await page.textContent('#how_many .lead'), '500 – 1000 games'))
  await eventually(async () => assert.match(await page.textContent('#why_not_more .lead'), /late share of ticks \d\d\.\d %/))
  await eventually(async () => assert.equal(await page.textContent('#can_i_trust_it .lead'), 'Yes'))
  await eventually(async () => assert.equal(await page.locator('.ladder .rung').count(), 2))
})

test('the three answers are the words of the run, letter by letter', {}, async ({ page, open, server }) => {
  for (const id of ['arena-1', 'arena-6', 'chat-1']) {
    await open(`#/runs/${id}`)
    await page.waitForSelector('#how_many')
    for (const { id: answer, text } of server.state.runs.get(id).climb.conclusions.slice(0, 3)) {
      await eventually(async () => await saysAnswer(page, answer, text, id))
    }
    const { words, whole } = await answerOf(page, 'can_i_trust_it')
    assert.ok(!words.startsWith(whole.split(':')[0]), `said twice: ${whole}`)
  }
})

test('a rung opens by click, by j and k, and by Enter on the ladder; its address can be kept', {}, async ({ page, open }) => {
  await open('#/runs/arena-1')
  const heading = () => page.textContent('.rung-head h2')
  await page.waitForSelector('.rung-head')
  await eventually(async () => assert.equal(await heading(), 'Rung 2000 games', 'the first that failed is open'))
  await page.click('.ladder .rung[data-seq="1"]')
  await eventually(async () => assert.equal(await heading(), 'Rung 500 games'))
  await page.keyboard.press('j')
  await eventually(async () => assert.equal(await heading(), 'Rung 1000 games'))
  await page.keyboard.press('k')
  await page.keyboard.press('k')
  await eventually(async () => assert.equal(await heading(), 'Rung 500 games'))
  await page.focus('.ladder .rung[data-seq="3"]')
  await page.keyboard.press('Enter')
  await eventually(async () => assert.equal(await heading(), 'Rung 2000 games'))
  await page.reload()
  await page.waitForSelector('.rung-head')
  await eventually(async () => assert.equal(await heading(), 'Rung 2000 games'))
  await eventually(() => assert.match(page.url(), /#\/runs\/arena-1\/3$/))
})

test('t shows the numbers behind every chart, d changes the light, ? tells the keys', {}, async ({ page, open }) => {
  await open('#/runs/arena-1')
  await page.waitForSelector('.chart canvas')
  const charts = await eventually(async () => {
    const charts = await page.locator('.chart').count()
    assert.ok(charts >= 10, `${charts} charts`)
    return charts
  })
  await page.keyboard.press('t')
  await eventually(async () => assert.equal(await page.locator('.chart .behind table').count(), charts))
  await page.keyboard.press('t')
  await eventually(async () => assert.equal(await page.locator('.chart .behind table').count(), 0))
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor)
  const light = await ground()
  await page.keyboard.press('d')
  await eventually(async () => assert.notEqual(await ground(), light))
  await page.keyboard.press('?')
  await page.waitForSelector('dialog kbd')
  await page.keyboard.press('Escape')
  await eventually(async () => assert.equal(await page.locator('dialog').count(), 0))
})

test('the cursor of one chart is the cursor of all, and a zoom too', {}, async ({ page, open }) => {
  await open('#/runs/arena-1')
  await page.waitForSelector('#panel-flow .u-over')
  const over = page.locator('#panel-flow .u-over').first()
  await over.scrollIntoViewIfNeeded()
  const box = await over.boundingBox()
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2)
  await page.waitForFunction(() => document.querySelector('#panel-ticks .legend b').textContent.trim() !== '')
  await eventually(async () => assert.match(await page.textContent('#panel-latency .legend'), /p99 \d/))
  await page.mouse.move(box.x + box.width * 0.3, box.y + 20)
  await page.mouse.down()
  await page.mouse.move(box.x + box.width * 0.6, box.y + 30, { steps: 4 })
  await page.mouse.up()
  await page.mouse.move(box.x + 2, box.y + 20)
  // At the left edge stands a second of the middle now, in the other charts as well: 30 % of 14 s.
  for (const panel of ['flow', 'ticks', 'subject']) {
    await page.waitForFunction(id => /^0:0[3-5]$/.test(document.querySelector(`#panel-${id} .legend .under`).textContent), panel)
  }
  await over.dblclick({ position: { x: 2, y: 20 } })
  await page.waitForFunction(() => document.querySelector('#panel-ticks .legend .under').textContent === '0:00')
})

test('a comparison of clients shows its figures, its limits, and its runs one after the other', {}, async ({ page, open, server }) => {
  await open('#/')
  await page.click('.row >> text=clients-1 >> nth=-1')
  await page.waitForSelector('#panel-clients table')
  const { comparison } = server.state.runs.get('clients-1').bench
  await eventually(async () => {
    const rows = await page.locator('#panel-clients .clients').first().locator('tbody tr').evaluateAll(all => all.map(row => [...row.children].map(cell => cell.textContent)))
    assert.deepEqual(rows.map(row => row[0]), ['get 3 B, 100 in flight', 'rust', 'node', 'python', 'get 1 KB, 100 in flight', 'rust', 'node', 'python'])
    assert.deepEqual(rows[2].slice(1, 4), ['30\u202f600/s', '1.96 %', '0.51 × (0.49–0.54)'])
  })
  await eventually(async () => assert.deepEqual(await page.locator('.doubts li').allTextContents(), comparison.limits))
  await eventually(async () => assert.equal(await page.locator('#panel-clients b.bad').textContent(), '7', 'what failed stands out'))
  await eventually(async () => assert.match(await page.textContent('.errors'), /no result within 10000 ms/))
  await eventually(async () => assert.equal(await page.locator('.rates circle').count(), 9, 'a dot per run'))
  // Three runs of five seconds each of three clients, with a gap between any two.
  await page.click('#panel-task .chart.wide button')
  const seconds = () => page.locator('#panel-task .chart.wide .behind tbody tr').evaluateAll(all => all.map(row => [...row.children].map(cell => cell.textContent)))
  await eventually(async () => assert.equal((await seconds()).length, 45))
  await eventually(async () => assert.deepEqual((await seconds())[0].slice(1), ['60\u202f000/s', '—', '—']))
  await page.keyboard.press('j')
  await eventually(async () => assert.equal(await page.locator('#panel-task select').inputValue(), '1'))
  await eventually(async () => assert.deepEqual((await seconds())[0].slice(1), ['30\u202f000/s', '—', '—']))
  await eventually(async () => assert.equal(await page.locator('.actions >> text=Compare').count(), 0))
})

test('a comparison that broke off says why and how far it got', {}, async ({ page, open }) => {
  await open('#/runs/broken-clients-1')
  await page.waitForSelector('#panel-clients table')
  await eventually(async () => assert.equal(await page.textContent('.reason'), 'This comparison could not go on: client node: it wrote nothing for 30 s and was stopped. 1 of 18 runs were measured.'))
  await eventually(async () => assert.match(await page.textContent('.doubts'), /Each client ran once/))
  await open('#/')
  await page.waitForSelector('.row:has-text("broken-clients-1")')
  await eventually(async () => assert.match(await page.textContent('.row:has-text("broken-clients-1") .found'), /it wrote nothing for 30 s/))
})

test('two comparisons of clients are chosen and laid beside each other, and nothing else with them', {}, async ({ page, open }) => {
  await open('#/')
  await page.waitForSelector('[data-run="clients-1"]')
  await eventually(async () => assert.ok(await page.isDisabled('[data-run="duel-1"]')))
  await eventually(async () => assert.ok(await page.isEnabled('[data-run="arena-1"]')))
  await page.check('[data-run="clients-1"]')
  await page.waitForSelector('[data-run="arena-1"]:disabled')
  await page.check('[data-run="clients-2"]')
  await page.waitForSelector('[data-run="broken-clients-1"]:disabled')
  await page.click('text=Compare 2')
  await page.waitForSelector('.beside .pairs svg')
  await eventually(async () => assert.equal(await page.textContent('.compare h1'), 'Old against new'))
  await eventually(async () => assert.match(await page.textContent('.doubts'), /The machines differ \(kernel\).*single runs overlap in 1 of 2 rows.*not interleaved/s))
  const row = () => page.locator('.pairs section:first-child tbody tr:first-child').allTextContents()
  await eventually(async () => assert.deepEqual(await row(), ['operations60\u202f000/s66\u202f000/s+10 %']))
  await eventually(async () => assert.match(await page.textContent('.beside'), /Only in clients-1: python, get 3 B, 100 in flight; rust, get 1 KB/))
  await eventually(async () => assert.equal(await page.locator('.pairs svg.rates circle').count(), 3 + 2 + 3 + 2))
})

test('a duel shows its verdicts and how the interval narrowed block by block', {}, async ({ page, open, server }) => {
  await open('#/')
  await eventually(async () => assert.match(await page.textContent('.row:has-text("duel-1") .found'), /response.p50 is slower with B/))
  await page.click('.row >> text=duel-1 >> nth=-1')
  await page.waitForSelector('.found-by table')
  const [load] = server.state.runs.get('duel-1').duel.loads
  await eventually(async () => {
    const rows = await page.locator('.found-by tbody tr').evaluateAll(all => all.map(row => [...row.children].map(cell => cell.textContent)))
    assert.deepEqual(rows.map(row => [row[2], row[1]]), load.figures.map(one => [one.change, one.in_words]))
    assert.equal(rows[0][1], 'slower')
  })
  await eventually(async () => assert.match(await page.textContent('.gates'), /response.p50 < \+5%: not met/))
  await eventually(async () => assert.equal((await page.textContent('.run-head .badge')).trim(), 'finished', 'both sides together pass nothing'))
  // What is known to differ first is drawn first; a dot for each block.
  await eventually(async () => assert.equal(await page.inputValue('#panel-blocks select >> nth=1'), 'response.p50'))
  await eventually(async () => assert.equal(await page.locator('.duel-chart .block').count(), 6))
  await eventually(async () => assert.equal(await page.locator('.duel-chart .ends').count(), 3, 'an interval from the fourth block on'))
  await page.click('#panel-blocks summary')
  const blocks = () => page.locator('#panel-blocks tbody tr').evaluateAll(all => all.map(row => [...row.children].map(cell => cell.textContent)))
  await eventually(async () => assert.deepEqual((await blocks()).map(row => row[5] !== ''), [false, false, false, true, true, true]))
  await page.selectOption('#panel-blocks select >> nth=1', 'ticks.late_share')
  await eventually(async () => assert.equal((await blocks())[0][3], '+2 pp'))
  // Each trial of both sides opens below.
  await eventually(async () => assert.equal(await page.locator('.rungs tbody tr').count(), 12))
  await page.click('.rungs [data-row="1"]')
  await eventually(async () => assert.match(await page.textContent('.rung-head h2'), /side B/))
  await eventually(async () => assert.equal(await page.locator('.ladder, #panel-overlay, #how_many').count(), 0))
})

test('the page answers in the order of the questions, and its heading has the uncertainty', {}, async ({ page, open, server }) => {
  await open('#/runs/arena-1')
  await page.waitForSelector('#panel-broke canvas')
  const order = ['#how_many', '#ladder', '#why_not_more', '#panel-broke', '#can_i_trust_it', '#rungs', '#panel-causes', '#rung', '#panel-machine']
  await eventually(async () => {
    const tops = await page.evaluate(all => all.map(one => [...document.querySelectorAll('main *')].indexOf(document.querySelector(one))), order)
    assert.deepEqual(tops, tops.slice().sort((a, b) => a - b), order.join())
  })
  await eventually(async () => assert.equal((await page.textContent('#how_many h2')).trim(), 'How many? 1000 – 2000 games no confidence: the bounds were held too few times'))
  const { capacity } = server.state.runs.get('arena-1').climb
  Object.assign(capacity, { estimate: 1376.4, interval: [1203.9, 1611.2], confidence: 0.97 })
  await open('#/runs/arena-1')
  await eventually(async () => assert.equal((await page.textContent('#how_many h2')).trim(), 'How many? about 1380 games 1200 to 1610 with 95 %'))
  await eventually(async () => assert.equal(await page.textContent('.ladder .interval title'), 'the capacity lies between 1204 and 1611 with 95 %'))
})

test('the seconds around the moment it broke are those of the rung that failed, whichever is open', {}, async ({ page, open }) => {
  await open('#/runs/arena-1/1')
  await page.waitForSelector('#panel-broke canvas')
  await eventually(async () => assert.match(await page.textContent('#panel-broke'), /^When it broke.*(first second of|into) the hold: late share of ticks [\d.]+ % in that second \(objective: ticks\.late_share < 25%\)/s))
  await eventually(async () => assert.match(await page.textContent('#panel-broke .title'), /at 2000 games$/))
  await open('#/runs/arena-2')
  await page.waitForSelector('#can_i_trust_it summary')
  await eventually(async () => assert.equal(await page.locator('#panel-broke').count(), 0, 'nothing failed'))
})

test('five marks tell by sign and word what the run says of itself, and open to their figures', {}, async ({ page, open, server }) => {
  for (const [id, words] of [['arena-1', ['yes', 'yes', 'with care', 'with care', 'with care']], ['arena-6', ['no', 'yes', 'yes', 'yes', 'no']]]) {
    await open(`#/runs/${id}`)
    await page.waitForSelector('.five summary')
    await eventually(async () => assert.deepEqual(await page.locator('.five .standing').allTextContents(), words))
    await eventually(async () => assert.equal(await page.locator('.five summary .mark').count(), 5))
  }
  await open('#/runs/arena-1')
  await page.focus('[data-mark="generator"] summary')
  await page.keyboard.press('Enter')
  const { rungs } = server.state.runs.get('arena-1').climb
  await eventually(async () => assert.equal(await page.locator('[data-mark="generator"] tbody tr').count(), rungs.length))
  await eventually(async () => assert.ok(await page.isVisible('[data-mark="generator"] table')))
  await eventually(async () => assert.ok(!await page.isVisible('[data-mark="books"] table')))
})

/** What a button of a menu saves. */
async function saved(page, section, label) {
  await page.focus(`${section} .menu summary`)
  if (!await page.locator(`${section} .menu`).evaluate(menu => menu.open)) await page.keyboard.press('Enter')
  const [download] = await Promise.all([page.waitForEvent('download'), page.click(`${section} .menu button[aria-label="${label}"]`)])
  return { name: download.suggestedFilename(), bytes: readFileSync(await download.path()) }
}

test('every section is saved as CSV with its figures and as PNG with its picture, in a report too', { offline: true }, async ({ page }) => {
  const run = planted('arena-1')
  const file = join(folder, 'saved.html')
  writeFileSync(file, reportOf(run))
  await page.goto(pathToFileURL(file).href)
  await page.waitForSelector('#panel-latency canvas, #panel-flow canvas')
  const flow = await saved(page, '#panel-flow', 'CSV of Offered, sent, answered')
  assert.equal(flow.name, 'main-Offered-sent-answered.csv')
  const [head, ...rows] = flow.bytes.toString().trim().split('\r\n').map(line => line.split(','))
  const { series } = run.trials.find(trial => trial.load === 2000)
  assert.deepEqual(head, ['time (s)', 'offered (1/s)', 'sent (1/s)', ...series.answered?.some(value => value !== null) ? ['answered (1/s)'] : []])
  assert.deepEqual(rows.map(row => [Number(row[0]), Number(row[1])]), series.t.map((t, at) => [t, series.offered[at]]))
  const rungs = (await saved(page, '#rungs', 'CSV of The rungs, table')).bytes.toString().trim().split('\r\n').map(line => line.split(','))
  assert.deepEqual(rungs[0].slice(0, 3), ['games', 'verdict', 'late (share)'])
  assert.deepEqual(rungs.slice(1).map(row => [Number(row[0]), row[1], Number(row[2])]), run.climb.rungs.map(rung => [rung.load, rung.verdict.toLowerCase(), rung.ticks.late_share]))
  for (const [section, label, of] of [['#panel-flow', 'PNG of Offered, sent, answered', '#panel-flow .uplot canvas'], ['#ladder', 'PNG of late share of ticks by load', '.ladder']]) {
    const { name, bytes } = await saved(page, section, label)
    assert.match(name, /\.png$/)
    // Larger than what it shows, by title and edge, and of more than its ground.
    const found = await page.evaluate(async ([data, of]) => {
      const image = new Image()
      image.src = `data:image/png;base64,${data}`
      await image.decode()
      const canvas = Object.assign(document.createElement('canvas'), { width: image.width, height: image.height })
      const ctx = canvas.getContext('2d')
      ctx.drawImage(image, 0, 0)
      const pixels = new Uint32Array(ctx.getImageData(0, 0, image.width, image.height).data.buffer)
      const { width, height } = document.querySelector(of).getBoundingClientRect()
      return { wider: image.width - width, higher: image.height - height, colours: new Set(pixels).size, drawn: pixels.filter(pixel => pixel !== pixels[0]).length / pixels.length }
    }, [bytes.toString('base64'), of])
    assert.ok(found.wider > 10 && found.wider < 60 && found.higher > 20 && found.higher < 120, JSON.stringify(found))
    assert.ok(found.colours > 20 && found.drawn > 0.02, JSON.stringify(found))
  }
  await page.keyboard.press('Escape')
  await eventually(async () => assert.equal(await page.locator('#ladder .menu[open]').count(), 0))
})

test('axe finds nothing on any page, light or dark', {}, async ({ page, open }) => {
  const axe = readFileSync(new URL('../node_modules/axe-core/axe.min.js', import.meta.url), 'utf8')
  for (const scheme of ['light', 'dark']) {
    await page.emulateMedia({ colorScheme: scheme })
    for (const hash of ['#/', '#/runs/arena-1', '#/runs/chat-1', '#/runs/poll-loop-1', '#/runs/profiled-1', '#/runs/clients-1', '#/runs/duel-1', '#/compare/arena-1,arena-2', '#/compare/clients-1,clients-2', '#/ticks']) {
      await open(hash)
      await page.waitForSelector('main h1')
      await page.waitForTimeout(300)
      await page.evaluate(() => { for (const details of document.querySelectorAll('details')) details.open = true })
      await page.evaluate(axe)
      const found = await page.evaluate(async () => (await globalThis.axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'], rules: { 'label-content-name-mismatch': { enabled: true } } })).violations
        .map(one => `${one.id}: ${one.nodes.slice(0, 3).map(node => node.html.slice(0, 160)).join(' | ')}`))
      assert.deepEqual(found, [], `${hash} ${scheme}`)
    }
  }
})

test('charts without data are not shown', {}, async ({ page, open }) => {
  await open('#/runs/chat-1')
  await page.waitForSelector('#panel-deliveries')
  await eventually(async () => assert.equal(await page.locator('#panel-ticks, #panel-intervals, #panel-latency').count(), 0))
  await open('#/runs/arena-1')
  await page.waitForSelector('#panel-ticks')
  await eventually(async () => assert.equal(await page.locator('#panel-deliveries').count(), 0))
  await eventually(async () => assert.equal(await page.locator('#panel-generator').count(), 1))
})

test('the agents of a rung are rows, of many the worst, and what is the same for all is said once', { runs: [planted('chat-1'), planted('arena-1'), crowd(100)] }, async ({ page, open }) => {
  const rows = () => page.locator('#panel-agents .agents > .scroll tbody tr').evaluateAll(all => all.map(row => [...row.children].map(cell => cell.textContent)))
  await open('#/runs/chat-1/1')
  await page.waitForSelector('#panel-agents table')
  await eventually(async () => assert.deepEqual((await rows()).map(row => [row[0], row[1]]), [['load-1', '120 µs'], ['load-2', '192 µs']]))
  await eventually(async () => assert.match(await page.textContent('#panel-agents p'), /^2 agents: 128 bots each, 2 workers each, over eth0, 10000 Mbit\/s\./))
  await eventually(async () => assert.equal(await page.locator('.agents details, #panel-agents li').count(), 0))
  await page.keyboard.press('j')
  await eventually(async () => assert.match(await page.textContent('#panel-agents p'), /^2 agents: 256 bots each/, 'those of the rung in view'))
  await open('#/runs/crowd-100/1')
  await page.waitForSelector('.agents details')
  await eventually(async () => assert.deepEqual((await rows()).map(row => row[0]), ['load-0 lost', ...[99, 98, 97, 96, 95, 94, 93].map(at => `load-${at}`)]))
  await eventually(async () => assert.equal(await page.textContent('#panel-agents li'), 'load-0 was lost: nothing was heard of it for 5 s'))
  await eventually(async () => assert.ok(!await page.isVisible('.agents details table')))
  await page.click('.agents summary')
  await eventually(async () => assert.ok(await page.isVisible('.agents details table')))
  await eventually(async () => assert.equal(await page.locator('.agents details tbody tr').count(), 92))
  await open('#/runs/arena-1')
  await page.waitForSelector('#panel-generator')
  await eventually(async () => assert.equal(await page.locator('#panel-agents').count(), 0, 'this process made the load'))
})

test('a figure that may not be stated is a dash that tells why', {}, async ({ page, open }) => {
  await open('#/runs/arena-1/1')
  const dash = page.locator('#panel-figures abbr.unstated').first()
  await dash.waitFor()
  await eventually(async () => assert.equal(await dash.textContent(), '—'))
  await eventually(async () => assert.match(await dash.getAttribute('title'), /needs .* samples .* there are/))
})

test('a sweep has a table per cell and its other conclusions', {}, async ({ page, open }) => {
  await open('#/runs/poll-loop-1')
  await page.waitForSelector('#panel-sweep table')
  await eventually(async () => assert.equal(await page.locator('#panel-sweep table').count(), 3))
  await eventually(async () => assert.match(await page.textContent('#panel-sweep table'), /10\D.*300\.0\/s10\.00/))
  await eventually(async () => assert.match(await page.textContent('#panel-conclusions'), /Failures begin at 15 requesters/))
})

test('a comparison opens from two chosen runs and says how weak it is', {}, async ({ page, open }) => {
  await open('#/')
  await page.check('[data-run="arena-2"]')
  await page.check('[data-run="arena-1"]')
  await page.click('text=Compare 2')
  await page.waitForSelector('.compare .ladder')
  await eventually(async () => assert.equal(await page.textContent('.compare h1'), 'Old against new'))
  await eventually(async () => assert.match(await page.textContent('.doubts'), /not interleaved/))
  await eventually(async () => assert.equal(await page.locator('.compare .ladder .rung').count(), 6))
  await eventually(async () => assert.deepEqual(await page.locator('.side-by-side thead th').allTextContents(), ['load', 'figure', 'main', 'new ticker', 'new : old'], 'the older run stands first'))
  await eventually(async () => assert.ok(await page.locator('.compare .chart canvas').count() >= 3))
})

test('runs are found by the words of a search, and / leads there', {}, async ({ page, open }) => {
  await open('#/')
  await page.waitForSelector('.runs .row')
  await page.keyboard.press('/')
  await page.keyboard.type('ticker release')
  await eventually(async () => assert.deepEqual(await page.locator('.runs .who b').allTextContents(), ['main', 'new ticker']))
  await page.keyboard.type(' nobody')
  await eventually(async () => assert.match(await page.textContent('.runs'), /No run matches/))
})

test('a run is renamed, noted, pinned; a pinned one is not deleted, another only when asked twice', {}, async ({ page, open, server }) => {
  await open('#/runs/arena-4')
  await page.click('text=Rename')
  await page.fill('dialog input', 'a <b>new</b> name')
  await page.keyboard.press('Enter')
  await page.waitForFunction(() => document.querySelector('h1').textContent.startsWith('a <b>new</b> name'))
  await eventually(() => assert.equal(server.state.runs.get('arena-4').run.labels.name, 'a <b>new</b> name'))
  await page.click('text=Pin')
  await page.waitForSelector('.pin')
  await eventually(async () => assert.equal(await page.locator('.actions >> text=Delete').count(), 0))
  await page.click('text=Unpin')
  await page.click('.actions >> text=Delete')
  await page.click('dialog >> text=Delete…')
  await page.fill('dialog input', 'arena')
  await eventually(async () => assert.ok(await page.isDisabled('dialog >> text=Delete for good')))
  await page.keyboard.press('Enter')
  assert.ok(server.state.runs.has('arena-4'), 'half an id deletes nothing')
  await page.fill('dialog input', 'arena-4')
  await page.click('dialog >> text=Delete for good')
  await page.waitForSelector('.runs .row')
  await eventually(() => assert.ok(!server.state.runs.has('arena-4')))
})

test('a tick log is dropped and its figures are those of the file', {}, async ({ page, open }) => {
  await open('#/ticks')
  await page.waitForSelector('.drop')
  const lines = [
    { time: 1000, title: 'tickInterval', pointSet: { 15: 10, 16: 60, 17: 20, 40: 10 } }, { time: 1000, title: 'tickOnTime', count: 90 }, { time: 1000, title: 'tickIntervalOverrun', count: 10 },
    { time: 2000, title: 'tickInterval', pointSet: { 16: 100 } }, { time: 2000, title: 'tickOnTime', count: 100 }, { time: 2000, title: 'games-played', count: 7 },
  ].map(entry => JSON.stringify(entry)).join('\n')
  const dropping = await page.evaluateHandle(text => {
    const data = new DataTransfer()
    data.items.add(new File([`${text}\nnot json`], '<b>game</b>.log'))
    return data
  }, lines)
  await page.dispatchEvent('.drop', 'drop', { dataTransfer: dropping })
  await page.waitForSelector('.ticks table')
  await eventually(async () => {
    const row = await page.locator('.ticks tbody tr').first().locator('th, td').allTextContents()
    assert.deepEqual(row.slice(1, 7), ['7', '190', '10', '0', '0', '5 %'])
    assert.match(row[0], /<b>game<\/b>\.log 1 lines could not be read/)
  })
  await page.waitForSelector('.ticks .chart canvas')
})

test('a report opens from a file without network, and shows the figures of the run', { offline: true }, async ({ page, asked }) => {
  const run = planted('arena-1')
  for (const encoding of ['plain', 'deflate']) {
    let html = reportOf(run)
    if (encoding === 'deflate') {
      const { trials, ...rest } = run
      // The rungs stand once, in `climb`, and all of it is deflated.
      const data = deflateSync(JSON.stringify({ ...rest, trials: trials.map(({ rung: _, ...trial }) => trial) })).toString('base64')
      html = html.replace(/(<script type="application\/json" id="stepladder-data")>[\s\S]*?(<\/script>)/, (_, open, close) => `${open} data-encoding="deflate">${data}${close}`)
    }
    const file = join(folder, `${encoding}.html`)
    writeFileSync(file, html)
    await page.goto(pathToFileURL(file).href)
    await page.waitForSelector('.rung-head')
    for (const { id, text } of run.climb.conclusions) await eventually(async () => await saysAnswer(page, id, text))
    const share = value => { const percent = value * 100; return `${Number(percent.toFixed(percent < 9.995 ? 2 : 1))} %` }
    await eventually(async () => {
      const shown = await page.locator('.rungs tbody tr').evaluateAll(rows => rows.map(row => [...row.children].map(cell => cell.textContent)))
      assert.deepEqual(shown.map(row => [row[0], row[1].trim(), row[2]]), run.climb.rungs.map(rung => [String(rung.load), rung.verdict.toLowerCase(), share(rung.ticks.late_share)]))
    })
    for (const trial of run.trials.filter(trial => trial.rung)) {
      await page.click(`.ladder .rung[data-seq="${trial.seq}"]`)
      const p99 = trial.rung.response_ns.p99
      await eventually(async () => {
        const text = await page.locator('#panel-figures tbody tr').first().locator('td').nth(2).textContent()
        assert.ok(Math.abs(parseFloat(text) * (text.endsWith('ms') ? 1e6 : 1e3) / p99 - 1) < 0.006, `${text} for ${p99} ns`)
      })
    }
    await eventually(async () => assert.equal(await page.locator('.actions, nav.top a').count(), 0, 'a report offers nothing that needs a viewer'))
  }
  assert.deepEqual(asked.filter(url => !url.startsWith('data:')), ['plain', 'deflate'].map(encoding => pathToFileURL(join(folder, `${encoding}.html`)).href))
})

test('a flame graph is drawn at both loads, zoomed by mouse and keys, and searched; a name in it is text', {}, async ({ page, open }) => {
  await open('#/runs/profiled-1')
  await page.waitForSelector('#panel-profile .frames svg')
  const caption = text => eventually(async () => assert.match(await page.textContent('.flame .caption'), text))
  const frame = name => page.locator('.frames .frame').filter({ has: page.locator('title', { hasText: new RegExp(`^${name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}[ :]`) }) })
  const width = async name => Number(await frame(name).first().locator('rect').getAttribute('width'))
  const inFocus = () => page.evaluate(() => document.activeElement.querySelector('title')?.textContent)
  // 5281 samples of 2 ms in 20 000 operations, 2000 in 10 000.
  await caption(/^CPU per message at 1000 games: 528 µs \(5281 samples\); at 500 games: 400 µs \(2000 samples\)\.$/)
  for (const [name, tone] of [['broadcast', /more3/], ['parse', /less3/], ['simulate', /same/], ['sweep', /same/], ['tick', /more3/]]) {
    await eventually(async () => assert.match(await frame(name).first().getAttribute('class'), tone, name))
  }
  await eventually(async () => assert.equal(await frame('tiny').count(), 0, 'less than a thousandth'))
  await eventually(async () => assert.ok(Math.abs(await width('broadcast') / await width('tick') - 3400 / 5200) < 0.01))
  await eventually(async () => assert.equal(await frame('gone').count(), 0))
  await page.selectOption('.flame select >> nth=1', '0')
  await caption(/^CPU per message at 500 games: /)
  await eventually(async () => assert.ok(Math.abs(await width('broadcast') / await width('tick') - 800 / 1900) < 0.01))
  await eventually(async () => assert.match(await frame('gone').getAttribute('class'), /less/))
  await page.selectOption('.flame select >> nth=1', '1')
  await frame('broadcast').click()
  await eventually(async () => assert.equal(await page.textContent('.flame .crumbs'), 'all › main › tick › broadcast'))
  await eventually(async () => assert.match(await inFocus(), /^broadcast \+180 µs \(own code, ×2\.13\): 340 µs per message at 1000 games \(64\.4 %\); 160 µs per message at 500 games \(40 %\)$/))
  await page.keyboard.press('ArrowDown')
  await eventually(async () => assert.match(await inFocus(), /^serialize \+180 µs \(runtime or library, ×4\)/))
  await page.keyboard.press('ArrowRight')
  await eventually(async () => assert.match(await inFocus(), /^write /))
  await eventually(async () => assert.match(await page.textContent('.flame .detail'), /^write \+0 ns \(runtime or library, =\): 100 µs per message/))
  await page.keyboard.press('Enter')
  await eventually(async () => assert.match(await page.textContent('.flame .crumbs'), /broadcast › write$/))
  await page.keyboard.press('Backspace')
  await eventually(async () => assert.match(await page.textContent('.flame .crumbs'), /tick › broadcast$/))
  await page.keyboard.press('Escape')
  await eventually(async () => assert.equal(await page.locator('.flame .crumbs').isHidden(), true))
  await eventually(async () => assert.match(page.url(), /profiled-1/, 'Escape left the frame and not the page'))
  await page.fill('.flame input', 'SERIAL')
  await eventually(async () => assert.equal(await page.textContent('.flame output'), '1 frame: 45.4 % of the time'))
  await eventually(async () => assert.match(await frame('serialize').getAttribute('class'), /found/))
  await page.fill('.flame input', '<img')
  await eventually(async () => assert.match(await page.textContent('.frame.found text'), /^▲ <img src=x/))
  await eventually(async () => assert.equal(await page.locator('#panel-profile img').count(), 0))
  await eventually(async () => assert.equal(await page.evaluate(() => window.hacked), undefined))
  await page.selectOption('.flame select >> nth=0', '1')
  await caption(/^Waiting per message at 1000 games/)
  await eventually(async () => assert.match(await frame('hold').getAttribute('class'), /more3/))
  await eventually(async () => assert.match(await frame('accept').getAttribute('class'), /less/))
})

test('a flame graph in a report makes no request; damaged stacks are a sentence, and without stacks there is none', {}, async ({ page, open, server, allow, asked }) => {
  const { run } = server.state.runs.get('profiled-1')
  const shown = async profile => {
    server.state.runs.get(run.id).profile = profile
    await open(`#/runs/${run.id}`)
    await page.waitForSelector('#panel-profile p')
  }
  const whole = server.state.runs.get(run.id).profile
  await shown([{ of: 'cpu', graph: null, problem: 'profile-bad.folded is damaged: <b>' }, whole[1]])
  await eventually(async () => assert.equal(await page.textContent('.flame .bad'), 'The flame graph cannot be drawn: profile-bad.folded is damaged: <b>'))
  await eventually(async () => assert.equal(await page.locator('.rung-head').count(), 1))
  await page.selectOption('.flame select >> nth=0', '1')
  await page.waitForSelector('.frames svg')
  await shown([])
  await eventually(async () => assert.ok(server.state.asked.filter(path => path.endsWith('/profile')).length >= 2))
  await eventually(async () => assert.equal(await page.locator('#panel-profile .flame').count(), 0))
  allow('file:')
  const file = join(folder, 'profiled.html')
  writeFileSync(file, reportOf(planted('profiled-1')))
  asked.length = 0
  await page.goto(pathToFileURL(file).href)
  await page.waitForSelector('.frames svg')
  assert.deepEqual(asked.filter(url => !url.startsWith('data:')), [pathToFileURL(file).href])
})

test('names that try to become markup are text, on every page', { runs: [planted('hostile-1'), planted('hostile-1', { id: 'hostile-2' }), planted('hostile-clients-1'), planted('hostile-clients-1', { id: 'hostile-clients-2' })], expected: /status of 404/ }, async ({ page, open, allow }) => {
  for (const hash of ['#/', '#/runs/hostile-1', '#/runs/hostile-clients-1', '#/compare/hostile-1,hostile-2', '#/compare/hostile-clients-1,hostile-clients-2', `#/runs/${encodeURIComponent('<img src=x onerror=window.hacked=1>')}`]) {
    await open(hash)
    await page.waitForTimeout(300)
    await page.keyboard.press('t')
    await eventually(async () => assert.equal(await page.evaluate(() => window.hacked), undefined, hash))
    await eventually(async () => assert.equal(await page.locator('#app img, #app script, #app iframe, #app [onerror]').count(), 0, hash))
  }
  allow('file:')
  const file = join(folder, 'hostile.html')
  writeFileSync(file, reportOf(planted('hostile-1')))
  await page.goto(pathToFileURL(file).href)
  await page.waitForSelector('.rung-head')
  await eventually(async () => assert.equal(await page.evaluate(() => window.hacked), undefined))
  await eventually(async () => assert.match(await page.textContent('h1'), /<img src=x/))
})

test('a run that is not there, and a viewer that went away, are said in words', { expected: /status of 404|ERR_CONNECTION_REFUSED/ }, async ({ page, open, server }) => {
  await open('#/runs/nobody')
  await page.waitForSelector('text=There is no such run')
  await server.close()
  await page.evaluate(() => { location.hash = '#/runs/arena-1' })
  await page.waitForSelector('text=stepladder view')
})

test('an empty store tells how to begin', { runs: [] }, async ({ page, open }) => {
  await open('#/')
  await page.waitForSelector('text=No run yet')
  await eventually(async () => assert.match(await page.textContent('.empty pre'), /stepladder climb arena --view/))
})

test('no page is wider than a phone', { width: 360 }, async ({ page, open }) => {
  for (const hash of ['#/', '#/runs/arena-3', '#/runs/chat-1', '#/runs/poll-loop-1', '#/runs/arena-7', '#/runs/clients-1', '#/runs/duel-1', '#/runs/profiled-1', '#/compare/arena-1,arena-2', '#/compare/clients-1,clients-2', '#/ticks']) {
    await open(hash)
    await page.waitForTimeout(250)
    await eventually(async () => assert.equal(await page.evaluate(() => document.documentElement.scrollWidth), 360, hash))
  }
})

test('an hour at one second is thinned, and the chart says so', { runs: [held('hour', [30_000], { seconds: 3595 })] }, async ({ page, open }) => {
  await open('#/runs/hour')
  await page.waitForSelector('#panel-flow .thinned')
  await eventually(async () => assert.match(await page.textContent('#panel-flow .thinned'), /lowest and highest of \d/))
})

test('a page that is left takes its listeners and charts along', {}, async ({ page, open }) => {
  const session = await page.context().newCDPSession(page)
  const nodes = async () => {
    await session.send('HeapProfiler.collectGarbage')
    return (await session.send('Memory.getDOMCounters')).nodes
  }
  await open('#/')
  const visit = async () => {
    for (const hash of ['#/runs/arena-1', '#/compare/arena-1,arena-2', '#/ticks', '#/']) {
      await page.evaluate(to => { location.hash = to }, hash)
      await page.waitForTimeout(200)
    }
  }
  await visit()
  const before = await nodes()
  for (let round = 0; round < 6; round++) await visit()
  const after = await nodes()
  assert.ok(after < before * 1.5, `${before} nodes became ${after}`)
})

await walk({
  only: process.argv[2],
  async prepare(options, allow) {
    const server = await serve({ pace: options.pace ?? 0, ...(options.runs ? { runs: options.runs } : {}) })
    allow(server.url)
    return { server, end: () => server.close().catch(() => {}) }
  },
})
