// The program itself, for tests over it: started in folders of their own, and stopped by their process ids.
//
// `STEPLADDER=` names the program; else the release build, else the debug build. Whatever is started here is killed when
// this process ends, however it ends; a climb that is killed takes its server along.

import { spawn } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'

/** Longer than anything here takes: what waits for this has found a hang. */
const PATIENCE_MS = 60_000

const built = kind => fileURLToPath(new URL(`../../target/${kind}/stepladder`, import.meta.url))
export const PROGRAM = process.env.STEPLADDER ? resolve(process.env.STEPLADDER) : ['release', 'debug'].map(built).find(existsSync) ?? built('release')
if (!existsSync(PROGRAM)) {
  console.error(`${PROGRAM} is not there; build it (cargo build --release) or name it with STEPLADDER=/path/to/stepladder`)
  process.exit(2)
}

const folders = []
const running = new Set()

/** A folder to work in, that goes at the end. */
export function place() {
  const folder = mkdtempSync(join(tmpdir(), 'stepladder-e2e-'))
  folders.push(folder)
  return folder
}

process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL')
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})
for (const [signal, code] of [['SIGINT', 130], ['SIGTERM', 143]]) process.once(signal, () => process.exit(code))

/** The program while it runs. */
export class Running {
  out = ''
  err = ''
  /** how it ended, or null */
  outcome = null

  constructor(folder, words, under = null) {
    this.words = words.join(' ')
    // Whoever sits before a desktop gets no browser opened by a test.
    const { DISPLAY: _, WAYLAND_DISPLAY: __, ...env } = process.env
    const [command, rest] = under === null ? [PROGRAM, words] : ['bash', ['-c', `${under} && exec "$0" "$@"`, PROGRAM, ...words]]
    const child = spawn(command, rest, { cwd: folder, env: { ...env, TMPDIR: folder }, stdio: ['ignore', 'pipe', 'pipe'] })
    this.child = child
    running.add(child)
    child.stdout.setEncoding('utf8').on('data', text => { this.out += text })
    child.stderr.setEncoding('utf8').on('data', text => { this.err += text })
    this.ended = new Promise((resolved, rejected) => {
      child.once('error', rejected)
      // Not at `exit`: what was said last is still on its way then.
      child.once('close', (code, signal) => { running.delete(child); this.outcome = { code, signal }; resolved(this) })
    })
    this.ended.catch(() => {})
  }

  get pid() { return this.child.pid }

  /** The first match in what was said so far, waited for. */
  async said(pattern) {
    await within(`${pattern} from stepladder ${this.words}`, () => {
      if (this.outcome !== null && !pattern.test(this.out + this.err)) throw new Error(`stepladder ${this.words} ended without ${pattern}: ${this.err}`)
      return pattern.test(this.out) || pattern.test(this.err)
    })
    return pattern.exec(this.out) ?? pattern.exec(this.err)
  }

  /** The address of its page, with the token, as a user copies it. */
  async address() {
    return (await this.said(/(http:\/\/127\.0\.0\.1:\d+\/[\w-]{32}\/\S*)\s/))[1]
  }

  /** Waits for the end; the exit code is the caller's to judge. */
  async finished() {
    const hangs = new Promise((_, rejected) => { setTimeout(() => rejected(new Error(`stepladder ${this.words} hangs: ${this.err}`)), PATIENCE_MS).unref() })
    return Promise.race([this.ended, hangs])
  }

  /** As a user ends it with Ctrl-C; what does not heed that is killed. */
  async stop() {
    if (this.outcome !== null) return
    this.child.kill('SIGINT')
    const last = setTimeout(() => this.child.kill('SIGKILL'), 10_000)
    await this.ended
    clearTimeout(last)
  }

  kill() { this.child.kill('SIGKILL') }
}

export function start(folder, ...words) {
  return new Running(folder, words)
}

/** The same under a limit that bash knows: `begunUnder('ulimit -n 200', …)`. */
export function begunUnder(limit, folder, ...words) {
  return new Running(folder, words, limit)
}

/** Runs it to its end and returns its standard output. Errors: it did not end with 0. */
export async function output(folder, ...words) {
  const ran = await start(folder, ...words).finished()
  if (ran.outcome.code !== 0) throw new Error(`stepladder ${ran.words} ended with ${ran.outcome.code ?? ran.outcome.signal}: ${ran.err}`)
  return ran.out
}

/** Looks until it is so. */
export async function within(what, isSo) {
  const began = Date.now()
  while (!await isSo()) {
    if (Date.now() - began > PATIENCE_MS) throw new Error(`this never came: ${what}`)
    await new Promise(resolved => setTimeout(resolved, 100))
  }
}
