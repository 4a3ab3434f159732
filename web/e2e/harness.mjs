// What every test in a browser stands on: a context of its own, and an ear for what must never happen.
//
// Errors on the console (refusals of the content security policy are among them), exceptions, and requests to anywhere but
// the origins that a test allows fail the test, whatever else it asserts. Tests run one after another; what one leaves
// open is closed when it ends, however it ends.

import assert from 'node:assert/strict'
import { launch } from './browser.mjs'

const tests = []

/**
 * A test. Options: `width`; `offline`: no network at all; `expected`: what of the console's errors belongs to the test;
 * the rest is for whoever prepares it.
 */
export function test(name, options, body) {
  tests.push({ name, options, body })
}

/** Longer than any page needs to draw, on any machine. */
const PATIENCE_MS = 30_000

/**
 * Tries `check`, which throws while it is not so, until it is so, and gives what it gives; after 30 s its last words are
 * the test's. What an action on a page leads to is asserted by this alone: a key that was pressed, an answer that came,
 * even a dialog that was closed are seen on the page only some time after.
 */
export async function eventually(check) {
  const until = Date.now() + PATIENCE_MS
  for (;;) {
    try {
      return await check()
    } catch (error) {
      if (Date.now() > until) throw error
    }
    await new Promise(resolved => setTimeout(resolved, 20))
  }
}

/** One reader more, with its own cookies; `heard` collects what it must not have done. */
async function newReader(browser, { width = 1280, offline = false, expected }, heard) {
  const context = await browser.newContext({ viewport: { width, height: 900 }, offline })
  context.on('console', message => {
    if (message.type() === 'error' && !expected?.test(message.text())) heard.wrong.push(`on the console: ${message.text()}`)
  })
  context.on('weberror', error => heard.wrong.push(`an exception: ${error.error().stack ?? error.error().message}`))
  context.on('request', request => {
    const url = new URL(request.url())
    heard.asked.push(request.url())
    const isNear = ['data:', 'about:', 'blob:'].includes(url.protocol) || (url.protocol === 'file:' && heard.origins.has('file:'))
    if (!isNear && (offline || !heard.origins.has(url.origin))) heard.wrong.push(`a request to ${request.url()}`)
  })
  // What is offline is refused here as well, before a socket is asked for.
  if (offline) await context.route(url => url.protocol !== 'file:' && url.protocol !== 'data:', route => route.abort())
  return { context, page: await context.newPage() }
}

/** An answer as it is read: the word that leads it stands once. */
export const answerOf = (page, id) => page.evaluate(id => {
  const [lead, words] = ['.lead', '.words'].map(part => document.querySelector(`#${id} ${part}`)?.textContent ?? '')
  return { words, whole: `${lead}: ${words}` }
}, id)

/** The page says an answer letter by letter, with the word that leads it or behind it. */
export async function saysAnswer(page, id, text, of = '') {
  const { words, whole } = await answerOf(page, id)
  if (words !== text && whole.toLowerCase() !== text.toLowerCase()) assert.equal(words, text, `${of} ${id}`)
}

/**
 * Runs the tests whose name holds `only`, and ends the process: 0 when all passed, 1 when one failed, 2 when there is none.
 * `prepare(options, allow)` gives what a test gets besides `page`, and `end()` to be called after it.
 */
export async function walk({ only = '', prepare, finish = async () => {} }) {
  const chosen = tests.filter(({ name }) => name.includes(only))
  if (chosen.length === 0) console.error(`no test has “${only}” in its name`)
  const browser = await launch()
  let failed = 0
  const began = Date.now()
  for (const { name, options, body } of chosen) {
    const heard = { wrong: [], asked: [], origins: new Set(options.offline ? ['file:'] : []) }
    const allow = url => heard.origins.add(url.startsWith('file:') ? 'file:' : new URL(url).origin)
    const readers = []
    const another = async (more = {}) => {
      const reader = await newReader(browser, { ...options, ...more }, heard)
      readers.push(reader)
      return reader.page
    }
    const start = Date.now()
    let given = null
    try {
      given = await prepare(options, allow)
      await body({ ...given, page: await another(), another, allow, asked: heard.asked })
      assert.deepEqual(heard.wrong, [])
      console.log(`ok    ${name} (${Date.now() - start} ms)`)
    } catch (error) {
      failed++
      const shown = await readers.at(0)?.page.evaluate(() => document.querySelector('main')?.innerText.slice(0, 600)).catch(() => null)
      console.log(`FAIL  ${name}\n${String(error.stack).split('\n').slice(0, 14).join('\n')}`)
      if (heard.wrong.length > 0) console.log(`it heard: ${heard.wrong.join('; ')}`)
      if (shown) console.log(`the page showed: ${shown.replaceAll('\n', ' | ')}`)
    }
    for (const { context } of readers) await context.close().catch(() => {})
    await given?.end?.()
  }
  await browser.close()
  await finish()
  console.log(`${chosen.length - failed} of ${chosen.length} tests passed in ${((Date.now() - began) / 1000).toFixed(0)} s`)
  process.exit(failed > 0 ? 1 : chosen.length === 0 ? 2 : 0)
}
