// The deterministic fake: operation i has a planted latency and outcome, in virtual time. It checks the harness itself.

import { UnknownOutcome, type Options } from './inflight.js'

interface Pending {
  i: number
  endsNs: number
  settle: { resolve: () => void; reject: (error: Error) => void }
}

export const plantedLatencyNs = (i: number) => 1000 + ((i * 7919) % 100_003) * 37

/** Ends whichever operation is due first, once in each turn of the event loop, and sets the clock to that instant. */
export function fake(): Pick<Options<void>, 'nextOp' | 'clock'> {
  let nowNs = 0
  const pending: Pending[] = []
  const endNext = () => {
    let first = 0
    for (let at = 1; at < pending.length; at++) if (pending[at]!.endsNs < pending[first]!.endsNs) first = at
    const { i, endsNs, settle } = pending[first]!
    pending[first] = pending[pending.length - 1]!
    pending.pop()
    nowNs = endsNs
    if (i % 1009 === 0) settle.reject(new Error(`operation ${i} fails as planted`))
    else if (i % 2003 === 0) settle.reject(new UnknownOutcome(`operation ${i} is unknown as planted`))
    else settle.resolve()
    // What starts because of it starts before the next one ends: microtasks come first.
    if (pending.length > 0) setImmediate(endNext)
    else setImmediate(() => pending.length > 0 && endNext())
  }
  return {
    clock: () => nowNs,
    nextOp: (i) => new Promise<void>((resolve, reject) => {
      pending.push({ i, endsNs: nowNs + plantedLatencyNs(i), settle: { resolve, reject } })
      if (i === 0) setImmediate(endNext)
    }),
  }
}
