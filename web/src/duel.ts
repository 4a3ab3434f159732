// A duel's figures block by block: scales, axes and words. Pure: no document.

import type { DuelFigure } from './data'
import { digits, inUnit, NOT_STATED, number } from './format'

export function isRatio(figure: DuelFigure): boolean {
  return figure.compared_as === 'b / a'
}

/** Where both servers are alike. */
export function alike(figure: DuelFigure): number {
  return isRatio(figure) ? 1 : 0
}

const signed = (value: number, text: string) => value > 0 ? `+${text}` : value < 0 ? `−${text}` : text

/** A change as the terminal words it: `+5.1 %`, `× 3.2`, `−31 pp`. */
export function changeText(figure: DuelFigure, value: number | null): string {
  if (value === null) return NOT_STATED
  if (!isRatio(figure)) return figure.unit === 'share' ? `${signed(value, digits(Math.abs(value * 100)))} pp` : signed(value, number(Math.abs(value)))
  if (value >= 3 || value < 1 / 3) return `× ${digits(value)}`
  return `${signed(value - 1, digits(Math.abs(value - 1) * 100))} %`
}

export function valueText(figure: DuelFigure, value: number | null): string {
  return inUnit(figure.unit)(value)
}

/** Ratios are drawn as logarithms, so that half and twice are equally far from alike. */
export function position(figure: DuelFigure, value: number): number {
  return isRatio(figure) ? Math.log(Math.max(value, 1e-9)) : value
}

/** From what was drawn back to the change. */
export function changeAt(figure: DuelFigure, at: number): number {
  return isRatio(figure) ? Math.exp(at) : at
}

/** What a chart must hold, as positions: every block, no change, the last interval; the first ones may be cut, being wide. */
export function extent(figure: DuelFigure, delta: number): [number, number] {
  const at = (value: number | null | undefined) => value === null || value === undefined ? [] : [position(figure, value)]
  const own = [position(figure, alike(figure)), ...figure.by_block.flatMap(block => [...at(block.change), ...at(block.estimate)]), ...at(figure.low), ...at(figure.high)]
  if (isRatio(figure)) own.push(Math.log1p(delta), -Math.log1p(delta))
  const [low, high] = [Math.min(...own), Math.max(...own)]
  const room = (high - low || 1) * 0.08
  return [low - room, high + room]
}

/** Round places on the axis within the extent. */
export function ticks(figure: DuelFigure, [low, high]: [number, number], most: number): number[] {
  const [from, to] = [changeAt(figure, low), changeAt(figure, high)]
  const raw = (to - from) / most
  const power = 10 ** Math.floor(Math.log10(raw || 1))
  const step = [1, 2, 2.5, 5, 10].map(times => times * power).find(size => size >= raw) ?? raw
  const all: number[] = []
  for (let tick = Math.ceil(from / step) * step; tick <= to + step * 1e-6; tick += step) all.push(Number(tick.toPrecision(12)))
  return all
}
