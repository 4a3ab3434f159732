// What is painted on a chart besides its lines: the hold and its cut, marks and troubles, bounds, a band.

import type uPlot from 'uplot'
import type { Plot } from './chart'
import { h } from './dom'
import { fitted } from './flame'
import { colour, rem } from './theme'

/** At most this many characters of a user's mark are drawn. */
const NAME_CHARS = 32

/** Under the lines: stretches of the x axis. */
export function drawBehind(chart: uPlot, plot: Plot): void {
  const { ctx, bbox } = chart
  const shade = (from: number, to: number, fill: string) => {
    const left = Math.max(bbox.left, chart.valToPos(from, 'x', true))
    const right = Math.min(bbox.left + bbox.width, chart.valToPos(to, 'x', true))
    if (right <= left) return
    ctx.fillStyle = fill
    ctx.fillRect(left, bbox.top, right - left, bbox.height)
  }
  ctx.save()
  const { hold, cut, band } = plot
  if (hold) shade(hold[0], hold[1], colour('hold'))
  if (cut && cut[1] > cut[0]) shade(cut[0], cut[1], colour('cut'))
  if (band) shade(band.from, band.to, colour('band'))
  ctx.restore()
}

/** Marks of the trial as lines with their names, troubles as ticks on the axis; the legend has the words of both. */
function drawEvents(chart: uPlot, plot: Plot, ratio: number): void {
  const { ctx, bbox } = chart
  let free = bbox.left
  // So many errors that their marks would be a wall are shown by the column of errors instead.
  for (const event of (plot.events ?? []).slice(0, 400)) {
    const at = chart.valToPos(event.at, 'x', true)
    ctx.strokeStyle = colour(event.isBad ? 'fail' : 'line')
    ctx.lineWidth = (event.isBad ? 2 : 1) * ratio
    ctx.setLineDash(event.isBad ? [] : [3 * ratio, 3 * ratio])
    ctx.beginPath()
    ctx.moveTo(at, event.isBad ? bbox.top + bbox.height - 7 * ratio : bbox.top)
    ctx.lineTo(at, bbox.top + bbox.height)
    ctx.stroke()
    const left = at + 3 * ratio
    const name = event.kind === 'mark' ? fitted(event.text, NAME_CHARS) : event.kind
    const width = ctx.measureText(name).width
    if (event.isBad || left < free || left + width > bbox.left + bbox.width) continue
    ctx.setLineDash([])
    nameMark(ctx, name, left, bbox.top + 2 * ratio, ratio)
    free = left + width + 3 * ratio
  }
  ctx.lineWidth = ratio
}

/** Over the lines. */
export function drawAbove(chart: uPlot, plot: Plot): void {
  const { ctx, bbox } = chart
  const ratio = devicePixelRatio || 1
  const font = `${Math.round(rem() * 0.68 * ratio)}px ${getComputedStyle(document.body).fontFamily}`
  ctx.save()
  ctx.beginPath()
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height)
  ctx.clip()
  ctx.font = font
  drawEvents(chart, plot, ratio)
  ctx.setLineDash([6 * ratio, 4 * ratio])
  for (const bound of plot.bounds ?? []) {
    const at = chart.valToPos(bound.at, bound.right ? 'right' : 'y', true)
    if (at < bbox.top || at > bbox.top + bbox.height) continue
    ctx.strokeStyle = colour('fail')
    ctx.beginPath()
    ctx.moveTo(bbox.left, at)
    ctx.lineTo(bbox.left + bbox.width, at)
    ctx.stroke()
    ctx.fillStyle = colour('fail')
    ctx.textAlign = 'right'
    ctx.textBaseline = at - bbox.top < 20 * ratio ? 'top' : 'bottom'
    ctx.fillText(bound.name, bbox.left + bbox.width - 4 * ratio, at + (ctx.textBaseline === 'top' ? 3 : -3) * ratio)
  }
  ctx.setLineDash([])
  ctx.fillStyle = colour('muted')
  ctx.textBaseline = 'top'
  const band = plot.band
  if (band) {
    const left = chart.valToPos(band.from, 'x', true)
    const right = chart.valToPos(band.to, 'x', true)
    ctx.strokeStyle = colour('pass')
    ctx.lineWidth = ratio
    ctx.strokeRect(left, bbox.top, right - left, bbox.height)
    const fits = right + ctx.measureText(band.name).width + 8 * ratio < bbox.left + bbox.width
    ctx.fillStyle = colour('pass')
    ctx.textAlign = fits ? 'left' : 'right'
    ctx.fillText(band.name, fits ? right + 4 * ratio : left - 4 * ratio, bbox.top + 3 * ratio)
  }
  ctx.restore()
}

/** Names a mark beside its line, where that is free; a halo keeps it readable over the data. */
function nameMark(ctx: CanvasRenderingContext2D, words: string, left: number, top: number, ratio: number): void {
  ctx.textAlign = 'left'
  ctx.textBaseline = 'top'
  ctx.lineJoin = 'round'
  ctx.lineWidth = 3 * ratio
  ctx.strokeStyle = colour('panel')
  ctx.strokeText(words, left, top)
  ctx.fillStyle = colour('muted')
  ctx.fillText(words, left, top)
}

/** A picture of `width` × `height` px under its title and legend, on the page's ground, at the screen's resolution. */
export function framed(title: string, legend: { label: string; colour: string }[], picture: CanvasImageSource, width: number, height: number): HTMLCanvasElement {
  const [ratio, line, edge] = [devicePixelRatio || 1, rem() * 1.4, rem() * 0.75]
  const canvas = h('canvas', null)
  const ctx = canvas.getContext('2d')!
  const family = getComputedStyle(document.body).fontFamily
  const font = (weight: number) => { ctx.font = `${weight} ${rem() * 0.85}px ${family}` }
  font(400)
  // Where each entry of the legend stands: a new line where the one before it is full.
  let [x, y] = [edge, edge + line]
  const places = legend.map(({ label }) => {
    const wide = ctx.measureText(label).width + rem() * 2
    if (x > edge && x + wide > width + edge) [x, y] = [edge, y + line]
    const place = [x, y]
    x += wide
    return place
  })
  const top = legend.length > 0 ? y + line : edge + line
  canvas.width = Math.round((width + 2 * edge) * ratio)
  canvas.height = Math.round((top + height + edge) * ratio)
  ctx.scale(ratio, ratio)
  ctx.fillStyle = colour('panel')
  ctx.fillRect(0, 0, canvas.width, canvas.height)
  ctx.textBaseline = 'middle'
  font(600)
  ctx.fillStyle = colour('ink')
  ctx.fillText(title, edge, edge + line / 2)
  font(400)
  for (const [at, { label, colour: tone }] of legend.entries()) {
    const [left, middle] = [places[at][0], places[at][1] + line / 2]
    ctx.fillStyle = tone
    ctx.fillRect(left, middle - 2, rem() * 0.9, 4)
    ctx.fillStyle = colour('muted')
    ctx.fillText(label, left + rem() * 1.2, middle)
  }
  ctx.drawImage(picture, edge, top, width, height)
  return canvas
}
