// How fit this runtime was while it measured: delay of the event loop, pauses of the garbage collector, heap.

import { monitorEventLoopDelay, PerformanceObserver, type IntervalHistogram } from 'node:perf_hooks'
import { getHeapStatistics } from 'node:v8'

export interface RuntimeFigures {
  /** How much later than due a timer of 10 ms ran. Absent when none ran: the loop was blocked all along. */
  loop_delay_p99_ns?: number
  loop_delay_max_ns?: number
  gc_pause_ns: number
  gc_pause_max_ns: number
  gc_count: number
  heap_bytes: number
}

const resolutionMs = 10

export class Fitness {
  private readonly observer = new PerformanceObserver((list) => this.add(list.getEntries()))
  private readonly second = new Span()
  private readonly phase = new Span()

  constructor() {
    this.observer.observe({ entryTypes: ['gc'] })
  }

  takeSecond(): RuntimeFigures {
    this.add(this.observer.takeRecords())
    return this.second.take()
  }

  /** Figures since the call before, whatever `takeSecond` took. */
  takePhase(): RuntimeFigures {
    this.add(this.observer.takeRecords())
    return this.phase.take()
  }

  close(): void {
    this.observer.disconnect()
    this.second.delay.disable()
    this.phase.delay.disable()
  }

  private add(entries: { duration: number }[]): void {
    for (const { duration } of entries) {
      this.second.pause(duration * 1e6)
      this.phase.pause(duration * 1e6)
    }
  }
}

class Span {
  readonly delay: IntervalHistogram = monitorEventLoopDelay({ resolution: resolutionMs })
  private gc = { pauseNs: 0, maxNs: 0, count: 0 }

  constructor() {
    this.delay.enable()
  }

  pause(ns: number): void {
    this.gc.pauseNs += ns
    this.gc.maxNs = Math.max(this.gc.maxNs, ns)
    this.gc.count++
  }

  take(): RuntimeFigures {
    // Node.js records the time between two runs of its timer, so a loop without any delay shows the period itself.
    const late = (ns: number) => Math.max(0, Math.round(ns - resolutionMs * 1e6))
    const some = this.delay.count > 0
    const figures: RuntimeFigures = {
      ...(some ? { loop_delay_p99_ns: late(this.delay.percentile(99)), loop_delay_max_ns: late(this.delay.max) } : {}),
      gc_pause_ns: Math.round(this.gc.pauseNs),
      gc_pause_max_ns: Math.round(this.gc.maxNs),
      gc_count: this.gc.count,
      heap_bytes: getHeapStatistics().used_heap_size,
    }
    this.delay.reset()
    this.gc = { pauseNs: 0, maxNs: 0, count: 0 }
    return figures
  }
}
