// Where data come from: a viewer over HTTP, or the data inside a report. A report makes no request, whatever is asked.
//
// Every address is relative to the page's own: the viewer's token is the first segment of its path, and nothing here
// knows it. It is no cookie, since a cookie goes to every port of a host (docs/decisions/028-token-in-the-path.md).

import type { ProfileGraph, RunComparison, RunPage, RunRow, TickFile, TrialPage } from './data'
import { normalize, type LiveEvent } from './state'

export class Refused extends Error {
  constructor(readonly status: number, message: string) { super(message) }
}

/** The data of a report; null on a live page. `data-encoding="deflate"`: zlib in base64, a third of the size. */
export async function inlined(): Promise<RunPage | null> {
  const element = document.getElementById('stepladder-data')
  const text = element?.textContent?.trim()
  if (!text) return null
  return normalize(JSON.parse(element!.dataset.encoding === 'deflate' ? await inflated(text) : text) as RunPage)
}

async function inflated(text: string): Promise<string> {
  const bytes = Uint8Array.from(atob(text), letter => letter.charCodeAt(0))
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate'))).text()
}

async function ask<T>(path: string, init?: RequestInit): Promise<T> {
  let answer: Response
  try {
    answer = await fetch(path, { ...init, headers: { accept: 'application/json', ...init?.headers } })
  } catch {
    throw new Refused(0, 'the viewer is not responding; is it still running? Start it with: stepladder view')
  }
  const text = await answer.text()
  if (!answer.ok) throw new Refused(answer.status, reasonOf(text) || `the viewer answered ${answer.status}`)
  return (text ? JSON.parse(text) : null) as T
}

function reasonOf(text: string): string {
  try {
    const { error } = JSON.parse(text)
    if (typeof error === 'string') return error
  } catch { /* not JSON: the words themselves */ }
  return text.trim().slice(0, 300)
}

const run = (id: string) => `api/runs/${encodeURIComponent(id)}`

export const api = {
  async runs(): Promise<RunRow[]> {
    const answer = await ask<{ runs: RunRow[] } | null>('api/runs')
    return answer?.runs ?? []
  },
  run: async (id: string) => normalize(await ask<RunPage>(run(id))),
  /** Of two comparisons of client libraries. */
  beside: (old: string, young: string) => ask<RunComparison>(`api/beside/${encodeURIComponent(old)}/${encodeURIComponent(young)}`),
  trial: (id: string, seq: number) => ask<TrialPage>(`${run(id)}/trials/${seq}`),
  profile: (id: string) => ask<ProfileGraph[]>(`${run(id)}/profile`),
  /** The value of a key; an empty one removes it. */
  label: (id: string, labels: Record<string, string>) => ask<unknown>(`${run(id)}/labels`, {
    method: 'PUT', body: JSON.stringify(labels), headers: { 'content-type': 'application/json' },
  }),
  /** The id goes twice: once to say which, once to say that it is meant. */
  remove: (id: string) => ask<unknown>(`${run(id)}?confirm=${encodeURIComponent(id)}`, { method: 'DELETE' }),
  async ticks(): Promise<TickFile[]> {
    const answer = await ask<{ files: TickFile[] } | null>('api/ticks')
    return answer?.files ?? []
  },
  dropTicks: (name: string, content: Blob) => ask<TickFile>(`api/ticks?name=${encodeURIComponent(name)}`, {
    method: 'POST', body: content, headers: { 'content-type': 'application/octet-stream' },
  }),
  report: (id: string) => `report/${encodeURIComponent(id)}.html`,
}

const KINDS = ['second', 'trial', 'rung', 'run', 'process'] as const

/** Follows a run. The browser reconnects by itself and says the last id, so the server goes on behind it. */
export function follow(id: string, on: (event: LiveEvent) => void, onState: (open: boolean) => void): () => void {
  const source = new EventSource(`${run(id)}/live`)
  for (const kind of KINDS) {
    source.addEventListener(kind, message => on({ kind, data: JSON.parse((message as MessageEvent).data) } as LiveEvent))
  }
  source.addEventListener('open', () => onState(true))
  source.addEventListener('error', () => onState(false))
  return () => source.close()
}

/** Follows the tick logs of the command line: each message is one file or all of them. */
export function followTicks(on: (files: TickFile[]) => void): () => void {
  const source = new EventSource('api/ticks/live')
  const take = (message: Event) => {
    const data = JSON.parse((message as MessageEvent).data)
    if (data?.files) on(data.files)
    else if (data?.name) on([data])
  }
  for (const kind of ['message', 'file', 'files', 'ticks']) source.addEventListener(kind, take)
  return () => source.close()
}
