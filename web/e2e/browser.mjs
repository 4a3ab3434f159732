// A Chromium of this machine through playwright-core: no browser is downloaded.
//
// `CHROMIUM=` names one; else the first of NAMES on PATH that starts. `node e2e/browser.mjs` prints its path, for check.sh.

import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const NAMES = ['chromium', 'chromium-browser', 'google-chrome']
const REMEDY = 'install one (Debian: apt-get install chromium) or name one with CHROMIUM=/path/to/chromium'

// Asked for its version: on some systems chromium-browser is a script that only says where to get it.
const starts = path => existsSync(path) && spawnSync(path, ['--version'], { stdio: 'ignore', timeout: 30_000 }).status === 0

/** Where Chromium is; null where there is none that starts. */
export function chromiumPath() {
  const named = process.env.CHROMIUM
  const folders = (process.env.PATH ?? '').split(':').filter(Boolean)
  const candidates = named ? [named] : NAMES.flatMap(name => folders.map(folder => join(folder, name)))
  return candidates.find(starts) ?? null
}

export async function launch() {
  const executablePath = chromiumPath()
  if (executablePath === null) {
    const named = process.env.CHROMIUM
    console.error(named ? `CHROMIUM=${named} does not start; ${REMEDY}` : `no ${NAMES.join(', ')} on PATH starts; ${REMEDY}`)
    process.exit(2)
  }
  // Only here: whoever asks for the path need not have installed the packages.
  const { chromium } = await import('playwright-core')
  return chromium.launch({
    executablePath, headless: true,
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--hide-scrollbars', '--disable-background-networking'],
  })
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const path = chromiumPath()
  if (path === null) process.exit(1)
  console.log(path)
}
