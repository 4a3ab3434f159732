import { h, table } from '../dom'
import { bytes, change, ns, number, share } from '../format'
import { PROFILE, profileTables, type Cost, type ProfileTable } from '../profile'
import { redrawn, type Panel } from './panel'

function tableOf({ title, rows, marks, all }: ProfileTable, per: string, [good, bad]: [string, string]): HTMLElement {
  const took = (cost: Cost) => cost.bytes === undefined ? ns(cost.ns) : bytes(cost.bytes)
  const cells = rows.map(one => [
    h('code', null, one.function, marks && !one.is_sure ? ' ?' : ''), took(one.good), took(one.bad),
    change(one.good.ns ?? one.good.bytes, one.bad.ns ?? one.bad.bytes),
    share(one.good.share), share(one.bad.share),
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
  mount: context => redrawn(context, ({ page }) => page.climb, ({ page }) => {
    const { text, evidence } = page.climb!.conclusions.find(one => one.id === PROFILE)!
    const load = (name: string) => number((evidence[name] as { load?: number } | undefined)?.load)
    const per = typeof evidence.per === 'string' ? evidence.per : 'operation'
    return [h('p', null, text), ...profileTables(evidence).map(one => tableOf(one, per, [load('good'), load('bad')]))]
  }),
}
export default panel
