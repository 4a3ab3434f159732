// Facts about a run and its machine, as rows of a table.

import { bytes } from './format'

/** `first`, then what the store keeps of the machine. */
export function machineFacts(first: [string, string | Node][], environment: Record<string, unknown>): [string, string | Node][] {
  const facts = first.slice()
  for (const [name, value] of Object.entries(environment)) {
    facts.push([name.replaceAll('_', ' ').replace(/ bytes$/, ''), name.endsWith('_bytes') && typeof value === 'number' ? bytes(value)
      : value !== null && typeof value === 'object' ? Object.entries(value).filter(([, part]) => part !== null).map(([key, part]) => `${key} ${part}`).join(', ') : String(value ?? '—')])
  }
  return facts
}
