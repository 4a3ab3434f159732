// What a phase counted: outcomes, latencies and the causes of errors. Every operation enters exactly once.

import { deflateSync, inflateSync } from 'node:zlib'
import { build, encodeIntoCompressedBase64, type Histogram } from 'hdr-histogram-js'

/** How an operation ended. `hit`, `miss` and `wrong` are of gets: the first two are ok as well, and wrong is failed. */
export type Outcome = 'ok' | 'hit' | 'miss' | 'wrong' | 'failed' | 'unknown'

export interface Counts {
  ops: number
  ok: number
  failed: number
  unknown: number
  hits: number
  misses: number
  wrong: number
}

export interface ErrorCount {
  cause: string
  count: number
  first: string
}

export const highestLatencyNs = 3.6e12
const causesKept = 20

export const newHistogram = (): Histogram =>
  build({ lowestDiscernibleValue: 1, highestTrackableValue: highestLatencyNs, numberOfSignificantValueDigits: 3, bitBucketSize: 32 })

const noCounts = (): Counts => ({ ops: 0, ok: 0, failed: 0, unknown: 0, hits: 0, misses: 0, wrong: 0 })

export class Tally {
  readonly counts = noCounts()
  /** All latencies up to the last call of `takeInterval`. */
  readonly latency = newHistogram()
  private readonly interval = newHistogram()
  private last = noCounts()
  private readonly causes = new Map<string, ErrorCount>()

  record(outcome: Outcome, latencyNs: number): void {
    const counts = this.counts
    counts.ops++
    if (outcome === 'ok') counts.ok++
    else if (outcome === 'hit') { counts.ok++; counts.hits++ }
    else if (outcome === 'miss') { counts.ok++; counts.misses++ }
    else if (outcome === 'wrong') { counts.failed++; counts.wrong++ }
    else if (outcome === 'failed') counts.failed++
    else counts.unknown++
    this.interval.recordValue(Math.min(Math.max(latencyNs, 1), highestLatencyNs))
  }

  blame(cause: string, text: string): void {
    if (!this.causes.has(cause) && this.causes.size >= causesKept) cause = 'other'
    const known = this.causes.get(cause)
    if (known) known.count++
    else this.causes.set(cause, { cause, count: 1, first: text.slice(0, 300) })
  }

  /** Counts and quantiles since the call before. */
  takeInterval(): Counts & { p50_ns: number; p99_ns: number; max_ns: number } {
    const counts = noCounts()
    for (const name of Object.keys(counts) as (keyof Counts)[]) counts[name] = this.counts[name] - this.last[name]
    this.last = { ...this.counts }
    const some = counts.ops > 0
    const quantile = (percent: number) => (some ? this.interval.getValueAtPercentile(percent) : 0)
    const taken = { ...counts, p50_ns: quantile(50), p99_ns: quantile(99), max_ns: some ? this.interval.maxValue : 0 }
    this.latency.add(this.interval)
    this.interval.reset()
    return taken
  }

  /** The histogram of the whole phase in HdrHistogram's V2 format, deflated, base64. */
  encoded(): string {
    const written = Buffer.from(encodeIntoCompressedBase64(this.latency), 'base64')
    const histogram = inflateSync(written.subarray(8))
    // hdr-histogram-js writes 1 as the normalizing offset without using it. Readers in other languages refuse or apply it.
    histogram.writeInt32BE(0, 8)
    const deflated = deflateSync(histogram)
    written.writeInt32BE(deflated.length, 4)
    return Buffer.concat([written.subarray(0, 8), deflated]).toString('base64')
  }

  errors(): ErrorCount[] {
    return [...this.causes.values()].sort((a, b) => b.count - a.count)
  }
}
