// The single steps of a get with Hazelcast's client for Node.js, without server and socket: what each costs of the main
// thread. `node target/clients/node/dist/bench/steps.js [VALUE_BYTES] [SECONDS]`, after inflight/clients/setup node.
//
// Each step is the library's own code, called as an operation calls it, 100 operations at a time as with 100 in flight, and the
// time is divided by 100: reading a clock costs as much as a step. tinybench repeats that and gives mean and error. What stands
// between the steps is left out: the event loop, libuv and the kernel, garbage collection of what other code holds. So the sum is
// less than an operation takes, and is compared with no total. The library's insides have no types and are not its API: pinned
// by package-lock.json, they are checked by what comes out of each step (test/steps.test.ts).

import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'
import { Bench } from 'tinybench'

const require = createRequire(import.meta.url)
/** A part of the library. */
const part = (path: string) => require(`hazelcast-client/lib/${path}.js`)

export const BATCH = 100
const CORRELATION_OFFSET = 4
const BACKUP_ACKS_OFFSET = 12
const HEADER_BYTES = 6
const WHOLE_MESSAGE = 0xc000
const LAST_FRAME = 0x2000
const GET_RESPONSE = 66049
/** What one read of a socket brings at most. */
const READ_BYTES = 64 << 10
/** Promises behind one another from a connection's `write` on. */
const PROMISES_DEEP = 4
/** What an operation is registered at that no connection is written to. */
const NOWHERE = { write: () => Promise.resolve() }

/** A step of an operation. `run` does it for 100 operations. */
export interface Step {
  name: string
  what: string
  /** Puts back what the last `run` used up; not timed. */
  before?: () => void
  run: () => unknown
  /** Errors: it did not do what the step does in an operation. */
  check: () => void
}

/** The answer to a get, as a member writes it. */
export function answer(correlation: number, data: Buffer): Buffer {
  const frame = (flags: number, content: Buffer) => {
    const header = Buffer.alloc(HEADER_BYTES)
    header.writeInt32LE(HEADER_BYTES + content.length, 0)
    header.writeUInt16LE(flags, 4)
    return Buffer.concat([header, content])
  }
  const first = Buffer.alloc(BACKUP_ACKS_OFFSET + 1)
  first.writeInt32LE(GET_RESPONSE, 0)
  first.writeBigInt64LE(BigInt(correlation), CORRELATION_OFFSET)
  return Buffer.concat([frame(WHOLE_MESSAGE, first), frame(LAST_FRAME, data)])
}

/** The steps of a get of a value of this length, in their order. */
export function steps(valueBytes: number): Step[] {
  const { SerializationServiceV1 } = part('serialization/SerializationService')
  const { SerializationConfigImpl } = part('config/SerializationConfig')
  const { ClientConfigImpl } = part('config/Config')
  const { MapGetCodec } = part('codec/MapGetCodec')
  const { InvocationService } = part('invocation/InvocationService')
  const { PipelinedWriter, ClientMessageReader } = part('network/Connection')
  const { deferredPromise } = part('util/Util')

  const serialization = new SerializationServiceV1(new SerializationConfigImpl(), {})
  const text = 'a'.repeat(valueBytes)
  const [key, value] = [serialization.toData('k0'), serialization.toData(text).toBuffer()]
  const registry = { checkIfInvocationAllowed: () => null, getConnection: () => NOWHERE }
  const partitions = { getPartitionOwner: () => 'owner' }
  const service = new InvocationService(new ClientConfigImpl(), console, partitions, {}, { isRunning: () => true }, registry, {}, serialization)
  const times = <T>(of: (at: number) => T): T[] => Array.from({ length: BATCH }, (_, at) => of(at))
  const expect = (is: boolean, what: string) => { if (!is) throw new Error(what) }

  let keys: any[] = []
  let requests: any[] = []
  let written = 0
  let writer: any = null
  let reader: any = null
  let messages: any[] = []
  let values: any[] = []
  let results: Promise<unknown>[] = []
  let resolved: unknown[] = []
  const invoke = (request: any) => service.invokeOnPartition(request, key.getPartitionHash() & 0x7fffffff, (message: any) => message)
  const received = Buffer.concat(times(at => answer(1 + at, value)))
  const pieces = Array.from({ length: Math.ceil(received.length / READ_BYTES) }, (_, at) => received.subarray(at * READ_BYTES, (at + 1) * READ_BYTES))

  return [
    {
      name: 'serialise', what: 'key to bytes',
      run: () => { keys = times(() => serialization.toData('k0')) },
      check: () => expect(keys.length === BATCH && keys[7].equals(key), 'a key is not serialised'),
    },
    {
      name: 'start', what: 'partition, request, correlation, promise',
      before: () => service.pending.clear(),
      run: async () => {
        requests = times(() => { const request = MapGetCodec.encodeRequest('bench', key, 0); void invoke(request); return request })
        // What the library does once the connection has taken a request.
        for (let turn = 0; turn < PROMISES_DEEP; turn++) await null
      },
      check: () => expect(service.pending.size === BATCH, 'operations are not registered'),
    },
    {
      name: 'write', what: 'requests to one buffer, handed to the socket',
      before: () => {
        written = 0
        const socket = { on: () => {}, off: () => {}, destroy: () => {}, write: (bytes: Buffer, done: () => void) => { written += bytes.length; done(); return true } }
        writer = new PipelinedWriter(socket, 8192, () => {})
        writer.scheduled = true
        if (requests.length === 0) requests = times(() => MapGetCodec.encodeRequest('bench', key, 0))
      },
      run: () => {
        for (const message of requests) writer.write(message, deferredPromise())
        while (writer.queue.length > 0) writer.process()
      },
      check: () => expect(written === requests.reduce((sum, one) => sum + one.getTotalLength(), 0), 'requests are not written'),
    },
    {
      name: 'read', what: 'bytes to messages, in pieces as a socket gives them',
      before: () => { reader = new ClientMessageReader(); messages = [] },
      run: () => {
        for (const piece of pieces) {
          reader.append(piece)
          for (let message = reader.read(); message !== null; message = reader.read()) messages.push(message)
        }
      },
      check: () => expect(messages.length === BATCH && messages[7].getCorrelationId() === 8, 'answers are not read'),
    },
    {
      name: 'deserialise', what: 'bytes of an answer to the value',
      before: () => { for (const message of messages) message.resetNextFrame() },
      run: () => { values = messages.map(message => serialization.toObject(MapGetCodec.decodeResponse(message))) },
      check: () => expect(values.length === BATCH && values[7] === text, 'values are not those that were put'),
    },
    {
      name: 'resolve', what: 'message to its operation, whose promise is awaited',
      before: () => {
        service.pending.clear()
        service.correlationCounter = 1
        results = times(() => invoke(MapGetCodec.encodeRequest('bench', key, 0)))
      },
      run: async () => {
        for (const message of messages) service.processResponse(message)
        resolved = []
        for (const result of results) resolved.push(await result)
      },
      check: () => expect(resolved.length === BATCH && resolved[7] === messages[7] && service.pending.size === 0, 'operations are not resolved'),
    },
  ]
}

/** ns per operation of each step, with the half-width of its 95 % interval. Errors: a step that does something else. */
export async function measure(valueBytes: number, seconds: number): Promise<{ name: string; what: string; ns: number; error_ns: number; samples: number }[]> {
  const all = steps(valueBytes)
  const bench = new Bench({ time: seconds * 1000, warmupTime: seconds * 250, throws: true })
  for (const step of all) bench.add(step.name, step.run, step.before ? { beforeEach: step.before } : {})
  const measured = []
  // One after the other: each uses what the one before it made.
  for (const [at, step] of all.entries()) {
    const task = bench.tasks[at]!
    await task.warmup()
    await task.run()
    step.check()
    const { result } = task
    if (result.state !== 'completed') throw new Error(`${step.name}: ${result.state}`)
    const { mean, moe, samplesCount } = result.latency
    measured.push({ name: step.name, what: step.what, ns: mean * 1e6 / BATCH, error_ns: moe * 1e6 / BATCH, samples: samplesCount })
  }
  return measured
}

async function main() {
  const [valueBytes = 3, seconds = 2] = process.argv.slice(2).map(Number)
  if (![valueBytes, seconds].every(one => one > 0) || !Number.isInteger(valueBytes)) {
    console.error('usage: steps [VALUE_BYTES] [SECONDS PER STEP], for example: steps 1024 2')
    process.exit(2)
  }
  const measured = await measure(valueBytes, seconds)
  const version = require('hazelcast-client/package.json').version as string
  console.log(`get ${valueBytes} B, hazelcast-client ${version}, node ${process.versions.node}, ${BATCH} operations at a time; ns per operation`)
  for (const { name, what, ns, error_ns, samples } of measured) {
    console.log(`${name.padEnd(12)} ${ns.toFixed(0).padStart(8)} ±${error_ns.toFixed(0).padEnd(5)} ${String(samples).padStart(7)} samples  ${what}`)
  }
  console.log(`${'all'.padEnd(12)} ${measured.reduce((sum, one) => sum + one.ns, 0).toFixed(0).padStart(8)}`)
}

if (process.argv[1] === fileURLToPath(import.meta.url)) await main()
