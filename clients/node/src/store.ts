// The stores that a runner can benchmark, each behind the same few calls.

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
  if (plan.target.startsWith('hazelcast:')) return (await import('./hazelcast.js')).connectHazelcast(plan)
  if (plan.target.startsWith('redis:')) return (await import('./redis.js')).connectRedis(plan)
  throw new Error(`${plan.target} is no store`)
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
