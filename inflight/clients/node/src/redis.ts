// Redis's own client for Node.js: npm @redis/client, one connection, commands pipelined by the client itself.

import { createRequire } from 'node:module'
import { createClient } from '@redis/client'
import type { Plan } from './plan.js'
import { connectTimeoutMs, trust, type Store } from './store.js'

const { version } = createRequire(import.meta.url)('@redis/client/package.json') as { version: string }
/** The connection broke after the command may have been sent. Commands that were never sent are failed. */
const unknown = new Set(['SocketClosedUnexpectedlyError', 'DisconnectsClientError', 'SocketTimeoutError', 'ClientClosedError'])

export async function connectRedis(plan: Plan): Promise<Store> {
  let connected = false
  const client = createClient({
    url: plan.target,
    // A command that finds no connection fails at once instead of waiting in a queue without a limit.
    disableOfflineQueue: true,
    socket: {
      ...(trust(plan) && { tls: true, ...trust(plan) }),
      connectTimeout: connectTimeoutMs,
      reconnectStrategy: (_retries, cause) => (connected ? 100 : cause),
    },
  })
  client.on('error', (error: Error) => connected && console.error(`redis: ${error.message}`))
  await client.connect()
  connected = true
  const member = /redis_version:(\S+)/.exec(await client.info('server'))?.[1]
  return {
    client: { name: '@redis/client', version },
    member: member ? { version: member } : null,
    get: (key) => client.get(key),
    set: (key, value) => client.set(key, value),
    delete: (key) => client.del(key),
    isUnknown: (error) => error instanceof Error && unknown.has(error.constructor.name),
    close: async () => client.destroy(),
  }
}
