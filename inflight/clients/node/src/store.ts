// The stores that a runner can benchmark, each behind the same few calls.

import { readFileSync } from 'node:fs'
import { rootCertificates } from 'node:tls'
import type { Plan } from './plan.js'
import type { Workload } from './workload.js'

export interface Store {
  client: { name: string; version: string }
  member: { version: string } | null
  /** A getter of a missing key resolves to null or undefined. */
  get(key: string): Promise<unknown>
  set(key: string, value: string): Promise<unknown>
  delete(key: string): Promise<unknown>
  /** Whether the error leaves it open what became of an operation that was sent. */
  isUnknown(error: unknown): boolean
  close(): Promise<void>
}

/** Connects, or rejects with what is wrong. Each client library is loaded only when it is asked for. */
export async function connect(plan: Plan): Promise<Store> {
  if (/^hazelcasts?:/.test(plan.target)) return (await import('./hazelcast.js')).connectHazelcast(plan)
  if (/^rediss?:/.test(plan.target)) return (await import('./redis.js')).connectRedis(plan)
  throw new Error(`${plan.target} is no store`)
}

/** What Node.js's TLS trusts, by a plan; undefined without TLS. An option `ca` takes the place of the usual authorities. */
export function trust(plan: Plan): { ca?: string[]; rejectUnauthorized: boolean } | undefined {
  if (!/^(hazelcasts|rediss):/.test(plan.target)) return undefined
  const ca = plan.ca === undefined ? {} : { ca: [...rootCertificates, readFileSync(plan.ca, 'utf8')] }
  return { ...ca, rejectUnauthorized: !plan.insecure }
}

/** How long connecting may take. */
export const connectTimeoutMs = 10_000

/** Answers at once. Values are copies, so that checking one compares its bytes as it does with a real store. */
export function nullStore(workload: Workload): Store {
  const copies = new Map<string, string>()
  const copy = (name: string) => {
    const value = Buffer.from(workload.value(Number(name.slice(1)))).toString('latin1')
    copies.set(name, value)
    return value
  }
  return {
    client: { name: 'null', version: '1' },
    member: null,
    get: (key) => Promise.resolve(key.startsWith('k') ? (copies.get(key) ?? copy(key)) : null),
    set: () => Promise.resolve(),
    delete: () => Promise.resolve(),
    isUnknown: () => false,
    close: () => Promise.resolve(),
  }
}
