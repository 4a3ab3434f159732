// What a profile of the inspector becomes. Run by clients/check.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { allocStacks, cpuStacks } from '../src/profile.js'

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
