// Shows the panels that have data, keeps them while data come, and lets go of those that have none any more.

import { h } from '../dom'
import { menu } from '../save'
import type { Context, Mounted, Panel } from './panel'

const found = import.meta.glob<{ default?: Panel }>('./*.ts', { eager: true })

export const PANELS: Panel[] = Object.values(found)
  .map(file => file.default)
  .filter((panel): panel is Panel => panel !== undefined)
  .sort((a, b) => a.order - b.order)

export class Host {
  readonly element = h('div', { class: 'panels' })
  private readonly mounted = new Map<string, { section: HTMLElement; panel: Mounted }>()

  constructor(private readonly of: Panel['of']) {}

  update(context: Context): void {
    let before: Element | null = null
    for (const panel of PANELS) {
      if (panel.of !== this.of) continue
      const there = this.mounted.get(panel.id)
      if (!panel.shows(context)) {
        if (there) this.drop(panel.id)
        continue
      }
      if (there) {
        there.panel.update(context)
        before = there.section
        continue
      }
      const made = panel.mount(context)
      const section: HTMLElement = h('section', { class: 'panel', id: `panel-${panel.id}`, 'aria-label': panel.title }, h('div', { class: 'bar' }, h('h3', null, panel.title), menu()), made.element)
      this.mounted.set(panel.id, { section, panel: made })
      if (before) before.after(section)
      else this.element.prepend(section)
      before = section
    }
  }

  destroy(): void {
    for (const id of [...this.mounted.keys()]) this.drop(id)
  }

  private drop(id: string): void {
    const there = this.mounted.get(id)
    if (!there) return
    there.panel.destroy()
    there.section.remove()
    this.mounted.delete(id)
  }
}
