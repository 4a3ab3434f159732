// The viewer of the real program beside hostile servers and clients of the same machine. `npm run e2e:hostile [PART OF A NAME]`
//
// A neighbour is another server on 127.0.0.1, on another port, that the owner's browser visits too: it writes down
// every request that it gets and serves a page that tries to read the viewer. The clients have no token and send half of
// what they should. docs/decisions/028-token-in-the-path.md names the attacks and what stops each.

import assert from 'node:assert/strict'
import { readdirSync } from 'node:fs'
import { createServer, get } from 'node:http'
import { connect } from 'node:net'
import { test, walk } from './harness.mjs'
import { begunUnder, output, place, start, within } from './program.mjs'

/** A name that stands in the store and nowhere else. */
const PLANTED = 'planted-name-of-a-run'
const LONG = { timeout: 60_000 }

const folder = place()
const started = []
const begin = one => { started.push(one); return one }
let recorded = null
/** A store with one run. */
const store = () => recorded ??= output(folder, 'climb', 'arena', '--rungs', '10', '--hold', '1s', '--settle', '100ms', '--name', PLANTED).catch(async error => {
  // Whatever was judged: on a busy machine the rung may have failed.
  assert.match(await output(folder, 'runs'), new RegExp(PLANTED), error.message)
})

/** What a page of a neighbour tries on each address; what it could read goes into `read`, what it could not is passed over. */
async function tryEverything(targets) {
  const read = []
  const keep = (how, what) => { if (what) read.push(`${how}: ${what}`) }
  const attempt = async (how, what) => { try { keep(how, await what()) } catch { /* as it should be */ } }
  const loaded = (element, address) => new Promise(resolve => {
    const attribute = { LINK: 'href', OBJECT: 'data' }[element.tagName] ?? 'src'
    element.onload = () => resolve(true)
    element.onerror = () => resolve(false)
    setTimeout(() => resolve(false), 1_000)
    element[attribute] = address
    document.body.append(element)
  })
  keep('cookie', document.cookie)
  keep('referrer', document.referrer)
  keep('name', window.name)
  const all = targets.flatMap(address => [
    ...['cors', 'no-cors', 'same-origin'].flatMap(mode => ['GET', 'POST'].map(method =>
      attempt(`${method} ${mode} ${address}`, async () => {
        const answer = await fetch(address, { mode, method, credentials: 'include', redirect: 'follow' })
        return `${answer.type} ${answer.status || ''} ${await answer.text()}`.replace(/^opaque\s*$/, '')
      }))),
    attempt(`DELETE ${address}`, async () => (await fetch(address, { method: 'DELETE', credentials: 'include' })).text()),
    attempt(`XMLHttpRequest ${address}`, () => new Promise(resolve => {
      const request = new XMLHttpRequest()
      request.withCredentials = true
      request.onloadend = () => resolve(request.responseText)
      request.open('GET', address)
      request.send()
    })),
    attempt(`EventSource ${address}`, () => new Promise(resolve => {
      const source = new EventSource(address, { withCredentials: true })
      source.onmessage = message => resolve(message.data)
      source.onopen = () => resolve('open')
      source.onerror = () => { source.close(); resolve('') }
    })),
    attempt(`WebSocket ${address}`, () => new Promise(resolve => {
      const socket = new WebSocket(address.replace('http', 'ws'))
      socket.onopen = () => resolve('open')
      socket.onerror = () => resolve('')
    })),
    attempt(`beacon ${address}`, () => { navigator.sendBeacon(address, 'x'); return '' }),
    attempt(`worker ${address}`, () => { new Worker(address); return '' }),
    attempt(`module ${address}`, async () => Object.keys(await import(address)).join()),
    ...['script', 'img', 'link', 'embed', 'object', 'video'].map(tag => attempt(`${tag} ${address}`, async () => {
      const element = document.createElement(tag)
      if (tag === 'link') element.rel = 'stylesheet'
      const is = await loaded(element, address)
      // An object or embed that shows an error page loads too, but gives nothing away.
      const inner = element.contentDocument?.body?.textContent ?? ''
      return inner || (['script', 'img', 'link'].includes(tag) && is ? 'loaded' : '')
    })),
    attempt(`iframe ${address}`, async () => {
      const frame = document.createElement('iframe')
      await loaded(frame, address)
      return frame.contentDocument?.body?.textContent ?? frame.contentWindow.document.body.textContent
    }),
    attempt(`form ${address}`, async () => {
      const frame = Object.assign(document.createElement('iframe'), { name: `form${Math.random()}` })
      document.body.append(frame)
      const form = Object.assign(document.createElement('form'), { method: 'post', action: address, target: frame.name })
      document.body.append(form)
      const answered = new Promise(resolve => { frame.onload = resolve; setTimeout(resolve, 1_000) })
      form.submit()
      await answered
      return frame.contentWindow.location.href.startsWith('about:') ? '' : frame.contentWindow.document.body.textContent
    }),
    attempt(`window ${address}`, async () => {
      const other = window.open(address)
      if (!other) return ''
      await new Promise(resolve => setTimeout(resolve, 1_000))
      try { return other.location.href === 'about:blank' ? '' : other.document.body.textContent } finally { other.close() }
    }),
  ])
  await Promise.all(all)
  for (const entry of performance.getEntriesByType('resource')) keep('timing', targets.includes(entry.name) || entry.name.startsWith(location.origin) ? '' : entry.name)
  return read
}

/** A server that writes down all it is sent. */
async function neighbour(allow) {
  const got = []
  const server = createServer((request, answer) => {
    const parts = []
    request.on('data', part => parts.push(part))
    request.on('end', () => {
      got.push({ asked: `${request.method} ${request.url}`, headers: request.headers, text: JSON.stringify([request.url, request.rawHeaders, Buffer.concat(parts).toString()]) })
      answer.writeHead(200, {
        'content-type': 'text/html', 'access-control-allow-origin': '*', 'referrer-policy': 'unsafe-url',
        // A cookie of this host, which the viewer is sent, and which a cookie of the viewer would stand beside.
        'set-cookie': ['neighbour=1; Path=/', `stepladder=${'x'.repeat(200)}; Path=/`],
      })
      answer.end('<!doctype html><link rel="icon" href="data:,"><title>a neighbour</title><body>hello</body>')
    })
  })
  await new Promise(resolve => server.listen(0, '127.0.0.1', resolve))
  started.push({ stop: () => { server.closeAllConnections(); server.close() } })
  const { port } = server.address()
  const urls = ['127.0.0.1', 'localhost'].map(host => `http://${host}:${port}/`)
  urls.forEach(allow)
  return { got, urls }
}

// What a browser says on the console of refused requests is the neighbour's affair.
test('a page of another server on this machine sees neither the token nor what is stored', { expected: /./ }, async ({ page, allow, asked }) => {
  await store()
  const viewer = begin(start(folder, 'view', '--listen', '127.0.0.1:0'))
  const url = await viewer.address()
  const token = new URL(url).pathname.slice(1, -1)
  assert.equal(token.length, 32)
  const { port } = new URL(url)
  const origins = ['127.0.0.1', 'localhost'].flatMap(host => ['http', 'ws'].map(scheme => `${scheme}://${host}:${port}`))
  origins.forEach(allow)
  const { got, urls } = await neighbour(allow)
  const targets = origins.filter(origin => origin.startsWith('http')).flatMap(origin =>
    ['/', '/api/runs', `/report/${PLANTED}-1.html`, `/${'A'.repeat(32)}/api/runs/${PLANTED}-1`].map(path => origin + path))
  const attack = async (...from) => {
    for (const evil of from) {
      await page.goto(evil)
      const read = await page.evaluate(tryEverything, targets)
      const own = /^cookie: /
      assert.deepEqual(read.filter(line => !own.test(line)), [], 'a page of another origin read something')
      assert.doesNotMatch(read.join('\n'), new RegExp(`${token}|${PLANTED}`))
    }
  }
  await attack(urls[0])
  const before = asked.length
  await page.goto(url)
  await page.waitForSelector(`.runs .row:has-text("${PLANTED}")`, LONG)
  assert.ok(asked.slice(before).some(request => request === `${url}api/runs`), 'the page asks below its own address')
  // From the viewer's own page to the neighbour: as a link leads there, and as an opened window.
  for (const evil of urls) {
    await page.goto(url)
    await page.waitForSelector('.runs .row')
    const arrived = page.waitForURL(evil)
    await page.evaluate(to => {
      const link = Object.assign(document.createElement('a'), { href: to })
      document.body.append(link)
      link.click()
    }, evil)
    await arrived
    assert.equal(await page.evaluate(() => document.referrer), '')
    await page.goto(url)
    await page.waitForSelector('.runs .row')
    const [opened] = await Promise.all([page.context().waitForEvent('page'), page.evaluate(to => { window.open(to) }, evil)])
    await opened.waitForLoadState()
    assert.equal(await opened.evaluate(() => document.referrer), '')
    assert.equal(await opened.evaluate(() => { try { return window.opener?.location.href ?? null } catch { return null } }), null)
    await opened.close()
    // The policy keeps the page itself from asking anybody else, whatever were to run in it.
    assert.equal(await page.evaluate(to => fetch(to).then(() => 'answered', () => 'refused'), evil), 'refused')
  }
  // Two tabs of one browser: the page is open while the neighbour tries.
  const own = await page.context().newPage()
  await own.goto(url)
  await own.waitForSelector('.runs .row')
  await attack(...urls)
  assert.ok(got.length >= 7, `the neighbour was asked ${got.length} times`)
  for (const { asked, headers, text } of got) {
    assert.ok(!text.includes(token), `the neighbour was sent the token: ${text}`)
    const { referer = '' } = headers
    assert.ok(referer === '' || urls.some(own => referer.startsWith(own)), `${asked} came with the referrer ${referer}`)
  }
  const cookies = await page.context().cookies()
  assert.deepEqual([...new Set(cookies.map(({ name }) => name))].sort(), ['neighbour', 'stepladder'], 'only the neighbour sets cookies')
  // What it set does not keep the owner out.
  await own.reload()
  await own.waitForSelector('.runs .row')
  assert.match(await output(folder, 'runs'), new RegExp(PLANTED), 'nothing was deleted')
})

/** Half of a request, many times; those that were closed are told by their `destroyed`. */
function halves(port, count) {
  return Array.from({ length: count }, () => {
    const socket = connect(port, '127.0.0.1', () => socket.write('GET / HTTP/1.1\r\nHost: x\r\nX-Half: '))
    socket.on('error', () => {})
    socket.on('end', () => socket.destroy())
    socket.on('data', () => {})
    return socket
  })
}
/** Over a connection of its own, which has to be let in anew. */
const statusOf = address => new Promise((resolved, rejected) => {
  get(address, { agent: false }, answer => answer.resume().on('end', () => resolved(answer.statusCode))).on('error', rejected)
})
const descriptors = pid => readdirSync(`/proc/${pid}/fd`).length

test('1,500 half-sent requests do not use up the descriptors of a viewer that may have 200, and its page is answered', {}, async ({ page, allow }) => {
  await store()
  const viewer = begin(begunUnder('ulimit -n 200', folder, 'view', '--listen', '127.0.0.1:0'))
  const url = await viewer.address()
  allow(url)
  await page.goto(url)
  await page.waitForSelector('.runs .row', LONG)
  const before = descriptors(viewer.pid)
  const sockets = halves(new URL(url).port, 1_500)
  started.push({ stop: () => sockets.forEach(socket => socket.destroy()) })
  const takes = []
  while (takes.length < 9) {
    const began = performance.now()
    assert.equal(await statusOf(`${url}api/runs`), 200)
    takes.push(performance.now() - began)
  }
  takes.sort((one, other) => one - other)
  assert.ok(takes[4] < 1_000, `the owner waited ${takes.map(Math.round)} ms`)
  await within('1,436 of them closed', () => sockets.filter(socket => !socket.destroyed).length <= 64)
  assert.ok(descriptors(viewer.pid) <= before + 64 + 16, `${before} descriptors became ${descriptors(viewer.pid)}`)
  await page.reload()
  await page.waitForSelector('.runs .row')
  await within('all of them closed', () => sockets.every(socket => socket.destroyed))
  await within('the descriptors of before', () => descriptors(viewer.pid) <= before)
})

await walk({
  only: process.argv[2],
  prepare: async () => ({ end: async () => { for (const one of started.splice(0)) await one.stop() } }),
})
