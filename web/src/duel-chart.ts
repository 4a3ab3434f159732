// B against A block by block: a dot for each block, and the estimate with its interval, which narrows. SVG, so that it prints sharply.

import type { DuelFigure } from './data'
import { svg } from './dom'
import { alike, changeText, extent, isRatio, position, ticks, valueText } from './duel'

export function duelChart(figure: DuelFigure, delta: number, width: number, rem: number): SVGSVGElement {
  const height = Math.round(Math.min(17 * rem, Math.max(12 * rem, width * 0.3)))
  const [left, right, top, bottom] = [rem * 4, rem * 0.8, rem * 0.6, rem * 1.8]
  const blocks = figure.by_block
  const range = extent(figure, delta)
  const x = (block: number) => left + ((block - 0.5) / Math.max(1, blocks.length)) * (width - left - right)
  const clipped = (at: number) => Math.min(range[1], Math.max(range[0], at))
  const y = (change: number) => top + (1 - (clipped(position(figure, change)) - range[0]) / (range[1] - range[0])) * (height - top - bottom)
  const words = `${figure.figure}: B against A, ${figure.change} after ${blocks.length} blocks`
  const root = svg('svg', { class: 'duel-chart', width, height, role: 'img', 'aria-label': words })
  const line = (attributes: Record<string, string | number>, at: number) => svg('line', { x1: left, x2: width - right, y1: y(at), y2: y(at), ...attributes })
  for (const tick of ticks(figure, range, 5)) {
    root.append(line({ class: 'grid' }, tick), svg('text', { x: left - rem * 0.4, y: y(tick), dy: '0.35em', 'text-anchor': 'end', 'font-size': rem * 0.75 }, changeText(figure, tick)))
  }
  const every = Math.max(1, Math.ceil(blocks.length / Math.max(2, (width - left - right) / (rem * 2.2))))
  for (let block = 1; block <= blocks.length; block += every) {
    root.append(svg('text', { x: x(block), y: height - rem * 0.6, 'text-anchor': 'middle', 'font-size': rem * 0.75 }, String(block)))
  }
  const near = isRatio(figure) ? [1 + delta, 1 / (1 + delta)] : figure.unit === 'share' ? [0.01, -0.01] : []
  const within = near.filter(at => position(figure, at) >= range[0] && position(figure, at) <= range[1])
  root.append(...within.map(at => line({ class: 'delta' }, at)), line({ class: 'alike' }, alike(figure)))
  // An infinite end of the interval reaches to the edge.
  const edges = blocks.flatMap((block, at) => at + 1 < 4 || block.estimate === null || block.low === null && block.high === null ? [] : [{
    at: x(at + 1),
    low: block.low === null ? height - bottom : y(block.low),
    high: block.high === null ? top : y(block.high),
  }])
  if (edges.length > 1) {
    const path = [...edges.map(edge => `${edge.at.toFixed(1)} ${edge.high.toFixed(1)}`), ...edges.toReversed().map(edge => `${edge.at.toFixed(1)} ${edge.low.toFixed(1)}`)]
    root.append(svg('path', { class: 'interval', d: `M${path.join('L')}Z` }))
  }
  for (const edge of edges) root.append(svg('line', { class: 'ends', x1: edge.at, x2: edge.at, y1: edge.low, y2: edge.high }))
  const estimates = blocks.flatMap((block, at) => block.estimate === null ? [] : [`${x(at + 1).toFixed(1)} ${y(block.estimate).toFixed(1)}`])
  if (estimates.length > 1) root.append(svg('path', { class: 'estimate', d: `M${estimates.join('L')}` }))
  for (const [at, block] of blocks.entries()) {
    if (block.change === null) continue
    root.append(svg('circle', { class: 'block', cx: x(at + 1), cy: y(block.change), r: rem * 0.26 },
      svg('title', null, `block ${at + 1}: A ${valueText(figure, block.a)}, B ${valueText(figure, block.b)}, ${changeText(figure, block.change)}`)))
  }
  return root
}
