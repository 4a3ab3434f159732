// Facts about a run and its machine, as rows of a table.

import { bytes } from './format'

const NAMES: Record<string, string> = { os: 'operating system', cpu_model: 'CPU model', descriptors_hard: 'open files, hard limit' }

function plain(value: unknown): string {
  return typeof value === 'boolean' ? (value ? 'yes' : 'no') : String(value ?? '—')
}

/** `first`, then what the store keeps of the machine. */
export function machineFacts(first: [string, string | Node][], environment: Record<string, unknown>): [string, string | Node][] {
  const facts = first.slice()
  for (const [name, value] of Object.entries(environment)) {
    // The cores that may be used, once more.
    if (name === 'cores' && 'allowed_cores' in environment) continue
    facts.push([NAMES[name] ?? name.replaceAll('_', ' ').replace(/ bytes$/, ''), name.endsWith('_bytes') && typeof value === 'number' ? bytes(value)
      : value !== null && typeof value === 'object' ? Object.entries(value).filter(([, part]) => part !== null).map(([key, part]) => `${key} ${part}`).join(', ') : plain(value)])
  }
  return facts
}
