// A profile of the measured part, where the environment asks for one: INFLIGHT_PROFILE=cpu:FILE or alloc:FILE.
// The format of the file is described in ../../README.md.

import { closeSync, openSync, writeFileSync } from 'node:fs'
import { Session } from 'node:inspector/promises'
import type { HeapProfiler, Profiler, Runtime } from 'node:inspector'

const variable = 'INFLIGHT_PROFILE'
const cpuPeriodUs = 1000
const allocEveryBytes = 32768

/** Begins a profile, if one is asked for. What is returned ends it and writes the file; of a run that was stopped no heap snapshot. */
export async function profile(): Promise<(isWhole: boolean) => Promise<void>> {
  const asked = /^(cpu|alloc):(.+)$/.exec(process.env[variable] ?? '')
  if (!asked) return async () => {}
  const [, kind, file] = asked
  const session = new Session()
  session.connect()
  if (kind === 'cpu') {
    await session.post('Profiler.enable')
    await session.post('Profiler.setSamplingInterval', { interval: cpuPeriodUs })
    await session.post('Profiler.start')
  } else {
    await session.post('HeapProfiler.startSampling', {
      samplingInterval: allocEveryBytes,
      // What was collected meanwhile counts too: the profile is of what was allocated, not of what is left.
      includeObjectsCollectedByMajorGC: true,
      includeObjectsCollectedByMinorGC: true,
    } as HeapProfiler.StartSamplingParameterType)
  }
  return async (isWhole) => {
    const lines = kind === 'cpu'
      ? cpuStacks((await session.post('Profiler.stop')).profile)
      : allocStacks((await session.post('HeapProfiler.stopSampling')).profile)
    if (kind === 'alloc' && isWhole) await writeHeapSnapshot(session, `${file}.heapsnapshot`)
    session.disconnect()
    writeFileSync(file!, lines.map((line) => `${line}\n`).join(''))
  }
}

/** What is alive after a garbage collection, which the inspector makes; Chrome DevTools opens the file. */
export async function writeHeapSnapshot(session: Session, file: string): Promise<void> {
  const to = openSync(file, 'w')
  let failure: unknown
  // The inspector goes on when a listener throws.
  const write = ({ params }: { params: { chunk: string } }) => {
    try {
      if (failure === undefined) writeFileSync(to, params.chunk)
    } catch (error) {
      failure = error
    }
  }
  session.on('HeapProfiler.addHeapSnapshotChunk', write)
  try {
    await session.post('HeapProfiler.takeHeapSnapshot', { reportProgress: false })
  } finally {
    session.off('HeapProfiler.addHeapSnapshotChunk', write)
    closeSync(to)
  }
  if (failure !== undefined) throw failure
}

/** `function file:line`, with what the file belongs to before it. */
function frame({ functionName, url, lineNumber }: Runtime.CallFrame): string {
  const name = (functionName || '(anonymous)').replaceAll(/[;\s]+/g, ' ')
  if (name.startsWith('(') && url === '') {
    if (name === '(garbage collector)') return 'gc:garbage collector'
    return `runtime:${name.replaceAll(/[()]/g, '')}`
  }
  // Built-in functions of the language have no file.
  const kind = url === '' || url.startsWith('node:') ? 'runtime' : 'user'
  const file = url.split(/[/\\]node_modules[/\\]/).at(-1)!.replace(/^file:\/\/.*\/dist\//, '')
  return `${kind}:${name}${file === '' ? '' : ` ${file}:${lineNumber + 1}`}`
}

/** Microseconds by stack; the event loop's idle time is left out. */
export function cpuStacks({ nodes, samples = [], timeDeltas = [] }: Profiler.Profile): string[] {
  const byId = new Map(nodes.map((node) => [node.id, node]))
  const parents = new Map(nodes.flatMap((node) => (node.children ?? []).map((child) => [child, node.id])))
  const stack = (id: number): string => {
    const node = byId.get(id)!
    const parent = parents.get(id)
    // The root is not a function.
    if (parent === undefined) return ''
    const above = stack(parent)
    return above === '' ? frame(node.callFrame) : `${above};${frame(node.callFrame)}`
  }
  const weights = new Map<number, number>()
  samples.forEach((id, at) => weights.set(id, (weights.get(id) ?? 0) + Math.max(0, timeDeltas[at]!)))
  return [...weights]
    .filter(([id, us]) => us > 0 && parents.has(id) && byId.get(id)!.callFrame.functionName !== '(idle)')
    .map(([id, us]) => `${stack(id)} ${us}`)
}

/** Bytes by stack. */
export function allocStacks({ head }: HeapProfiler.SamplingHeapProfile): string[] {
  const lines: string[] = []
  const visit = (node: HeapProfiler.SamplingHeapProfileNode, above: string) => {
    if (above !== '' && node.selfSize > 0) lines.push(`${above} ${node.selfSize}`)
    for (const child of node.children) visit(child, above === '' ? frame(child.callFrame) : `${above};${frame(child.callFrame)}`)
  }
  visit(head, '')
  return lines
}
