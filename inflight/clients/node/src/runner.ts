// The runner: one plan in, lines of JSON out. Exit codes: 0, 2 bad plan, 3 cannot connect, 130 and 143 stopped.

import { fileURLToPath } from 'node:url'
import { fake } from './fake.js'
import { benchmark, printLine, type Options, type Outcome } from './inflight.js'
import { BadPlan, readPlan, type Plan } from './plan.js'
import { connect, nullStore, type Store } from './store.js'
import { Workload } from './workload.js'

/** How many values are put at once before the run. */
const preloadInFlight = 100
const sameSignalMs = 100

/** What operation i does with a store, and how its result is judged. */
export function operations(plan: Plan, store: Store, workload: Workload): Pick<Options, 'nextOp' | 'check'> {
  const { names, kind, key } = workload
  const unrounded = plan.in_flight === 'unlimited'
  const perform = (i: number, name: string, number: number) => {
    const what = kind(i)
    return what === 'get' ? store.get(name) : what === 'set' ? store.set(name, workload.value(number)) : store.delete(name)
  }
  const nextOp = unrounded
    ? (i: number) => perform(i, workload.unroundedKey(i), 0)
    : (i: number) => {
        const number = key(i)
        return perform(i, names[number]!, number)
      }
  const check = (value: unknown, i: number): Outcome => {
    if (kind(i) !== 'get') return 'ok'
    if (value === null || value === undefined) return 'miss'
    return value === workload.value(unrounded ? 0 : key(i)) ? 'hit' : 'wrong'
  }
  return { nextOp, check }
}

/** Puts every value that a get can hit. */
async function preload(plan: Plan, store: Store, workload: Workload): Promise<void> {
  if (plan.op === 'set' || plan.in_flight === 'unlimited') return
  let next = 0
  const putter = async () => {
    while (next < workload.names.length) {
      const key = next++
      await store.set(workload.names[key]!, workload.value(key))
    }
  }
  await Promise.all(Array.from({ length: preloadInFlight }, putter))
}

function say(message: string, code: number): number {
  printLine({ type: 'error', message })
  return code
}

async function run(plan: Plan): Promise<number> {
  const controller = new AbortController()
  let code = 0
  let stoppedMs = 0
  const stop = (exitCode: number) => () => {
    // A second signal ends the process, unless it is the first one again: some wrappers pass it on twice.
    if (code !== 0 && performance.now() - stoppedMs > sameSignalMs) process.exit(exitCode)
    if (code !== 0) return
    stoppedMs = performance.now()
    code = exitCode
    controller.abort()
  }
  process.on('SIGINT', stop(130))
  process.on('SIGTERM', stop(143))

  const workload = new Workload(plan)
  const options = {
    totalOps: plan.total,
    warmupOps: plan.warmup,
    inFlight: plan.in_flight === 'unlimited' ? Infinity : plan.in_flight,
    timeoutMs: plan.timeout_ms,
    memoryCapBytes: plan.memory_cap_bytes,
    signal: controller.signal,
    plan,
    nullOp: operations(plan, nullStore(workload), workload),
  }
  if (plan.target === 'fake:') {
    await benchmark({ ...options, client: { name: 'fake', version: '1' }, nullOp: { nextOp: () => Promise.resolve() }, ...fake() })
    return code
  }
  let store: Store | undefined
  try {
    store = plan.target === 'null:' ? nullStore(workload) : await connect(plan)
    await preload(plan, store, workload)
  } catch (error) {
    const cluster = /^hazelcasts?:/.test(plan.target) ? ` (cluster ${plan.cluster})` : ''
    return say(`cannot ${store ? 'put the first values into' : 'connect to'} ${plan.target}${cluster}: ${(error as Error).message}`, 3)
  }
  const { client, member } = store
  await benchmark({ ...options, ...operations(plan, store, workload), client, member, isUnknown: (error) => store.isUnknown(error) })
  // A client that does not get rid of its connection must not keep the process.
  await Promise.race([store.close(), new Promise((resolve) => setTimeout(resolve, 2000).unref())]).catch(() => {})
  return code
}

async function main(): Promise<number> {
  try {
    return await run(readPlan(process.argv.length === 3 ? process.argv[2]! : ''))
  } catch (error) {
    if (error instanceof BadPlan) return say(error.message, 2)
    throw error
  }
}

// The tests import this file too.
if (process.argv[1] === fileURLToPath(import.meta.url)) process.exit(await main())
