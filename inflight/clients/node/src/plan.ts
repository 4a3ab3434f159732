// The plan: one JSON object that says what a runner does. Everything wrong with it is said at once.

export type Op = 'get' | 'set' | 'mix'
export type Pattern = 'one' | 'uniform' | 'zipf'

export interface Plan {
  target: string
  op: Op
  value_bytes: number
  /** Operations in all, warm-up included. */
  total: number
  warmup: number
  in_flight: number | 'unlimited'
  keys: { pattern: Pattern; count?: number; theta?: number }
  seed: number
  cluster: string
  timeout_ms: number
  memory_cap_bytes: number
  /** Over TLS: a PEM file with authorities to trust besides the usual ones. */
  ca?: string
  /** Over TLS: any certificate is accepted. */
  insecure?: true
}

export class BadPlan extends Error {
  override name = 'BadPlan'
}

const targets = [
  /^hazelcasts?:\/\/[^/,]+:\d+(,[^/,]+:\d+)*\/.+$/,
  /^rediss?:\/\/(\[[^\]]+\]|[^/:,]+):\d+(\/\d+)?$/,
  /^null:$/,
  /^fake:$/,
]
const keysOfPlan = [
  'target', 'op', 'value_bytes', 'total', 'warmup', 'in_flight', 'keys', 'seed', 'cluster', 'timeout_ms',
  'memory_cap_bytes', 'ca', 'insecure', 'variant',
]

/** Reads a plan and fills in the defaults. @throws BadPlan naming every mistake. */
export function readPlan(text: string): Plan {
  const mistakes: string[] = []
  const given = object(text)
  const got = (value: unknown) => (value === undefined ? 'but is missing' : `got ${JSON.stringify(value)}`)
  const refuse = <T>(name: string, must: string, value: unknown, fallback: T): T => {
    mistakes.push(`"${name}" must be ${must}, ${got(value)}`)
    return fallback
  }
  const known = (names: string[], prefix: string, from: object) => {
    for (const name of Object.keys(from)) {
      if (names.includes(name)) continue
      mistakes.push(`unknown key "${prefix}${name}"; known are ${names.map((each) => prefix + each).join(', ')}`)
    }
  }
  const whole = (name: string, value: unknown, least: number, most: number, fallback: number, or = '') => {
    if (value === undefined) return fallback
    if (Number.isInteger(value) && (value as number) >= least && (value as number) <= most) return value as number
    return refuse(name, `a whole number from ${least} to ${most}${or}`, value, fallback)
  }
  const word = <T extends string>(name: string, value: unknown, words: readonly T[], must: string): T => {
    if (value === undefined) return words[0]!
    return words.includes(value as T) ? (value as T) : refuse(name, must, value, words[0]!)
  }

  known(keysOfPlan, '', given)
  if (given['variant'] !== undefined) mistakes.push('"variant" is for the Java runner only')
  let target = given['target']
  if (typeof target !== 'string' || !targets.some((form) => form.test(target as string))) {
    target = refuse('target', 'hazelcast://HOST:PORT/MAP, redis://HOST:PORT, over TLS hazelcasts:// and rediss://, null: or fake:', target, '')
  }
  const op = word('op', given['op'], ['get', 'set', 'mix'] as const, 'get, set or mix')
  const value_bytes = whole('value_bytes', given['value_bytes'], 1, 16_777_216, 3)
  const total = whole('total', given['total'], 1, 1_000_000_000, 1_000_000)
  const warmup = whole('warmup', given['warmup'], 0, total - 1, Math.floor(total / 10))
  const in_flight = given['in_flight'] === 'unlimited'
    ? 'unlimited'
    : whole('in_flight', given['in_flight'], 1, 100_000, 100, ' or "unlimited"')

  let asked = given['keys'] ?? {}
  if (given['keys'] === null || typeof asked !== 'object' || Array.isArray(asked)) {
    asked = refuse('keys', 'an object such as {"pattern":"uniform","count":1000}', given['keys'], {})
  }
  const { pattern: askedPattern, count: askedCount, theta: askedTheta } = asked as Record<string, unknown>
  known(['pattern', 'count', 'theta'], 'keys.', asked)
  const pattern = word('keys.pattern', askedPattern, ['one', 'uniform', 'zipf'] as const, 'one, uniform or zipf')
  const count = whole('keys.count', askedCount, 1, 1_000_000, 1000)
  let theta = 0.99
  if (typeof askedTheta === 'number' && askedTheta >= 0 && askedTheta <= 10) theta = askedTheta
  else if (askedTheta !== undefined) refuse('keys.theta', 'a number from 0 to 10', askedTheta, 0)
  const keys = pattern === 'one' ? { pattern } : pattern === 'uniform' ? { pattern, count } : { pattern, count, theta }

  const seed = whole('seed', given['seed'], 0, 4_294_967_295, 1)
  let cluster = given['cluster'] ?? 'dev'
  if (given['cluster'] === null || typeof cluster !== 'string' || cluster === '') {
    cluster = refuse('cluster', 'a name', given['cluster'], '')
  }
  const timeout_ms = whole('timeout_ms', given['timeout_ms'], 1, 600_000, 10_000)
  const memory_cap_bytes = whole('memory_cap_bytes', given['memory_cap_bytes'], 1_048_576, 1_099_511_627_776, 536_870_912)
  let ca = given['ca']
  if (ca !== undefined && (typeof ca !== 'string' || ca === '')) ca = refuse('ca', 'the path of a PEM file', ca, undefined)
  const insecure = given['insecure'] ?? false
  if (given['insecure'] === null || typeof insecure !== 'boolean') refuse('insecure', 'true or false', given['insecure'], false)
  if (mistakes.length > 0) throw new BadPlan(mistakes.join('; '))
  return {
    target: target as string, op, value_bytes, total, warmup, in_flight, keys, seed, cluster: cluster as string,
    timeout_ms, memory_cap_bytes, ...(ca !== undefined && { ca: ca as string }), ...(insecure === true && { insecure }),
  }
}

function object(text: string): Record<string, unknown> {
  try {
    const parsed: unknown = JSON.parse(text)
    if (typeof parsed === 'object' && parsed !== null && !Array.isArray(parsed)) return parsed as Record<string, unknown>
  } catch {
    // Said below: a parser's own words differ from language to language.
  }
  throw new BadPlan('the plan is not a JSON object; give one, for example {"target":"null:"}')
}
