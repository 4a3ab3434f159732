// Comparisons of client libraries: tasks, clients, and their seconds laid end to end. Pure: no document.

import type { CellFigures, Comparison, ProcessCurve, ProcessPage } from './data'

/** What every client did. */
export interface Task { op: string; value_bytes: number; in_flight: string; total: number }

export function isOf(task: Task, one: Task): boolean {
  return task.op === one.op && task.value_bytes === one.value_bytes && task.in_flight === one.in_flight && task.total === one.total
}

/** `3 B`, `1 KB`: powers of 1024, as on the terminal. */
function length(bytes: number): string {
  if (bytes < 1024) return `${bytes} B`
  return `${bytes % 1024 === 0 && bytes < 1 << 20 ? bytes / 1024 : (bytes / 1024).toFixed(1)} KB`
}

export function taskName(task: Task): string {
  return `${task.op} ${length(task.value_bytes)}, ${task.in_flight} in flight`
}

/** In the order in which they were asked for, also those that no client finished yet. */
export function tasksOf(comparison: Comparison, processes: ProcessPage[]): Task[] {
  const all: Task[] = []
  for (const one of [...comparison.cells, ...processes]) {
    if (!all.some(task => isOf(task, one))) all.push({ op: one.op, value_bytes: one.value_bytes, in_flight: one.in_flight, total: one.total })
  }
  return all
}

/** The order of the cells, then that in which they ran: what a colour stands for does not change while a run goes on. */
export function clientsOf(comparison: Comparison, processes: ProcessPage[]): string[] {
  return [...new Set([...comparison.cells.map(cell => cell.client), ...processes.map(process => process.client)])]
}

export function cellsOf(comparison: Comparison, task: Task): CellFigures[] {
  return comparison.cells.filter(cell => isOf(task, cell))
}

/** Columns of a process that are drawn. */
export type CurveColumn = Exclude<keyof ProcessCurve, 'warmup_s' | 't'>

/**
 * The measured seconds of a task, run after run in the order in which they ran: what disturbed the machine for longer than a
 * run is seen in several of them. Between two runs stands a gap. One column per client; null in the runs of the others.
 */
export function runAfterRun(processes: ProcessPage[], task: Task, clients: string[], column: CurveColumn): { x: number[]; columns: (number | null)[][] } {
  const x: number[] = []
  const columns: (number | null)[][] = clients.map(() => [])
  let begin = 0
  for (const process of processes) {
    if (process.profile !== null || !isOf(task, process) || process.curve.t.length === 0) continue
    if (x.length > 0) {
      x.push(begin)
      for (const values of columns) values.push(null)
    }
    for (const [at, t] of process.curve.t.entries()) {
      x.push(begin + t)
      for (const [of, values] of columns.entries()) values.push(clients[of] === process.client ? process.curve[column][at] ?? null : null)
    }
    begin += process.curve.t.at(-1)! + GAP_S
  }
  return { x, columns }
}

/** Between two runs. */
const GAP_S = 0.5

/** The process that runs, if the run goes on. */
export function runningProcess(state: string, processes: ProcessPage[]): ProcessPage | null {
  const last = processes.at(-1)
  return state === 'running' && last && !last.has_ended ? last : null
}

/** Runs whose figures count, of those that have ended. */
export function measured(processes: ProcessPage[]): number {
  return processes.filter(process => process.has_ended && process.profile === null).length
}

/** Standard deviation of the rates as a share of their mean; null below two runs. */
export function spread(cell: CellFigures): number | null {
  return cell.runs > 1 && cell.ops_per_s > 0 ? cell.ops_per_s_stddev / cell.ops_per_s : null
}
