// A verdict is told three times: by its word, its shape and its colour, so that none of them is needed alone.

import type { State, Verdict } from './data'
import { h, svg } from './dom'

export const VERDICTS: Record<Verdict, { word: string; class: string; meaning: string }> = {
  PASS: { word: 'pass', class: 'pass', meaning: 'every objective was met' },
  FAIL: { word: 'fail', class: 'fail', meaning: 'an objective was not met, and the generator kept up' },
  GENERATOR_LIMITED: { word: 'generator limited', class: 'limited', meaning: 'the load generator saturated first; this says nothing about the server' },
  INCONCLUSIVE: { word: 'inconclusive', class: 'unsure', meaning: 'the evidence allows no verdict' },
  INVALID: { word: 'invalid', class: 'invalid', meaning: 'the measurement is invalid; its figures do not count' },
}

export const STATES: Record<State, string> = {
  running: 'running', finished: 'finished', interrupted: 'interrupted', broken: 'aborted', cut_off: 'cut off',
}

/** The mark of a verdict around (0, 0), `r` wide each way: disc, octagon with a cross, triangle, diamond, hollow square. */
export function mark(verdict: Verdict | null, r: number): SVGGElement {
  const group = svg('g', { class: `mark ${verdict ? VERDICTS[verdict].class : 'live'}` })
  const thin = Math.max(1.2, r / 4)
  const sign = (d: string) => svg('path', { d, class: 'sign', 'stroke-width': thin, fill: 'none', 'stroke-linecap': 'round', 'stroke-linejoin': 'round' })
  const n = (value: number) => (value * r).toFixed(2)
  switch (verdict) {
    case 'PASS':
      group.append(svg('circle', { r, class: 'body' }), sign(`M${n(-0.45)} ${n(0.02)}L${n(-0.12)} ${n(0.36)}L${n(0.45)} ${n(-0.34)}`))
      break
    case 'FAIL':
      group.append(
        svg('path', { class: 'body', d: `M${n(-0.42)} ${n(-1)}H${n(0.42)}L${n(1)} ${n(-0.42)}V${n(0.42)}L${n(0.42)} ${n(1)}H${n(-0.42)}L${n(-1)} ${n(0.42)}V${n(-0.42)}Z` }),
        sign(`M${n(-0.38)} ${n(-0.38)}L${n(0.38)} ${n(0.38)}M${n(0.38)} ${n(-0.38)}L${n(-0.38)} ${n(0.38)}`))
      break
    case 'GENERATOR_LIMITED':
      group.append(svg('path', { class: 'body', d: `M0 ${n(-1.1)}L${n(1.1)} ${n(0.85)}H${n(-1.1)}Z` }), sign(`M0 ${n(-0.35)}V${n(0.2)}M0 ${n(0.52)}V${n(0.54)}`))
      break
    case 'INCONCLUSIVE':
      group.append(svg('path', { class: 'body', d: `M0 ${n(-1.15)}L${n(1.15)} 0L0 ${n(1.15)}L${n(-1.15)} 0Z` }), sign(`M${n(-0.42)} 0H${n(0.42)}`))
      break
    case 'INVALID':
      group.append(svg('rect', { class: 'body hollow', x: n(-0.85), y: n(-0.85), width: n(1.7), height: n(1.7), 'stroke-width': thin }), sign(`M${n(-0.5)} ${n(0.5)}L${n(0.5)} ${n(-0.5)}`))
      break
    default:
      group.append(svg('circle', { r: r * 0.8, class: 'body hollow', 'stroke-width': thin }), svg('circle', { r: r * 0.32, class: 'pulse' }))
  }
  return group
}

export function icon(verdict: Verdict | null): SVGSVGElement {
  return svg('svg', { class: 'icon', viewBox: '-12 -12 24 24', width: '1em', height: '1em', 'aria-hidden': 'true' }, mark(verdict, 10))
}

export function badge(verdict: Verdict | null, state: State = 'finished'): HTMLElement {
  if (state === 'running') return h('span', { class: 'badge live', title: 'still running' }, icon(null), 'running')
  if (!verdict) return h('span', { class: 'badge invalid' }, STATES[state])
  const { word, class: tone, meaning } = VERDICTS[verdict] ?? { word: String(verdict), class: 'invalid', meaning: '' }
  return h('span', { class: `badge ${tone}`, title: meaning }, icon(verdict), word)
}
