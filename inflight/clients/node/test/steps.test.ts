import assert from 'node:assert/strict'
import { test } from 'node:test'
import { measure, steps } from '../bench/steps.js'

test('each step of a get does what it does in an operation', async () => {
  for (const valueBytes of [3, 1024]) {
    for (const step of steps(valueBytes)) {
      step.before?.()
      await step.run()
      step.check()
    }
  }
})

test('a step that does something else is no figure', async () => {
  const all = steps(3)
  const deserialise = all.find((step) => step.name === 'deserialise')!
  assert.throws(() => deserialise.check(), /not those that were put/)
})

test('each step has a time', async () => {
  const measured = await measure(3, 0.02)
  assert.deepEqual(measured.map((one) => one.name), ['serialise', 'start', 'write', 'read', 'deserialise', 'resolve'])
  for (const { name, ns, samples } of measured) assert.ok(ns > 0 && samples > 0, name)
})
