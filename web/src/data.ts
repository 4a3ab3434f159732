// What the viewer serves and what a report carries: one shape for both. Instants are ns since the start of a trial unless
// the name says otherwise; a number that may not be stated is null, and the page shows "—" with the reason where there is one.
// `Rung` and `Climb` are the JSON contract (run.schema.json), as `--json` writes it.

export type Verdict = 'PASS' | 'FAIL' | 'GENERATOR_LIMITED' | 'INCONCLUSIVE' | 'INVALID'
export type State = 'running' | 'finished' | 'interrupted' | 'broken' | 'cut_off'

/** A row of GET /api/runs: { runs: RunRow[] }, the youngest first. */
export interface RunRow {
  id: string
  subject: string
  scenario: string | null
  started_unix_ms: number
  state: State
  verdict: Verdict | null
  capacity: { unit: string; lower_bound: number | null; upper_bound: number | null } | null
  /** the small ladder: one entry per rung in the order they were held; `figure` is the value of `main.name` */
  rungs: { load: number; verdict: Verdict | null; figure: number | null }[]
  main: MainFigure | null
  /** name, note, pinned ("true"), tags ("a,b"); all text is the user's or the subject's: never markup */
  labels: Record<string, string>
}

/** The figure that the ladder is drawn by: that of the first objective. `unit`: ns, share, count, per_s, bytes, number. */
export interface MainFigure { name: string; unit: string; op: string; bound: number; text: string }

/** GET /api/runs/ID, and the data of a report. */
export interface RunPage {
  run: RunRow
  command: string
  note: string | null
  /** null until the first rung was judged; while a run goes on it is what is known so far */
  climb: Climb | null
  objectives: MainFigure[]
  /** loads that it means to hold, while it goes on */
  planned?: number[]
  trials: TrialPage[]
  /** why nothing is said of the run, where its plan cannot be read */
  problem?: string
}

/** GET /api/runs/ID/trials/SEQ */
export interface TrialPage {
  seq: number
  purpose: string
  load: number
  load_unit: string
  bots: number
  cell: Record<string, string>
  tick_period_ns: number
  /** marks on the time axis: settle, hold, drain, end, subject exited, bug, error, warm-up cut … */
  events: { at_ns: number; kind: string; text: string }[]
  /** begin and end of what was judged, behind the warm-up cut */
  hold: { from_ns: number; to_ns: number } | null
  /** the judged rung, as in `--json`; null for calibrations and for the trial that is running */
  rung: Rung | null
  /** one entry per second, t in s since the start of the trial; every column is as long as t */
  series: Series
  /** seconds per point of `series`, where a long trial was thinned before it was sent; else 1 */
  seconds_per_point?: number
  /** buckets [highest ns of the bucket, count] over the hold, by name: response, service, send_lag, tick_interval, delivery, first_byte … */
  distributions: Record<string, [number, number][]>
  /** the slowest receivers of a broadcast, the worst first */
  slowest: { receiver: number; latency_mean_ns: number; latency_max_ns: number; lost: number }[]
}

/** Columns: t, offered, sent, answered, failed, lost, late, open (connections), response_mean_ns, response_p50_ns,
 *  response_p99_ns, service_p50_ns, service_p99_ns, send_lag_p99_ns, delivery_mean_ns, delivery_p99_ns, ticks_due, ticks_on_time,
 *  ticks_over, ticks_under, ticks_missed, late_share, frames, subject_cpu_cores, subject_rss_bytes, worker_cpu_cores, busy_share,
 *  steal_share, bytes. Columns without a single value are left out. */
export type Series = Record<string, (number | null)[]>

/** GET /api/runs/ID/live as server-sent events: `second` { seq, t, values: Record<column, number|null> } for each committed second
 *  (values that come later, such as CPU, are sent again under the same t), `trial` TrialPage (a trial began), `rung` TrialPage (it
 *  was judged), `run` RunPage (the run ended), `ping`. The event id is the trial and the second; a reconnect goes on behind it. */

/** GET /api/ticks → { files: TickFile[] }; POST /api/ticks with a file's bytes and ?name= → TickFile. */
export interface TickFile {
  name: string
  games: number
  on_time: number; over: number; under: number; missed: number
  late_share: number | null
  interval_ms: { p50: number | null; p90: number | null; p99: number | null; max: number | null; mean: number | null }
  /** whole ms → count */
  histogram: Record<string, number>
  /** t in s since the file's first entry */
  series: Series
  malformed: number
}

export type Climb = Record<string, any>
export type Rung = Record<string, any>
