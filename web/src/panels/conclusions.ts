import { h } from '../dom'
import { PROFILE } from '../profile'
import { redrawn, type Panel } from './panel'

/** What stands elsewhere on the page. */
const ELSEWHERE = ['how_many', 'why_not_more', 'can_i_trust_it', PROFILE]

/** What else the run says, beyond the three answers. */
const panel: Panel = {
  id: 'conclusions', title: 'Other conclusions', of: 'run', order: 30,
  shows: ({ page }) => page.climb?.conclusions.some(one => !ELSEWHERE.includes(one.id)) ?? false,
  mount: context => redrawn(context, ({ page }) => page.climb, ({ page }) => [
    h('ul', { class: 'conclusions' }, ...(page.climb?.conclusions ?? [])
      .filter(one => !ELSEWHERE.includes(one.id))
      .map(one => h('li', { 'data-id': one.id }, h('b', null, one.id.replaceAll('_', ' ')), ' ', one.text))),
  ]),
}
export default panel
