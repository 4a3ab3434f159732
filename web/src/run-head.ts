// The head of a page of a run: its name, state, command and labels, and what can be done with it.

import { api } from './api'
import type { RunPage } from './data'
import { askText, askTwice, tell } from './dialog'
import { h, replace } from './dom'
import { when } from './format'
import { before, nameOf } from './runs'
import { badge, STATES } from './verdict'

export class RunHead {
  readonly element = h('header', { class: 'run-head' })

  constructor(private readonly page: RunPage, private readonly options: { isReport: boolean; go: (hash: string) => void }) {}

  draw(): void {
    const { run } = this.page
    const labels = run.labels ?? {}
    const tags = (labels.tags ?? '').split(',').map(tag => tag.trim()).filter(Boolean)
    const note = labels.note ?? this.page.note
    const act = (word: string, title: string, does: () => void) => h('button', { class: 'quiet', type: 'button', title, onclick: does }, word)
    const verdict = run.verdict ?? (run.kind === 'climb' ? this.page.climb?.verdict : null) ?? null
    const isPinned = labels.pinned === 'true'
    replace(this.element,
      h('div', { class: 'names' },
        h('h1', null, nameOf(run), isPinned ? h('span', { class: 'pin', title: 'pinned runs cannot be deleted' }, ' pinned') : null),
        badge(verdict, run.state),
        // Without a verdict the badge says it.
        verdict && run.state !== 'finished' && run.state !== 'running' ? h('span', { class: 'state' }, STATES[run.state]) : null,
        ...tags.map(tag => h('span', { class: 'tag' }, tag)), h('span', { class: 'spring' }), this.options.isReport ? null : this.actions(isPinned, act)),
      h('p', { class: 'facts-line' },
        h('span', null, run.subject), run.scenario && run.scenario !== run.subject ? h('span', null, run.scenario) : null, h('span', null, `${when(run.started_unix_ms)} UTC`),
        labels.name && labels.name !== run.id ? h('span', null, `run ${run.id}`) : null, h('code', null, this.page.command)),
      note ? h('p', { class: 'run-note' }, note) : null,
      this.page.problem ? h('p', { class: 'bad' }, this.page.problem) : null)
  }

  private actions(isPinned: boolean, act: (word: string, title: string, does: () => void) => HTMLElement): HTMLElement {
    const { run } = this.page
    return h('div', { class: 'actions' },
      act('Rename', 'Give the run a name', () => this.relabel('name', 'Name of this run')),
      act('Note', 'What was this run for?', () => this.relabel('note', 'Note', 5)),
      act('Tags', 'Separated by commas', () => this.relabel('tags', 'Tags, separated by commas')),
      act(isPinned ? 'Unpin' : 'Pin', 'Pinned runs are listed first and cannot be deleted', () => this.label('pinned', isPinned ? 'false' : 'true')),
      run.state === 'running' || run.kind !== 'climb' ? null : act('Compare', 'Old against new: with the run it repeats, or the previous one', () => this.compare()),
      run.state === 'running' ? null : h('a', { class: 'button', href: api.report(run.id), download: `${run.id}.html` }, 'Report'),
      run.state === 'running' || isPinned ? null : act('Delete', 'Asks for confirmation twice', () => this.remove()))
  }

  private async relabel(key: string, question: string, lines = 1): Promise<void> {
    const value = await askText(question, this.page.run.labels?.[key] ?? '', lines)
    if (value !== null) await this.label(key, value)
  }

  private async label(key: string, value: string): Promise<void> {
    try {
      await api.label(this.page.run.id, { [key]: value })
      this.page.run.labels = { ...this.page.run.labels, [key]: value }
      this.draw()
    } catch (error) { await tell('Not saved', String((error as Error).message)) }
  }

  private async compare(): Promise<void> {
    try {
      const old = before(this.page.run, await api.runs())
      if (old) this.options.go(`#/compare/${[old.id, this.page.run.id].map(encodeURIComponent).join(',')}`)
      else await tell('Nothing to compare with', 'No earlier run of this subject has a rung. Repeat this one with: ', h('code', null, `stepladder again ${this.page.run.id}`))
    } catch (error) { await tell('The runs cannot be read', String((error as Error).message)) }
  }

  private async remove(): Promise<void> {
    const { id } = this.page.run
    if (!await askTwice(`Delete ${nameOf(this.page.run)}?`, 'This removes the run and all its data. There is no undo.', id)) return
    try {
      await api.remove(id)
      this.options.go('#/')
    } catch (error) { await tell('Not deleted', String((error as Error).message)) }
  }
}
