import type { RunPage } from '../data'
import { h, replace, table } from '../dom'
import { FlameView } from '../flame-view'
import { shown } from '../figures'
import { change } from '../format'
import { firstGraph, PROFILE, profileTables, stopRows, wordsOf, type Cost, type ProfileTable } from '../profile'
import { redrawn, type Context, type Panel } from './panel'

function tableOf({ title, rows, marks, all }: ProfileTable, per: string, [good, bad]: [string, string]): HTMLElement {
  const took = (cost: Cost) => cost.bytes === undefined ? shown(cost.ns, 'ns') : shown(cost.bytes, 'bytes')
  const cells = rows.map(one => [
    h('code', null, one.function, marks && !one.is_sure ? ' ?' : ''), took(one.good), took(one.bad),
    change(one.good.ns ?? one.good.bytes, one.bad.ns ?? one.bad.bytes),
    shown(one.good.share, 'share'), shown(one.bad.share, 'share'),
  ])
  return table(['function', `at ${good}`, `at ${bad}`, 'change', `share at ${good}`, `share at ${bad}`], cells, {
    caption: `${title} per ${per}${marks ? ', what grew most first' : ', what took most first; nothing grew surely'}`
      + `${marks && rows.some(one => !one.is_sure) ? ' (?: may be chance)' : ''}. Shares are of all ${all}.`,
  })
}

/** In which functions the server's time went at the load that held and at the one that failed. */
const panel: Panel = {
  id: 'profile', title: 'Profile', of: 'run', order: 25,
  shows: ({ page }) => page.climb?.conclusions.some(one => one.id === PROFILE) ?? false,
  mount: context => {
    const told = (page: RunPage) => page.climb!.conclusions.find(one => one.id === PROFILE)!
    const words = redrawn(context, ({ page }) => page.climb, ({ page }) => [h('p', null, told(page).text)])
    const tables = redrawn(context, ({ page }) => page.climb, ({ page }) => {
      const { per, loads } = wordsOf(told(page).evidence)
      const { evidence } = told(page)
      const stops = stopRows(evidence)
      const stopTable = table(['reading', ...loads.map(load => `at ${load}`)], stops, { caption: 'What kept its own code from running, as its runtime tells' })
      return [...profileTables(evidence).map(one => tableOf(one, per, loads)), ...(stops.length > 0 ? [stopTable] : [])]
    })
    const graphs = h('div')
    let drawn: Context['profile'] = null
    let view: FlameView | null = null
    const update = (now: Context) => {
      for (const one of [words, tables]) one.update(now)
      if (now.profile === drawn) return
      drawn = now.profile
      view?.destroy()
      const { evidence } = told(now.page)
      view = drawn && drawn.length > 0 ? new FlameView(drawn, wordsOf(evidence), firstGraph(drawn, evidence)) : null
      replace(graphs, view?.element)
    }
    update(context)
    context.loadProfile()
    return { element: h('div', { class: 'profile' }, words.element, graphs, tables.element), update, destroy: () => view?.destroy() }
  },
}
export default panel
