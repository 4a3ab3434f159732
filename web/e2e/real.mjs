// The page in a browser over the real program: climbs are climbed, stores are stored. `npm run e2e:real [PART OF A NAME]`
//
// A machine may be busy, so no verdict is demanded: whatever the run says of itself in `--json`, `show --json` and
// `ticks --json`, the page must say too. What a test needs of earlier climbs it asks for by `once`, so that each runs alone.

import assert from 'node:assert/strict'
import { appendFileSync, copyFileSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { eventually, saysAnswer, test, walk } from './harness.mjs'
import { PROGRAM, output, place, start } from './program.mjs'

/** A report is something to send by mail. */
const REPORT_BYTES = 300_000
const LONG = { timeout: 60_000 }
const logs = fileURLToPath(new URL('../../crates/measure/tests/data/', import.meta.url))

const folder = place()
const started = []
const once = make => { let made = null; return () => made ??= make() }
const begin = (where, ...words) => { const one = start(where, ...words); started.push(one); return one }
/** A climb that several tests look at: the first that asks for it begins it, and it goes on when that test has ended. */
const shared = (after, ...words) => once(async () => {
  if (after) await (await after()).finished()
  const climb = start(folder, 'climb', ...words)
  shared.all.push(climb)
  return climb
})
shared.all = []

/** Two rungs, watched by its own page, with everything written that a climb can write. */
const first = shared(null, 'arena', '--rungs', '20,40', '--hold', '4s', '--name', 'first', '--note', 'the <b>first</b> climb',
  '--view', '--json', 'first.json', '--report', 'first.html')
const chat = shared(first, 'chat', '--rungs', '10', '--hold', '5s', '--settle', '200ms', '--json', 'chat.json')
const second = shared(chat, 'arena', '--rungs', '20', '--hold', '2s', '--settle', '200ms', '--name', 'second', '--json', 'second.json')
const ended = async climb => {
  const { outcome, err } = await (await climb()).finished()
  assert.ok(outcome.code === 0 || outcome.code === 1 || outcome.code === 2, `the climb ended with ${outcome.code ?? outcome.signal}: ${err}`)
}
const json = (name, where = folder) => JSON.parse(readFileSync(join(where, name), 'utf8'))
const show = async (run, where = folder) => JSON.parse(await output(where, 'show', run, '--json', '-'))

/** A viewer in a process of its own, on any free port. */
async function viewing(allow, where = folder, ...words) {
  const viewer = begin(where, 'view', '--listen', '127.0.0.1:0', ...words)
  const url = await viewer.address()
  allow(url)
  return { viewer, url, at: hash => url + hash }
}

const word = verdict => verdict.toLowerCase().replaceAll('_', ' ')
const digits = value => String(Number(value.toFixed(value < 9.995 ? 2 : value < 99.95 ? 1 : 0)))
const count = value => value >= 999_500 ? `${Number((value / 1e6).toPrecision(3))} M` : value < 10_000 ? String(value) : String(value).replace(/\B(?=(\d{3})+$)/g, '\u202f')
/** Worded here once more, since a slip in the page's own wording must show. */
function share(value) {
  if (value === null || value === undefined) return '—'
  const percent = value * 100
  if (percent > 0 && percent < 0.01) return '< 0.01 %'
  if (percent > 99.99 && percent < 100) return '> 99.99 %'
  return percent >= 99.95 && percent < 100 ? `${percent.toFixed(2)} %` : `${digits(percent)} %`
}

/** The table of the rungs, cell by cell, under the words of its head. */
async function rungTable(page) {
  const head = await page.locator('.rungs thead th').allTextContents()
  const rows = await page.locator('.rungs tbody tr').evaluateAll(all => all.map(row => [...row.children].map(cell => cell.textContent.trim())))
  return rows.map(row => Object.fromEntries(row.map((cell, at) => [head[at], cell])))
}

/** The page says of an ended run what its JSON says: the three answers, and every rung's load, verdict and main figure. */
async function saysTheSame(page, told) {
  assert.deepEqual(told.conclusions.slice(0, 3).map(({ id }) => id), ['how_many', 'why_not_more', 'can_i_trust_it'])
  for (const { id, text } of told.conclusions.slice(0, 3)) await eventually(async () => await saysAnswer(page, id, text))
  assert.ok(told.rungs.length > 0)
  await eventually(async () => {
    const rows = await rungTable(page)
    const [unit] = told.rungs.map(rung => rung.load_unit)
    assert.deepEqual(rows.map(row => [row[unit], row.verdict]), told.rungs.map(rung => [count(rung.load), word(rung.verdict)]))
    // A column that no rung has anything for is left out.
    if (told.rungs.some(rung => rung.ticks)) assert.deepEqual(rows.map(row => row.late), told.rungs.map(rung => share(rung.ticks?.late_share)))
    if (told.rungs.some(rung => rung.deliveries)) assert.deepEqual(rows.map(row => row.lost), told.rungs.map(rung => count(rung.deliveries.lost)))
  })
  // The ladder stands by the same rungs; by the same figure where it is drawn by the first objective.
  await eventually(async () => {
    const steps = await page.locator('.ladder .rung').evaluateAll(all => all.map(rung => [rung.dataset.seq, rung.querySelector('.value')?.textContent]))
    assert.deepEqual(steps.map(([seq]) => Number(seq)), told.rungs.map(rung => rung.seq))
    if (await page.inputValue('.ladder-box select') === 'ticks.late_share') assert.deepEqual(steps.map(([, value]) => value), told.rungs.map(rung => share(rung.ticks?.late_share)))
  })
  await eventually(async () => assert.equal((await page.textContent('.run-head .badge')).trim(), word(told.verdict)))
  for (const rung of told.rungs) {
    await page.click(`.ladder .rung[data-seq="${rung.seq}"]`)
    await page.waitForFunction(load => document.querySelector('.rung-head h2').textContent.startsWith(`Rung ${load} `), count(rung.load))
    await eventually(async () => assert.equal((await page.textContent('.rung-head .badge')).trim(), word(rung.verdict)))
    const reason = page.locator('.rung-head .reason')
    await eventually(async () => assert.equal(rung.reason ? await reason.textContent() : await reason.count(), rung.reason || 0))
  }
}

// Its viewer ends with it, since nobody sits before a terminal here: what is asked for afterwards gets no answer.
test('a climb is watched by the address that it prints, to its last words, which are those of --json', { expected: /ERR_CONNECTION_REFUSED/ }, async ({ page, allow }) => {
  const climb = await first()
  const address = await climb.address()
  allow(address)
  await page.goto(address)
  await page.waitForSelector('.ladder .rung', LONG)
  await eventually(() => assert.match(page.url(), /#\/runs\/first-1/))
  await eventually(async () => assert.match(await page.textContent('h1'), /^first/))
  await eventually(async () => assert.equal(await page.textContent('.run-note'), 'the <b>first</b> climb'))
  await page.waitForSelector('.progress .phase')
  await page.waitForSelector('.rung-head .badge.live')
  // The table behind a chart grows as seconds arrive.
  await page.click('#panel-flow .chart button')
  const before = await page.locator('#panel-flow .behind tbody tr').count()
  await page.waitForFunction(was => document.querySelectorAll('#panel-flow .behind tbody tr').length > was, before, LONG)
  // A rung is judged, and marked, while the climb goes on to the next.
  await page.waitForSelector('.rungs tbody tr:first-child .mark:not(.live)', LONG)
  await eventually(async () => assert.ok(await page.isVisible('.progress'), 'it was told only after the climb'))
  await page.waitForSelector('.rungs tbody tr:nth-child(2) .mark.live', LONG)
  await page.waitForSelector('.progress', { state: 'hidden', ...LONG })
  await ended(first)
  await saysTheSame(page, json('first.json'))
})

test('a climb is seen by the viewer of another process: in the list, live, and at its end', {}, async ({ page, allow }) => {
  await ended(first)
  const { url } = await viewing(allow)
  await page.goto(url)
  const row = page.locator('.runs .row', { has: page.locator('[data-run="first-1"]') })
  await row.waitFor()
  const told = json('first.json')
  await eventually(async () => assert.equal(await row.locator('svg.spark .mark').count(), told.rungs.length))
  await eventually(async () => assert.equal(await row.locator('svg.spark').getAttribute('aria-label'), told.rungs.map(rung => `${rung.load} ${word(rung.verdict)}`).join(', ')))
  await eventually(async () => assert.equal((await row.locator('.badge').textContent()).trim(), word(told.verdict)))
  const climb = await chat()
  const young = page.locator('.runs .row', { has: page.locator('[data-run="chat-1"]') })
  await young.locator('.badge.live').waitFor(LONG)
  await young.locator('a.open').click()
  await page.waitForSelector('.rung-head .badge.live', LONG)
  await page.waitForFunction(() => document.querySelectorAll('#panel-flow .chart canvas').length > 0, null, LONG)
  assert.equal(climb.outcome, null, 'it was seen only after its end')
  await page.waitForSelector('.progress', { state: 'hidden', ...LONG })
  await ended(chat)
  await saysTheSame(page, await show('chat-1'))
  assert.deepEqual((await show('chat-1')).conclusions, json('chat.json').conclusions)
})

test('two runs are chosen from the list and compared by the figures of their JSON', {}, async ({ page, allow }) => {
  await ended(second)
  const { url } = await viewing(allow)
  await page.goto(url)
  await page.check('[data-run="second-1"]')
  await page.check('[data-run="first-1"]')
  await page.click('text=Compare 2')
  await page.waitForSelector('.compare .ladder .rung')
  const [old, young] = [json('first.json'), json('second.json')]
  await eventually(async () => assert.equal(await page.locator('.compare .ladder .rung').count(), old.rungs.length + young.rungs.length))
  await eventually(async () => assert.deepEqual(await page.locator('.side-by-side thead th').allTextContents(), ['load', 'figure', 'first-1', 'second-1', 'new : old']))
  const sides = [old, young].map(told => told.rungs.find(rung => rung.load === 20))
  await eventually(async () => {
    const rows = await page.locator('.side-by-side tbody tr').evaluateAll(all => all.map(row => [...row.children].map(cell => cell.textContent.trim())))
    assert.deepEqual(rows.find(row => row[1] === 'verdict').slice(0, 4), ['20 games', 'verdict', ...sides.map(rung => word(rung.verdict))])
    assert.deepEqual(rows.find(row => row[1] === 'late share').slice(2, 4), sides.map(rung => share(rung.ticks?.late_share)))
  })
  await eventually(async () => assert.ok(await page.locator('.compare .chart canvas').count() > 0, 'distributions over each other'))
})

test('a run is renamed, noted and pinned in the store, and deleted only when asked twice', {}, async ({ page, allow }) => {
  await ended(second)
  const copy = place()
  copyFileSync(join(folder, 'stepladder.db'), join(copy, 'stepladder.db'))
  const { url, at } = await viewing(allow, copy)
  await page.goto(url)
  await page.waitForSelector('.runs .row')
  await page.goto(at('#/runs/chat-1'))
  const labels = async () => Object.fromEntries((await output(copy, 'export', 'chat-1')).split('\n').filter(Boolean).map(line => JSON.parse(line))
    .filter(row => row.table === 'label' && row.value !== null).map(row => [row.key, row.value]))
  const ids = async () => (await output(copy, 'runs')).split('\n').slice(1).map(line => line.split(' ')[0]).filter(Boolean)
  await page.click('.actions >> text=Rename')
  await page.fill('dialog input', 'a <b>new</b> name')
  await page.keyboard.press('Enter')
  await page.waitForFunction(() => document.querySelector('h1').textContent.startsWith('a <b>new</b> name'))
  await page.click('.actions >> text=Note')
  await page.fill('dialog textarea', 'two\nlines')
  await page.click('dialog >> text=Save')
  await page.waitForSelector('.run-note')
  await page.click('.actions >> text=Pin')
  await page.waitForSelector('h1 .pin')
  await eventually(async () => {
    const { name, note, pinned } = await labels()
    assert.deepEqual({ name, note, pinned }, { name: 'a <b>new</b> name', note: 'two\nlines', pinned: 'true' })
  })
  // A page opened anew has them from the store.
  await page.reload()
  await page.waitForSelector('h1 .pin')
  await eventually(async () => assert.match(await page.textContent('h1'), /^a <b>new<\/b> name/))
  await eventually(async () => assert.equal(await page.textContent('.run-note'), 'two\nlines'))
  await eventually(async () => assert.equal(await page.locator('.actions >> text=Delete').count(), 0, 'a pinned run is not offered to be deleted'))
  await page.click('.actions >> text=Unpin')
  await page.waitForSelector('h1 .pin', { state: 'detached' })
  await page.click('.actions >> text=Delete')
  await page.click('dialog >> text=Delete…')
  await page.fill('dialog input', 'chat')
  await page.keyboard.press('Enter')
  await eventually(async () => assert.ok(await page.isDisabled('dialog >> text=Delete for good')))
  await eventually(async () => assert.deepEqual(await ids(), ['first-1', 'chat-1', 'second-1'], 'half an id deletes nothing'))
  await page.fill('dialog input', 'chat-1')
  await page.click('dialog >> text=Delete for good')
  await page.waitForSelector('.runs .row')
  await eventually(async () => assert.deepEqual(await ids(), ['first-1', 'second-1']))
  await eventually(async () => assert.equal(await page.locator('[data-run="chat-1"]').count(), 0))
})

test('a climb that is killed is told as such while its page is open, and the page goes on', {}, async ({ page, allow }) => {
  const own = place()
  const climb = begin(own, 'climb', 'arena', '--rungs', '20', '--hold', '60s', '--settle', '200ms')
  // At once: the store may not be there yet, or be half made.
  const { url, at } = await viewing(allow, own)
  await page.goto(url)
  await page.goto(at('#/live'))
  await climb.said(/rung 20 games · hold · 40\/40 connected/)
  await page.waitForSelector('.rung-head .badge.live', LONG)
  await page.click('#panel-flow .chart button')
  const before = await page.locator('#panel-flow .behind tbody tr').count()
  await page.waitForFunction(was => document.querySelectorAll('#panel-flow .behind tbody tr').length > was + 1, before, LONG)
  climb.kill()
  await climb.finished()
  assert.equal(climb.outcome.signal, 'SIGKILL')
  await page.waitForSelector('.progress', { state: 'hidden', ...LONG })
  const told = await show('arena-1', own)
  assert.equal(told.verdict, 'INVALID')
  await eventually(async () => assert.equal(await page.textContent('.run-head .state'), 'cut off'))
  await saysTheSame(page, told)
  // The seconds before are there, charts and keys still answer, and the list says the same.
  await eventually(async () => assert.ok(await page.locator('#panel-flow .behind tbody tr').count() > before))
  await page.keyboard.press('t')
  await page.waitForFunction(() => document.querySelectorAll('.chart .behind').length === document.querySelectorAll('.chart').length)
  await page.goto(at('#/'))
  await page.waitForSelector('.runs .row')
  await eventually(async () => assert.match(await page.textContent('.runs .row'), /cut off/))
  await eventually(async () => assert.equal(await page.locator('.runs .badge.live').count(), 0))
})

test('without its token, or with another, a viewer shows nothing but what to do', { expected: /status of 401|ERR_CONNECTION_REFUSED/ }, async ({ page, allow }) => {
  await ended(first)
  const { viewer, url } = await viewing(allow)
  const { origin } = new URL(url)
  for (const address of [`${origin}/`, `${origin}/?token=wrong`, `${origin}/api/runs`, `${url.slice(0, -2)}/`]) {
    const answer = await page.goto(address)
    assert.equal(answer.status(), 401, address)
    await eventually(async () => assert.match(await page.textContent('body'), /Open the address that stepladder printed/))
    await eventually(async () => assert.doesNotMatch(await page.content(), /arena/))
  }
  await eventually(async () => assert.equal(await page.evaluate(() => fetch('api/runs').then(answer => answer.status)), 401))
  await page.goto(url)
  await page.waitForSelector('.runs .row')
  await page.reload()
  await page.waitForSelector('.runs .row')
  await eventually(async () => assert.deepEqual(await page.context().cookies(), [], 'a cookie would go to every port'))
  await eventually(async () => assert.equal((await page.goto(url.slice(0, -1))).url(), url, 'without its last slash'))
  await page.waitForSelector('.runs .row')
  // Started again, it has another token: the page that was left open says so when it is used.
  await viewer.stop()
  const again = begin(folder, 'view', '--listen', new URL(url).host)
  assert.equal(new URL(await again.address()).origin, new URL(url).origin)
  await page.click('nav >> text=Tick logs')
  await page.waitForSelector('text=This page needs its token')
  await eventually(async () => assert.match(await page.textContent('main'), /Open the address that stepladder printed/))
})

/** What the page and the terminal must agree on. */
async function ticksOf(path) {
  const { files: [file] } = JSON.parse(await output(folder, 'ticks', path, '--json', '-'))
  const ms = value => value === null ? '—' : `${digits(value)} ms`
  const { p50, p90, p99, max, mean } = file.interval_ms
  return [basename(path), ...[file.games, file.on_time, file.over, file.under, file.missed].map(count), share(file.late_share), ...[p50, p90, p99, max, mean].map(ms)]
}
const tickRows = page => page.locator('.ticks tbody').first().locator('tr').evaluateAll(rows => rows.map(row => [...row.children].map(cell => cell.textContent.trim())))

test('a tick log of the command line is followed while it grows', {}, async ({ page, allow }) => {
  const own = place()
  const whole = readFileSync(join(logs, 'original-500.log'))
  const growing = join(own, 'game.log')
  // Cut within a line, as a writer's buffer cuts.
  const cut = Math.floor(whole.length / 2) + 7
  writeFileSync(growing, whole.subarray(0, cut))
  const half = join(place(), 'game.log')
  writeFileSync(half, whole.subarray(0, whole.lastIndexOf('\n', cut) + 1))
  const { url, at } = await viewing(allow, own, growing)
  await page.goto(url)
  await page.click('nav >> text=Tick logs')
  await page.waitForSelector('.ticks tbody tr')
  await eventually(async () => assert.deepEqual(await tickRows(page), [await ticksOf(half)]))
  appendFileSync(growing, whole.subarray(cut))
  const expected = [await ticksOf(growing)]
  assert.notDeepEqual(expected, [await ticksOf(half)])
  await page.waitForFunction(games => document.querySelector('.ticks tbody tr').children[1].textContent === games, expected[0][1])
  await eventually(async () => assert.deepEqual(await tickRows(page), expected))
  await eventually(async () => assert.ok(await page.locator('.ticks .chart canvas').count() >= 2))
  await page.goto(at('#/ticks'))
  await page.waitForSelector('.ticks tbody tr')
  await eventually(async () => assert.deepEqual(await tickRows(page), expected))
})

test('a tick log that is dropped on the page has the figures of the terminal, and leaves nothing behind', {}, async ({ page, allow }) => {
  const own = place()
  const { url, at } = await viewing(allow, own)
  await page.goto(url)
  await page.click('nav >> text=Tick logs')
  await page.waitForSelector('.drop')
  for (const name of ['original-1000.log', 'original-best-1000.log']) {
    const dropping = await page.evaluateHandle(([text, name]) => {
      const data = new DataTransfer()
      data.items.add(new File([text], name))
      return data
    }, [readFileSync(join(logs, name), 'utf8'), name])
    await page.dispatchEvent('.drop', 'drop', { dataTransfer: dropping })
    await page.waitForSelector(`.ticks tbody tr:has-text("${name}")`)
  }
  await eventually(async () => assert.deepEqual(await tickRows(page), [await ticksOf(join(logs, 'original-1000.log')), await ticksOf(join(logs, 'original-best-1000.log'))]))
  await page.waitForSelector('.ticks .chart canvas')
  await page.goto('about:blank')
  await page.goto(at('#/ticks'))
  await page.waitForSelector('.drop')
  await eventually(async () => assert.equal(await page.locator('.ticks tbody tr').count(), 0))
})

/** Opens a report as whoever it was sent to: from a file, with nothing else to reach. */
async function opensAlone(page, asked, path, told) {
  assert.ok(statSync(path).size <= REPORT_BYTES, `${path} has ${statSync(path).size} bytes`)
  const before = asked.length
  const address = pathToFileURL(path).href
  await page.goto(address)
  await page.waitForSelector('.ladder .rung')
  await page.waitForSelector('.chart canvas')
  await saysTheSame(page, told)
  assert.deepEqual(asked.slice(before).filter(url => !url.startsWith('data:')), [address], 'a report asks for nothing')
  await eventually(async () => assert.equal(await page.locator('.actions, nav.top a').count(), 0, 'a report offers nothing that needs a viewer'))
}

test('the report of a climb opens from a file without network, and says what its --json says', { offline: true }, async ({ page, asked }) => {
  await ended(first)
  await opensAlone(page, asked, join(folder, 'first.html'), json('first.json'))
  await eventually(async () => assert.match(await page.textContent('h1'), /^first/))
})

test('the report of a stored run opens from a file without network, and says what show --json says', { offline: true }, async ({ page, asked }) => {
  await ended(chat)
  for (const run of ['first-1', 'chat-1']) {
    const path = join(folder, `${run}.html`)
    await output(folder, 'report', run, '-o', path)
    await opensAlone(page, asked, path, await show(run))
  }
})

test('the report that the page hands out is the one that the program writes', {}, async ({ page, allow }) => {
  await ended(chat)
  const { url, at } = await viewing(allow)
  await page.goto(url)
  await page.waitForSelector('.runs .row')
  await page.goto(at('#/runs/chat-1'))
  // A busy machine's browser may take a click and begin no download.
  const [download] = await eventually(() => Promise.all([page.waitForEvent('download', { timeout: 10_000 }), page.click('.actions >> text=Report')]))
  assert.equal(download.suggestedFilename(), 'chat-1.html')
  const kept = join(place(), 'chat-1.html')
  await download.saveAs(kept)
  await output(folder, 'report', 'chat-1', '-o', 'chat-1-again.html')
  assert.ok(readFileSync(kept).equals(readFileSync(join(folder, 'chat-1-again.html'))))
})

// Operations that do nothing: a run takes about a second, and more of them are there when its page is opened.
test('a comparison of clients grows while it goes on, and its page and report say what its --json says', {}, async ({ page, allow, another }) => {
  const where = place()
  const bench = begin(where, 'bench', '--target', 'null:', '--total', '3000000', '--value', '3,1024', '--runs', '2', '--json', 'bench.json')
  const { url } = await viewing(allow, where)
  await page.goto(url + '#/live')
  await page.waitForSelector('.progress:has-text("of 4 runs")', LONG)
  const { outcome, err } = await bench.finished()
  assert.equal(outcome.code, 0, err)
  await page.waitForSelector('.progress', { state: 'hidden', timeout: 60_000 })
  const told = JSON.parse(readFileSync(join(where, 'bench.json'), 'utf8'))
  const saysIt = async page => {
    await page.waitForSelector('#panel-clients table')
    const rate = cell => `${count(Math.round(cell.ops_per_s))}/s`
    await eventually(async () => {
      const rows = await page.locator('#panel-clients .clients').first().locator('tbody tr').evaluateAll(all => all.map(row => [...row.children].map(cell => cell.textContent)))
      assert.deepEqual(rows.map(row => row[0]), ['get 3 B, 100 in flight', 'rust', 'get 1 KB, 100 in flight', 'rust'])
      assert.deepEqual([rows[1][1], rows[3][1]], told.cells.map(rate))
    })
    await eventually(async () => assert.deepEqual(await page.locator('.doubts li').allTextContents(), told.limits))
    await eventually(async () => assert.equal(await page.locator('.rates circle').count(), 2, 'a dot per run'))
  }
  await saysIt(page)
  const report = join(where, 'bench.html')
  const [run] = JSON.parse(await (await fetch(`${url.split('#')[0]}api/runs`)).text()).runs
  await output(where, 'report', run.id, '-o', report)
  allow('file:')
  const alone = await another({ offline: true })
  await alone.goto(pathToFileURL(report).href)
  await saysIt(alone)
  await eventually(async () => assert.equal(await alone.locator('.actions, nav.top a').count(), 0, 'a report offers nothing that needs a viewer'))
})

test('what was alive in a profiled client stands on its page, as text', {}, async ({ page, allow }) => {
  const where = place()
  const name = '<img src=x onerror=alert(1)>'
  const table = `by function\\n50000000 7 main.keepValues\\n400 1 ${name}`
  const client = `planted() { f=\${INFLIGHT_PROFILE#alloc:}; if [ -n "$f" ]; then echo "user:keep 9" > "$f"; printf '${table}\\n' > "$f.heap.txt"; fi; '${PROGRAM}' bench runner "$1"; }; planted`
  await output(where, 'bench', '--target', 'null:', '--total', '30000', '--runs', '1', '--client', client, '--profile', 'alloc:heap')
  const { url } = await viewing(allow, where)
  await page.goto(url)
  await page.click('.runs .row a')
  const profile = page.locator('section[aria-label^="Profile of"]')
  await eventually(async () => assert.match(await profile.locator('h4').textContent(), /^Alive after the measured part: 50 MB in 8 objects$/))
  await eventually(async () => assert.deepEqual(
    await profile.locator('table').last().locator('tbody tr').evaluateAll(all => all.map(row => [...row.children].map(cell => cell.textContent))),
    [['main.keepValues', '> 99.99 %', '50 MB', '7'], [name, '< 0.01 %', '400 B', '1']]))
})

await walk({
  only: process.argv[2],
  prepare: async () => ({ end: async () => { for (const one of started.splice(0)) await one.stop() } }),
  finish: async () => { for (const climb of shared.all) await climb.stop() },
})
