// A flame graph as boxes: where each frame stands and how its name fits. Pure: no document.

import type { FlameGraph, FunctionKind } from './data'

/** Of the two profiles: the load that held, and the one that failed. */
export type Side = 0 | 1

export interface Frame {
  name: string
  /** null: the root, which stands for all stacks */
  kind: FunctionKind | null
  depth: number
  /** per operation, with what it calls, at both loads */
  cost: [number, number]
  /** from -3 (far less) over 0 to 3 (far more) */
  change: number
  /** its place, -1 of the root */
  caller: number
  /** the place behind the last frame that it calls, directly or not */
  end: number
}

/** A frame as it is seen; `x` and `width` in parts of the whole width. */
export interface Box { frame: number; row: number; x: number; width: number }

/** The frames behind their root, each caller before what it calls. */
export function framesOf(graph: FlameGraph): Frame[] {
  const frames: Frame[] = [{ name: 'all', kind: null, depth: 0, cost: graph.total, change: 0, caller: -1, end: 1 }]
  const callers = [0]
  for (const [depth, at, good, bad, change] of graph.frames) {
    const [kind, name] = graph.functions[at]
    callers.length = depth + 1
    callers.push(frames.length)
    frames.push({ name, kind, depth: depth + 1, cost: [good, bad], change, caller: callers[depth], end: frames.length + 1 })
  }
  for (let at = frames.length - 1; at > 0; at--) {
    const caller = frames[frames[at].caller]
    caller.end = Math.max(caller.end, frames[at].end)
  }
  return frames
}

/** What is seen when the frame `zoom` takes the whole width, without what is narrower than `least`. */
export function layout(frames: Frame[], zoom: number, side: Side, least: number): Box[] {
  const whole = frames[zoom].cost[side]
  if (!(whole > 0)) return []
  const boxes: Box[] = [{ frame: zoom, row: 0, x: 0, width: 1 }]
  /** of each frame that is drawn, where what it calls next begins */
  const free = new Map([[zoom, 0]])
  for (let at = zoom + 1; at < frames[zoom].end;) {
    const frame = frames[at]
    const width = frame.cost[side] / whole
    const x = free.get(frame.caller)!
    free.set(frame.caller, x + width)
    if (width < least) { at = frame.end; continue }
    free.set(at, x)
    boxes.push({ frame: at, row: frame.depth - frames[zoom].depth, x, width })
    at++
  }
  return boxes
}

/** The time of a frame itself, without what it calls; what was left out of the graph is in it. */
export function ownCost(frames: Frame[], at: number): [number, number] {
  const own: [number, number] = [...frames[at].cost]
  for (let callee = at + 1; callee < frames[at].end; callee = frames[callee].end) {
    own[0] -= frames[callee].cost[0]
    own[1] -= frames[callee].cost[1]
  }
  return [Math.max(0, own[0]), Math.max(0, own[1])]
}

/** The frames whose name holds the text, and the part of all time that is theirs; what one of them calls counts once. */
export function search(frames: Frame[], text: string, side: Side): { found: Set<number>; share: number } {
  const wanted = text.trim().toLowerCase()
  const found = new Set<number>()
  let sum = 0
  let counted = 0
  if (wanted !== '') frames.forEach((frame, at) => {
    if (frame.kind === null || !frame.name.toLowerCase().includes(wanted)) return
    found.add(at)
    if (at < counted) return
    sum += frame.cost[side]
    counted = frame.end
  })
  return { found, share: frames[0].cost[side] > 0 ? sum / frames[0].cost[side] : 0 }
}

/** The callers of a frame, the root first. */
export function callersOf(frames: Frame[], at: number): number[] {
  const callers: number[] = []
  for (let caller = frames[at].caller; caller >= 0; caller = frames[caller].caller) callers.unshift(caller)
  return callers
}

/** Where an arrow key leads: to the caller, to the widest of what is called, to the neighbours in a row; null: nowhere. */
export function neighbour(frames: Frame[], boxes: Box[], at: number, key: string): number | null {
  const here = boxes.findIndex(box => box.frame === at)
  if (here < 0) return null
  const row = boxes.filter(box => box.row === boxes[here].row)
  const place = row.indexOf(boxes[here])
  switch (key) {
    case 'ArrowUp': return here === 0 ? null : frames[at].caller
    case 'ArrowDown': {
      const called = boxes.filter(box => frames[box.frame].caller === at)
      return called.length === 0 ? null : called.reduce((widest, box) => box.width > widest.width ? box : widest).frame
    }
    case 'ArrowLeft': return row[place - 1]?.frame ?? null
    case 'ArrowRight': return row[place + 1]?.frame ?? null
    case 'Home': return boxes[0].frame
    default: return null
  }
}

/** A name in so many characters: without the path before a function, else without its end; nothing where it says nothing. */
export function fitted(name: string, chars: number): string {
  const letters = [...name]
  if (letters.length <= chars) return name
  if (chars < 3) return ''
  for (let cut = name.indexOf('::'); cut >= 0; cut = name.indexOf('::', cut + 2)) {
    const rest = `…${name.slice(cut + 2)}`
    if ([...rest].length <= chars) return rest
  }
  return `${letters.slice(0, chars - 1).join('')}…`
}
