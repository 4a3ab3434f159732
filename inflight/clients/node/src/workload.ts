// Which key, value and kind operation i has: pure functions of the plan and i, the same in every language (../../README.md).

import { crc32 } from './crc32.js'
import type { Plan } from './plan.js'

export type Kind = 'get' | 'set' | 'delete'

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789'

/** The n-th random number of a seed, from 0 to 2^32 − 1: counted, so that it does not depend on who draws when. */
export function draw(seed: number, n: number): number {
  let h = (seed + Math.imul(n, 0x9e3779b9)) | 0
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b)
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35)
  return (h ^ (h >>> 16)) >>> 0
}

export class Workload {
  readonly kind: (i: number) => Kind
  /** Number of operation i's key. */
  readonly key: (i: number) => number
  /** Names of the keys by number. */
  readonly names: string[]
  private readonly startOf: Uint8Array
  private readonly values: (string | undefined)[] = new Array(62)

  constructor(private readonly plan: Pick<Plan, 'op' | 'keys' | 'seed' | 'value_bytes'>) {
    const { op, keys, seed } = plan
    const count = keys.count ?? 1
    this.names = Array.from({ length: count }, (_, j) => `k${j}`)
    this.startOf = Uint8Array.from(this.names, (name) => crc32(name) % 62)
    this.kind = op === 'mix' ? (i) => mixed(draw(seed, 2 * i)) : () => op
    if (keys.pattern === 'one') this.key = () => 0
    else if (keys.pattern === 'uniform') this.key = (i) => Math.floor((draw(seed, 2 * i + 1) * count) / 2 ** 32)
    else {
      const limits = zipfLimits(count, keys.theta ?? 0.99)
      this.key = (i) => firstAbove(limits, draw(seed, 2 * i + 1))
    }
  }

  /** The value of key number `key`. There are only 62 of a length, and each is made once. */
  value(key: number): string {
    const start = this.startOf[key]!
    return (this.values[start] ??= this.make(start))
  }

  /** A key that is practically never there: what the replaced benchmark asked for. */
  unroundedKey(i: number): string {
    return String(draw(this.plan.seed, 2 * i + 1) / 2 ** 32)
  }

  private make(start: number): string {
    const bytes = Buffer.allocUnsafe(this.plan.value_bytes)
    for (let i = 0; i < bytes.length; i++) bytes[i] = alphabet.charCodeAt((i + start) % 62)
    return bytes.toString('latin1')
  }
}

/** 40 % get, 40 % set, 20 % delete. */
function mixed(share: number): Kind {
  return share < 1_717_986_918 ? 'get' : share < 3_435_973_836 ? 'set' : 'delete'
}

/** Key j is drawn when the number is below limits[j] and not below the one before: probability ∝ 1 / (j + 1)^theta. */
function zipfLimits(count: number, theta: number): Float64Array {
  const sums = new Float64Array(count)
  let sum = 0
  for (let j = 0; j < count; j++) sums[j] = sum += Math.pow(j + 1, -theta)
  const limits = sums.map((each) => Math.floor((each / sum) * 2 ** 32))
  limits[count - 1] = 2 ** 32
  return limits
}

function firstAbove(limits: Float64Array, share: number): number {
  let low = 0
  let high = limits.length - 1
  while (low < high) {
    const middle = (low + high) >>> 1
    if (share < limits[middle]!) high = middle
    else low = middle + 1
  }
  return low
}
