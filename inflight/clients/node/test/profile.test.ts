// What a profile of the inspector becomes. Run by inflight/clients/check.

import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { Session } from 'node:inspector/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { allocStacks, cpuStacks, writeHeapSnapshot } from '../src/profile.js'

const call = (functionName: string, url = '', lineNumber = 0) => ({ functionName, url, lineNumber, columnNumber: 0, scriptId: '1' })

test('microseconds are summed by stack, idle time is left out, and each frame says what it belongs to', () => {
  const node = (id: number, callFrame: ReturnType<typeof call>, children: number[] = []) => ({ id, callFrame, children })
  const profile = {
    nodes: [
      node(1, call('(root)'), [2, 4, 5, 6]),
      node(2, call('decode', 'file:///a/node_modules/client/lib/codec.js', 6), [3]),
      node(3, call('writev', 'node:internal/net', 9)),
      node(4, call('(garbage collector)')),
      node(5, call('(idle)')),
      node(6, call('(program)')),
    ],
    startTime: 0, endTime: 1, samples: [2, 3, 3, 4, 5, 6], timeDeltas: [10, 1, 2, 5, 1000, 7],
  }
  assert.deepEqual(cpuStacks(profile).sort(), [
    'gc:garbage collector 5', 'runtime:program 7', 'user:decode client/lib/codec.js:7 10',
    'user:decode client/lib/codec.js:7;runtime:writev node:internal/net:10 3',
  ])
})

test('bytes are those that a function allocated itself', () => {
  const node = (callFrame: ReturnType<typeof call>, selfSize: number, children: object[] = []) => ({ callFrame, selfSize, children, id: 0 })
  const head = node(call('(root)'), 0, [node(call('get', 'file:///x/dist/a.js', 1), 0, [node(call('alloc', 'node:buffer'), 64)])])
  assert.deepEqual(allocStacks({ head, samples: [] } as unknown as Parameters<typeof allocStacks>[0]), ['user:get a.js:2;runtime:alloc node:buffer:1 64'])
})

class KeptValue {
  constructor(readonly number: number) {}
}

test('a heap snapshot is written whole and holds what is alive, by constructor', async () => {
  const kept = Array.from({ length: 20_000 }, (_, at) => new KeptValue(at))
  const folder = mkdtempSync(join(tmpdir(), 'inflight-'))
  const session = new Session()
  session.connect()
  try {
    const file = join(folder, 'planted.heapsnapshot')
    await writeHeapSnapshot(session, file)
    const { snapshot, nodes, strings } = JSON.parse(readFileSync(file, 'utf8'))
    const fields: string[] = snapshot.meta.node_fields
    const name = strings.indexOf('KeptValue')
    let count = 0
    for (let at = 0; at < nodes.length; at += fields.length) {
      const type = snapshot.meta.node_types[0][nodes[at + fields.indexOf('type')]]
      if (type === 'object' && nodes[at + fields.indexOf('name')] === name) count++
    }
    // The constructor's prototype has its name too.
    assert.ok(count >= kept.length && count <= kept.length + 2, `${count} objects`)
    await assert.rejects(writeHeapSnapshot(session, join(folder, 'missing', 'planted.heapsnapshot')), /ENOENT/)
  } finally {
    session.disconnect()
    rmSync(folder, { recursive: true })
  }
})
