import { h } from '../dom'
import { redrawn, type Panel } from './panel'

export const ANSWERS = ['how_many', 'why_not_more', 'can_i_trust_it']

/** What else the run says, beyond the three answers. */
const panel: Panel = {
  id: 'conclusions', title: 'Other conclusions', of: 'run', order: 30,
  shows: ({ page }) => page.climb?.conclusions.some(one => !ANSWERS.includes(one.id)) ?? false,
  mount: context => redrawn(context, ({ page }) => page.climb, ({ page }) => [
    h('ul', { class: 'conclusions' }, ...(page.climb?.conclusions ?? [])
      .filter(one => !ANSWERS.includes(one.id))
      .map(one => h('li', { 'data-id': one.id }, h('b', null, one.id.replaceAll('_', ' ')), ' ', one.text))),
  ]),
}
export default panel
