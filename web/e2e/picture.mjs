// The pictures of the README: a stored run of the real program, light and dark. `npm run picture STORE RUN FOLDER`
//
// They show what was measured, so the run comes from a store and nothing here is planted.

import { mkdirSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { launch } from './browser.mjs'
import { start } from './program.mjs'

const [store, run, folder] = process.argv.slice(2)
if (!folder) {
  console.error('say which: npm run picture STORE RUN FOLDER')
  process.exit(2)
}
mkdirSync(folder, { recursive: true })
const viewer = start(process.cwd(), 'view', '--store', resolve(store), '--listen', '127.0.0.1:0')
const browser = await launch()
try {
  const url = await viewer.address()
  for (const look of ['light', 'dark']) {
    const context = await browser.newContext({ colorScheme: look, viewport: { width: 1280, height: 910 } })
    const page = await context.newPage()
    await page.goto(url)
    await page.waitForSelector('.runs .row')
    await page.goto(`${url}#/runs/${run}`)
    await page.waitForSelector('.ladder .rung')
    await page.waitForSelector('.chart canvas')
    // The command line names the folders of whoever climbed.
    await page.evaluate(() => document.querySelector('.facts-line code')?.remove())
    await page.screenshot({ path: join(folder, `${run}-${look}.png`) })
    await context.close()
  }
} finally {
  await browser.close()
  await viewer.stop()
}
