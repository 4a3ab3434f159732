// Hazelcast's own client for Node.js: npm hazelcast-client.

import { createRequire } from 'node:module'
import hazelcast from 'hazelcast-client'
import type { Plan } from './plan.js'
import { connectTimeoutMs, trust, type Store } from './store.js'

const { version } = createRequire(import.meta.url)('hazelcast-client/package.json') as { version: string }
/** The connection broke, or the client's own time ran out, after the operation may have been sent. */
const unknown = new Set([
  'TargetDisconnectedError', 'IOError', 'OperationTimeoutError', 'IndeterminateOperationStateError', 'MemberLeftError',
  'ClientNotActiveError', 'HazelcastInstanceNotActiveError',
])

export async function connectHazelcast(plan: Plan): Promise<Store> {
  const [, addresses, mapName] = /^hazelcasts?:\/\/([^/]+)\/(.+)$/.exec(plan.target)!
  const warn = (_name: string, message: string) => console.error(message)
  const quiet = () => {}
  const tls = trust(plan)
  const client = await hazelcast.Client.newHazelcastClient({
    clusterName: plan.cluster,
    network: {
      clusterMembers: addresses!.split(','),
      connectionTimeout: connectTimeoutMs,
      ...(tls && { ssl: { enabled: true, sslOptions: tls } }),
    },
    connectionStrategy: { connectionRetry: { clusterConnectTimeoutMillis: connectTimeoutMs } },
    properties: { 'hazelcast.client.invocation.timeout.millis': plan.timeout_ms },
    // The client's own logger writes to standard output.
    customLogger: { log: (_level, name, message) => warn(name, message), error: warn, warn, info: quiet, debug: quiet, trace: quiet },
  })
  const map = await client.getMap<string, string>(mapName!)
  // The declared type lacks what every member has.
  const [first] = client.getCluster().getMembers() as { version?: { major: number; minor: number; patch: number } }[]
  const member = first?.version
  return {
    client: { name: 'hazelcast-client', version },
    member: member ? { version: `${member.major}.${member.minor}.${member.patch}` } : null,
    get: (key) => map.get(key),
    set: (key, value) => map.set(key, value),
    delete: (key) => map.delete(key),
    // Their `name` is that of Error.
    isUnknown: (error) => error instanceof Error && unknown.has(error.constructor.name),
    close: () => client.shutdown(),
  }
}
