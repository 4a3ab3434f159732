// Debian's Chromium through playwright-core: no browser is downloaded.

import { chromium } from 'playwright-core'

export function launch() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', headless: true,
    args: ['--no-sandbox', '--disable-gpu', '--disable-dev-shm-usage', '--hide-scrollbars', '--disable-background-networking'],
  })
}
