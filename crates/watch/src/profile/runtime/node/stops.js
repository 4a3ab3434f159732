// What the server's process runs for a profiled hold: an object whose begin and end are called when the hold begins and ends.
// Times are in ms; those of the longest callbacks are readings of CLOCK_MONOTONIC.
(() => {
  const { createHook } = require('node:async_hooks')
  const { monitorEventLoopDelay, performance, PerformanceObserver } = require('node:perf_hooks')
  const RESOLUTION_MS = 2, LONG_MS = 20, KEPT = 16
  const delay = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  let gcMs = 0, gcMaxMs = 0, depth = 0, began = 0, long = 0, giveUp
  // From and to, the longest first.
  const longest = []
  const took = ([from, to]) => to - from
  const collected = entries => {
    for (const { duration } of entries) {
      gcMs += duration
      gcMaxMs = Math.max(gcMaxMs, duration)
    }
  }
  const observer = new PerformanceObserver(list => collected(list.getEntries()))
  // Callbacks nest; the outermost one holds the event loop.
  const callbacks = createHook({
    before() {
      if (depth++ === 0) began = performance.now()
    },
    after() {
      if (depth === 0 || --depth > 0) return
      const now = performance.now()
      if (now - began >= LONG_MS) long++
      if (longest.length < KEPT || now - began > took(longest.at(-1))) {
        longest.push([began, now])
        longest.sort((a, b) => took(b) - took(a)).splice(KEPT)
      }
    },
  })
  return {
    begin(holdMs) {
      delay.enable()
      observer.observe({ entryTypes: ['gc'] })
      callbacks.enable()
      // Whoever asked may be gone.
      giveUp = setTimeout(() => this.end(), 2 * holdMs + 60_000).unref()
    },
    end() {
      callbacks.disable()
      delay.disable()
      collected(observer.takeRecords())
      observer.disconnect()
      clearTimeout(giveUp)
      const late = ns => Math.max(0, ns / 1e6 - RESOLUTION_MS)
      const zero = Number(process.hrtime.bigint()) / 1e6 - performance.now()
      return {
        gcMs, gcMaxMs, delayMs: [late(delay.percentile(99)), late(delay.max)],
        longest: longest.map(([from, to]) => [zero + from, zero + to]), long,
      }
    },
  }
})()
