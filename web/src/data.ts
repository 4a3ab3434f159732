// Generated from the Rust types by crates/viewer/src/typescript.rs; not to be edited. To write it anew:
// STEPLADDER_WRITE=1 cargo test -p stepladder-viewer typescript
// `_ns` are nanoseconds since the start of a trial unless the name says otherwise. A number that may not be stated is null.

/** One agent, over the hold. */
export type AgentFacts = {
  /** as it calls itself; by default its host */ name: string
  /** bots that it played */ bots: number
  /** worker threads */ workers: number
  /** p99 of its sends; null: too few */ send_lag_p99_ns: number | null
  /** its busiest worker's share of the hold, in [0, 1] */ busy_share_max: number | null
  /** CPU that it used, cores */ cpu_cores: number | null
  /** how far its clock may be from that of the coordinator, ns */ clock_bound_ns: number
  /** by how much its clock was corrected, ns */ clock_offset_ns: number
  /** the quickest exchange with it through the broker, ns */ round_trip_ns: number
  /** the way from it to the subject: `lo`, `eth0, 10 Gbit/s` */ link: string
  /** why its share is missing; null: it is whole */ lost: string | null
}

/** What the phases of the arrivals say. */
export type ArrivalPhases = {
  /** planned arrivals of the hold */ count: number
  /** the harmonic of the tick that the arrivals follow most: 1 means that they meet one place of the tick */ harmonic: number
  /** mean resultant length of that harmonic, corrected for the width of the bins, in [0, 1] */ resultant: number
  /** chance of such phases where none is preferred, over all harmonics looked at */ p: number
}

/** What the bots read back from the server after the hold. */
export type AuditFigures = {
  /** facts */ checked: number
  /** of these, other than they must be */ wrong: number
  /** further facts that were to be read back and were not: the server refused or did not answer */ unread?: number
  /** `FAIL` when one was wrong, `INCONCLUSIVE` when none was checked or some were not read */ verdict: Verdict
}

/** A comparison of client libraries. */
export type BenchPage = {
  /** its figures, as in `bench --json` */ comparison: Comparison
  /** of each cell of the comparison: buckets [highest ns, count] of its latencies */ latencies: Array<Array<[number, number]>>
  /** the processes, in the order in which they ran */ processes: Array<ProcessPage>
  /** how many it means to start, those that are profiled left out; null where its plan does not say */ planned: number | null
  /** random order of the runs */ seed: number
  /** version of Stepladder */ stepladder: string
  /** the machine */ environment: Record<string, unknown>
  /** why it could not go on */ reason: string | null
}

/** What is known about the capacity, as in the JSON contract. */
export type Capacity = {
  /** `games`, `clients` … */ unit: LoadUnit
  /** the largest load that held; `None` when none did below the first failure */ lower_bound: number | null
  /** the smallest load that did not hold; `None` when all held */ upper_bound: number | null
  /** what gave at the smallest failing load */ first_failing_signal: string | null
  /** how surely the capacity lies between the two bounds, in [0, 1]; `None` when nothing supports a figure The capacity is the load of which half of the holds would pass (docs/method/capacity.md). It needs both bounds, and two holds of each: a load held once says *that* it held, not how often. */ confidence: number | null
  /** the load of which half of the holds would pass, most likely; `None` without a confidence */ estimate: number | null
  /** it lies between these loads with a probability of 95 % */ interval: [number, number] | null
  /** loads that held although a smaller one failed, ascending: the verdicts are not monotone */ held_above_a_failure?: Array<number>
  /** what was searched for; absent where rungs were given */ search?: SearchFigures | null
  /** of a search: the capacity by each further goal, in their order */ goals?: Array<GoalCapacity>
  /** of a sweep: each cell's own, in the order in which they were held; the bounds above are those of the smallest */ cells?: Array<CellCapacity>
}

/** The capacity in one cell of a sweep. */
export type CellCapacity = {
  /** axis and value */ cell: { [key in string]: string }
  /** in it */ capacity: Capacity
}

/** What one client did of one task. */
export type CellFigures = {
  /** as the user named it */ client: string
  /** with its version */ library: string | null
  /** with its version */ runtime: string | null
  /** version of the server, where the client knows it */ member_version: string | null
  /** `get`, `set`, `mix` */ op: string
  /** length of each value */ value_bytes: number
  /** a number, or `unlimited` */ in_flight: string
  /** operations of a run, its warm-up included */ total: number
  /** how often it was done */ runs: number
  /** mean of the runs */ ops_per_s: number
  /** of the runs; 0 below two */ ops_per_s_stddev: number
  /** run by run */ rates_per_s: Array<number>
  /** of all runs together */ latency_ns: LatencyFigures
  /** CPU of the client */ cpu_ns_per_op: number
  /** cores that the client used */ cpu_cores: number
  /** most memory of the client in a run */ rss_peak_bytes: number
  /** CPU of the server; null where it is not known */ member_cpu_ns_per_op: number | null
  /** memory of the server behind the last run */ member_rss_bytes: number | null
  /** what an operation costs the benchmark itself */ own_overhead_ns_per_op: number
  /** of all measured parts */ ops: number
  /** not carried out, or with a wrong value */ failed: number
  /** carried out or not */ unknown: number
  /** gets with the right value */ hits: number
  /** gets that found nothing */ misses: number
  /** gets with a wrong value, which count as failed */ wrong: number
  /** why the last run did not reach its total: `signal`, `memory` */ stopped: string | null
  /** of all runs */ errors: Array<FirstError>
  /** against the first client of the same task; null for that client and below two blocks */ ratio: RateRatio | null
  /** how much the runtime itself held operations up */ fitness: RuntimeFitness
}

/** Changes with no, false, expired or repeated signatures, over the whole trial. */
export type CheatFigures = {
  /** all of them */ sent: number
  /** as they must be */ refused: number
  /** as they must not be */ accepted: number
  /** `FAIL` when one was accepted, `INCONCLUSIVE` when none was refused */ verdict: Verdict
}

/** Ticks of a rung as its clients saw them. */
export type ClientTickFigures = {
  /** (over + under + missed) / due */ late_share: number | null
  /** between two ticks */ interval_ns: Summary | null
  /** of what a tick told when it came */ age_ns: Summary | null
  /** ticks that the schedule asked for */ due: number
  /** within the classes' bounds */ on_time: number
  /** longer */ over: number
  /** shorter */ under: number
  /** never run */ missed: number
}

/** A whole run. */
export type Climb = {
  /** `SCHEMA` */ schema: number
  /** what was run, on what */ run: RunFacts
  /** the generator against a server that does nothing */ generator: GeneratorFigures
  /** every rung, in the order they were held */ rungs: Array<Rung>
  /** how many */ capacity: Capacity
  /** the answers in words */ conclusions: Array<Conclusion>
  /** what was asked of the whole run; they decide the exit code and not the verdict */ gates?: Array<GateResult>
  /** of the whole run */ verdict: Verdict
  /** why the run is not whole: it was interrupted, killed or broke off, or is still recorded; absent of a whole one */ ended_early?: string
}

/** One client at one task, in both runs. */
export type ComparedCell = {
  /** as the user named it */ client: string
  /** `get`, `set`, `mix` */ op: string
  /** length of each value */ value_bytes: number
  /** a number, or `unlimited` */ in_flight: string
  /** operations of a run, its warm-up included */ total: number
  /** means of the runs */ ops_per_s: OldAndNew
  /** lowest and highest rate of the old runs */ old_range_per_s: [number, number]
  /** lowest and highest rate of the new runs */ new_range_per_s: [number, number]
  /** whether these ranges have a rate in common, so that the single runs do not tell old from new */ ranges_overlap: boolean
  /** of all runs together */ p50_ns: OldAndNew
  /** of all runs together */ p99_ns: OldAndNew
  /** CPU of the client */ cpu_ns_per_op: OldAndNew
  /** most memory of the client in a run */ rss_peak_bytes: OldAndNew
  /** CPU of the server; null where one run does not know it */ member_cpu_ns_per_op: OldAndNew | null
}

/** Client libraries side by side on one server. */
export type Comparison = {
  /** of this contract: 1 */ schema: number
  /** `in-flight` */ subject: string
  /** the server */ target: string
  /** operations of a run, its warm-up included; null where runs differ */ total: number | null
  /** a client at a task each, task by task */ cells: Array<CellFigures>
  /** of clients that were profiled */ profiles: Array<ProfileFigures>
  /** what follows from six or more numbers in flight, lengths or totals */ conclusions: Array<Conclusion>
  /** in sentences: why some of these figures may not be compared, or mean less than they seem to */ limits: Array<string>
}

/** One answer in words. */
export type Conclusion = {
  /** `how_many`, `why_not_more`, `can_i_trust_it`; and what the workload concludes besides */ id: string
  /** one or two sentences */ text: string
  /** the figures behind it */ evidence: Record<string, unknown>
}

/** Connections of a rung. */
export type ConnectionFigures = {
  /** that the server closed between two requests and that were opened again when they were needed, in the hold; absent where there were none */ reopened?: number
  /** requests that met such a close and were sent once more; absent where there were none */ retried?: number
  /** to a usable connection */ handshake_ns: Summary | null
  /** that should stand */ asked: number
  /** open in the worst second of the hold, as the mean over that second */ open_min: number
  /** open at the worst moment of the hold, when many are between two games for a millisecond */ open_least: number
  /** open when the hold ended */ open: number
  /** opened during the ramp */ opened_in_ramp: number
  /** opened per second of the ramp */ rate_per_s: number | null
  /** attempts over the whole trial */ attempts: number
  /** failed attempts over the whole trial, by cause */ failed: { [key in string]: number }
}

/** The books of a rung's broadcasts, over the whole trial and the well-behaved receivers. `owed_min ≤ owed ≤ owed_max`; the three are one where nobody came or went while others spoke. */
export type DeliveryFigures = {
  /** delivered + lost + unread, without what was not owed */ owed: number
  /** from the planned send, of messages planned in the hold; its percentiles count lost ones as infinite, which is null here */ latency_ns: Summary | null
  /** messages that left, of all senders */ sent: number
  /** to all receivers, per second of the hold */ rate_per_s: number | null
  /** came with an unknown sender or number */ unknown_messages: number
  /** the server tells what it drops */ drops_are_told: boolean
  /** the loss rate is at most this, at 95 %; null when something was lost or nothing owed */ loss_rate_bound: number | null
  /** with the highest mean latency */ slowest: SlowestReceiver | null
  /** those that behave badly; null when there are none */ excluded: SumOfBooks | null
  /** the pairs that lost most or got what was not owed, the worst first, at most 10 */ worst: Array<PairBooks>
  /** receivers */ receivers: number
  /** surely owed */ owed_min: number
  /** possibly owed */ owed_max: number
  /** different messages that came */ delivered: number
  /** of the delivered: after the plan's patience */ late: number
  /** surely owed, and never came, although the receiver was read in time */ lost: number
  /** surely owed, and not read: the bots had no time to read the receiver, so the server dropped it or it was still to be read at the end */ unread?: number
  /** came again */ duplicated: number
  /** came after a newer one of the same sender */ reordered: number
  /** the server says that it dropped them */ dropped: number
  /** the server says that they still waited in its backlog at the end */ in_flight: number
  /** what neither the server nor the clients account for: positive when more was lost, negative when less; see the head */ residual: number
  /** came although they were not owed */ unowed: number
  /** receivers, members when the last message left, that never had the server's word that everything had come */ not_caught_up: number
}

/** Something that is not the same in both. */
export type Difference = {
  /** what, in words or as the path of a setting */ what: string
  /** as it was, or A's */ old: unknown
  /** as it is, or B's */ new: unknown
}

/** What disturbed a hold. */
export type Disturbance = {
  /** seconds of the hold that could be looked at */ seconds: number
  /** of these, disturbed: in them or in the one before, or around a long wait for a core, until what it left behind was worked off */ disturbed: number
  /** cores that other programs used in the disturbed seconds, mean; `None` where that is not readable */ others_cores: number | null
  /** the largest of them by name, with the cores that each used */ programs: { [key in string]: number }
  /** share of the CPU that the host took in the disturbed seconds, mean */ steal_share: number | null
  /** seconds with throttling, thermal or by a quota */ throttled: number
  /** seconds in which another run of Stepladder went on */ beside_other_runs?: number
  /** the most that a worker was kept waiting for a core in a disturbed second */ worker_waiting_share: number | null
  /** cores of the machine that may be used */ cores: number | null
  /** of all ticks of the hold, at most this share can be late because of it */ explains_ticks: number
  /** of all messages of the hold, at most this share can be late because of it */ explains_messages: number
}

/** What may have disturbed a second, for a page that names what happened in it. */
export type DisturbedAbove = {
  /** more steal than this */ steal_share: number
  /** more cores than these used by other programs */ others_cores: number
}

/** Two servers under the same loads. What is infinite is null. */
export type DuelAnswers = {
  /** what B is compared with, as it was written */ a: string
  /** what is compared, as it was written */ b: string
  /** settings that are not the same on both sides */ differs: Array<Difference>
  /** ratios that differ by less count as equal */ delta: number
  /** of the intervals */ level: number
  /** blocks under each load at most */ blocks_most: number
  /** how long all trials together may take */ budget_ns: number
  /** the order within the blocks comes from it */ seed: number
  /** null while it goes on and where it was killed */ ended_because: DuelStop | null
  /** the same in words */ ended: string
  /** ascending */ loads: Array<DuelLoad>
}

/** One block, and what was known after it. */
export type DuelBlock = {
  /** A's value, in the figure's unit */ a: number | null
  /** B's value */ b: number | null
  /** B against A in this block, as the figure is compared */ change: number | null
  /** of this block and all before it */ estimate: number | null
  /** of the interval after this block; null before the first look */ low: number | null
  /** of the interval */ high: number | null
}

/** What is known of one figure under one load. */
export type DuelFigure = {
  /** its name */ figure: string
  /** what is known */ verdict: DuelVerdict
  /** the verdict in a word or two */ in_words: string
  /** the change with its interval, in words */ change: string
  /** `b / a` or `b - a` */ compared_as: string
  /** of its values: `ns`, `share`, `count`, `per_s`, `bytes`, `number` */ unit: string
  /** of the change */ estimate: number | null
  /** of the interval; null before the first look too */ low: number | null
  /** of the interval */ high: number | null
  /** over the blocks, in `unit` */ median_a: number | null
  /** over the blocks, in `unit` */ median_b: number | null
  /** that say something about it */ blocks: number
  /** after how many blocks a difference was known */ known_after_blocks: number | null
  /** that do not state it */ blocks_unstated: number
  /** why a block does not state it */ unstated_because: string | null
  /** blocks in which it was infinite at A alone */ infinite_at_a_only: number
  /** blocks in which it was infinite at B alone */ infinite_at_b_only: number
  /** block by block, in the order in which they were held */ by_block: Array<DuelBlock>
}

/** A bound that B's change must keep. */
export type DuelGate = {
  /** as its author wrote it */ gate: string
  /** what is known of it */ state: GateState
}

/** What is known under one load. */
export type DuelLoad = {
  /** in the unit of its bots */ load: number
  /** blocks with both trials */ blocks: number
  /** why others were dropped */ dropped: Array<string>
  /** that were measured */ figures: Array<DuelFigure>
  /** in the order of the command line */ gates: Array<DuelGate>
}

/** Why a duel ends. */
export type DuelStop = "known" | "blocks" | "budget" | "not_measured" | "unfair" | "interrupted" | "exited_a" | "exited_b" | "failed_a" | "failed_b"

/** What is known of a figure. */
export type DuelVerdict = "smaller" | "larger" | "no_difference_larger_than_delta" | "undecided"

/** An error as it was met. */
export type ErrorSample = {
  /** under which it is counted in `errors` */ cause: string
  /** what was seen; text from the server under test is never markup */ text: string
}

/** Something worth a mark on the time axis. */
export type Event = {
  /** when */ at_ns: number
  /** `hold`, `drain`, `subject exited`, `interrupted`, … */ kind: string
  /** for people; text from the server under test is never markup */ text: string
}

/** The figures behind a judgement, over the hold. What was not measured is null. */
export type Evidence = {
  /** every objective, in the order of the plan */ objectives: Array<ObjectiveResult>
  /** what gates asked at this load */ gates?: Array<ObjectiveResult>
  /** what the trial is worth to each further goal of a search, in their order */ goals?: Array<GoalResult>
  /** of all sends */ send_lag_p99_ns: number | null
  /** beyond this the generator was late */ send_lag_limit_ns: number | null
  /** the most that one worker was on a core in a second */ worker_cpu_share_max: number | null
  /** the most that one worker was kept waiting for a core in a second */ worker_waiting_share_max: number | null
  /** of the generator against a server that does nothing */ own_latency_p99_ns: number | null
  /** what may be the generator's own of the tightest latency bound */ own_latency_limit_ns: number | null
  /** the busiest worker's share of the hold */ busy_share_max: number | null
  /** messages that the plan meant to send */ intended: number | null
  /** share of disturbed seconds */ disturbed_share: number | null
  /** where the level changed: of what, after how many seconds, the levels before and after */ change: unknown
  /** how the arrivals lay in the server's ticks */ arrival_phases: ArrivalPhases | null
}

/** Errors of one cause. */
export type FirstError = {
  /** `timeout`, `wrong`, `stopped`, or what the language calls it */ cause: string
  /** how many */ count: number
  /** words of the first; text, never markup */ first: string
}

/** Two profiles as one tree. Costs are ns per operation, of allocations bytes, of the first and of the second profile. */
export type FlameGraph = {
  /** of all stacks */ total: [number, number]
  /** what they belong to and their names, which are text of the server under test and never markup */ functions: Array<[FunctionKind, string]>
  /** each caller before its callees: depth from 0, place in `functions`, cost in both profiles with what it calls, and change: from -3 (far less) over 0 (as much, or no more than chance) to 3 (far more) */ frames: Array<[number, number, number, number, number]>
  /** the parts of an operation's cost from which a change is 1, 2 and 3 */ steps: [number, number, number]
  /** every frame with a larger part of one of the totals is there */ least_share: number
  /** the part of each total that is left out */ left_out: [number, number]
  /** the part of each total that lies too deep and is shown as its caller's */ too_deep: [number, number]
}

/** Messages of one operation, counted. All fields are numbers of messages. */
export type Flow = {
  /** planned to leave */ offered: number
  /** planned, but never handed to the kernel */ not_sent: number
  /** handed to the kernel */ sent: number
  /** sent and owing nothing (a shot) */ told: number
  /** sent and replied to, in whatever time */ answered: number
  /** of the answered: after the plan's patience */ late: number
  /** sent and replied to wrongly */ failed: number
  /** sent, and the connection ended before the reply */ lost: number
  /** waiting for their reply when the interval began */ open_before: number
  /** waiting for their reply when the interval ended */ open_after: number
}

/** Frames of a rung. */
export type FrameFigures = {
  /** drawn per second */ rate_per_s: number
  /** that should have been drawn; null where the server does not say */ due: number | null
  /** drawn */ drawn: number
}

/** What a function belongs to. */
export type FunctionKind = "user" | "runtime" | "gc" | "kernel"

/** What a run says of a gate. */
export type GateResult = {
  /** as its author wrote it */ gate: string
  /** null where that cannot be told */ met: boolean | null
  /** what was found, or what is missing */ found: string
}

/** Whether a gate is met. */
export type GateState = "met" | "not_met" | "undecided"

/** The generator as weighed before the climb. */
export type GeneratorFigures = {
  /** what was spoken to the null server: `http`, `websocket`, `lines` */ protocol: string | null
  /** response of the null server at an easy rate */ own_latency_ns: Summary | null
  /** send lag at that rate */ send_lag_ns: Summary | null
  /** most messages per second */ ceiling_per_s: number | null
}

/** The capacity by other objectives than those of the plan, from the same trials. */
export type GoalCapacity = {
  /** what was asked instead */ objectives: Array<string>
  /** by them */ capacity: Capacity
}

/** What a trial is worth to a further goal of a search, which asks other objectives of it. */
export type GoalResult = {
  /** by the goal's objectives and the same rules */ verdict: Verdict
  /** what gave first; null where it passed */ signal: string | null
  /** why it did not pass */ reason: string | null
  /** every objective of the goal, in its order */ objectives: Array<ObjectiveResult>
}

/** What was alive in a client's heap after the measured part and a garbage collection. */
export type Heap = {
  /** what `types` are */ by: HeapBy
  /** of everything alive, memory outside the heap that belongs to an object included */ bytes: number
  /** alive */ objects: number
  /** those that hold most themselves, at most ten, the largest first */ types: Array<HeapType>
}

/** What a client can tell of its objects. */
export type HeapBy = "type" | "function"

/** Everything of one type, or of one function, that was alive. */
export type HeapType = {
  /** its constructor or class, or what it is in parentheses, as `(string)`, or the function; text, never markup */ name: string
  /** of these objects alone, without what they refer to */ bytes: number
  /** alive */ objects: number
}

/** The judged part of a trial. */
export type HoldSpan = {
  /** begin, after the warm-up, since the start of the trial */ from_ns: number
  /** end; null while the hold goes on */ to_ns: number | null
  /** seconds of warm-up before the begin that were cut off */ cut_s: number
}

/** The intervals of a tick log, ms. */
export type IntervalMs = {
  /** median */ p50: number | null
  /** 0.9 quantile */ p90: number | null
  /** 0.99 quantile */ p99: number | null
  /** longest */ max: number | null
  /** arithmetic */ mean: number | null
}

/** Stacks of both profiled holds, as artifacts of their run. */
export type KeptStacks = "cpu" | "waits" | "alloc"

/** What was measured. */
export type Kind = "climb" | "bench" | "duel"

/** Intervals between ticks that are not on time, by how far off they are. A missed tick has no interval. */
export type LateIntervals = {
  /** at most 2 ms shorter or longer than those on time */ near: number
  /** shorter than a quarter of the period: a tick that catches up */ caught_up: number
  /** all others */ far: number
}

/** Latencies from start to result. */
export type LatencyFigures = {
  /** half of the operations took no longer */ p50: number
  /** 90 % */ p90: number
  /** 99 % */ p99: number
  /** 99.9 % */ p999: number
  /** the longest */ max: number
  /** of all */ mean: number
  /** how many */ count: number
}

/** What a load counts. */
export type LoadUnit = "games" | "clients" | "requesters" | "req/s" | "updates/s" | "sessions/s" | "in_flight"

/** An objective as the page draws it. */
export type MainFigure = {
  /** of the figure */ name: string
  /** `ns`, `share`, `count`, `per_s`, `bytes`, `number` */ unit: string
  /** `<` … */ op: string
  /** in that unit */ bound: number
  /** as its author wrote it */ text: string
}

/** What a user told of while a load was held: `deployed 1.4`. */
export type Mark = {
  /** since the start of the trial */ at_ns: number
  /** as it was told; never markup */ text: string
}

/** All threads of one name over the hold. */
export type NamedThreadsFigures = {
  /** their name, `*` in place of numbers where several differ in them; text from the server under test is never markup */ name: string
  /** mean */ cpu_cores: number
  /** largest second */ cpu_cores_max: number
}

/** The emulated networks of a rung. */
export type NetworkFigures = {
  /** each of them */ profiles: Array<NetworkProfile>
  /** round trips over all of them, as they were */ round_trip_ns: Summary | null
  /** how long after its instant each piece of a stream was released */ late_ns: Summary | null
}

/** One emulated network. A round trip is the time under way of the newest bytes that a connection sent, and of those that came on it after them. */
export type NetworkProfile = {
  /** round trips as they were drawn */ asked_round_trip_ns: Summary | null
  /** the same as they were */ round_trip_ns: Summary | null
  /** as asked for: `wifi`, `latency=80ms` */ name: string
  /** of the bots, in (0, 1] */ share: number
  /** behind it */ bots: number
  /** round trip; half of it on each way, ns */ latency_ns: number
  /** a segment takes up to so much longer on each way, ns */ jitter_ns: number
  /** probability that a segment is lost */ loss: number
  /** on each way; null: no limit */ bits_per_s: number | null
}

/** What a rung says about one objective. */
export type ObjectiveResult = {
  /** as its author wrote it */ objective: string
  /** null where that cannot be told */ met: boolean | null
  /** over all seconds, in the figure's inner unit; null where it was not measured or is infinite */ value: number | null
  /** the value for people where it was not met, what is missing, or by how many samples it is met without a value */ note: string | null
  /** which seconds decided */ judged_by: string
  /** of a percentile that too few samples state: whether the share of samples beyond the bound would meet it */ met_by_share?: boolean | null
  /** where only samples are missing: so many times as many are likely to decide it */ times_as_many?: number | null
}

/** A figure of both. */
export type OldAndNew = {
  /** as it was */ old: number
  /** as it is */ new: number
  /** new / old; null where the old one is 0 */ ratio: number | null
}

/** One sender at one receiver. */
export type PairBooks = {
  /** number of the sender in the whole crowd */ sender: number
  /** number of the receiver */ receiver: number
  /** surely owed */ owed_min: number
  /** possibly owed */ owed_max: number
  /** came */ delivered: number
  /** surely owed, and never came */ lost: number
}

/** A process second by second. Columns have a value per second of the measured part. */
export type ProcessCurve = {
  /** how long it warmed up, so far while it does */ warmup_s: number
  /** end of the second, since the measured part began; the others are of the time since the one before */ t: Array<number>
  /** operations that ended, per second */ ops_per_s: Array<number>
  /** of the operations that ended; null where none did */ p50_ns: Array<number | null>
  /** likewise */ p99_ns: Array<number | null>
  /** likewise */ max_ns: Array<number | null>
  /** operations that failed or whose outcome is unknown */ bad: Array<number>
  /** how much later than due a timer of the runtime ran, at worst; null where it does not say */ loop_delay_max_ns: Array<number | null>
  /** share of the time in which the runtime paused to collect garbage; null where it does not say */ gc_share: Array<number | null>
}

/** One run of a client. */
export type ProcessPage = {
  /** within the run, from 0 */ number: number
  /** as the user named it */ client: string
  /** the task */ op: string
  /** the task */ value_bytes: number
  /** the task */ in_flight: string
  /** the task */ total: number
  /** each block has every client and task once */ block: number
  /** what was profiled; its figures do not count */ profile: string | null
  /** it wrote its last line */ has_ended: boolean
  /** why it did not reach its total */ stopped: string | null
  /** operations per second over its whole measured part */ ops_per_s: number | null
  /** second by second */ curve: ProcessCurve
}

/** Where the time, or the memory, of a client went. */
export type ProfileFigures = {
  /** `cpu`, `alloc` */ subject: string
  /** `µs`, `bytes` */ unit: string
  /** as the user named it */ client: string
  /** the task */ op: string
  /** the task */ value_bytes: number
  /** the task */ in_flight: string
  /** in `unit` */ total: number
  /** by kind; they add up to 1 */ shares: { [key in string]: number }
  /** what was alive behind the measured part, where the client wrote a heap snapshot */ heap: Heap | null
  /** the functions that cost most */ top: Array<ProfileFunction>
}

/** A function of a profile. */
export type ProfileFunction = {
  /** its name; text, never markup */ function: string
  /** what it belongs to */ kind: string
  /** with what it calls outside user code */ share: number
  /** alone */ share_without_callees: number
  /** with what it calls outside user code, in the unit of the profile */ weight: number
}

/** One kind of stacks at both loads. */
export type ProfileGraph = {
  /** what the stacks are of */ of: KeptStacks
  /** at the load that held and the one that failed; null where there is a problem */ graph: FlameGraph | null
  /** why it cannot be drawn */ problem: string | null
}

/** What a trial is for. */
export type Purpose = "calibration latency" | "calibration ceiling" | "warm-up" | "rung"

/** Rates against another client's, block by block. */
export type RateRatio = {
  /** the other client */ to: string
  /** geometric */ mean: number
  /** of the 95 % interval */ low: number
  /** of the 95 % interval */ high: number
}

/** One receiver. */
export type ReceiverBooks = {
  /** its number in the whole crowd */ receiver: number
  /** behaves badly, and is judged separately */ is_excluded: boolean
  /** its deliveries; `receivers` is 1 */ sum: SumOfBooks
  /** mean delivery latency, ns */ latency_mean_ns: number | null
  /** longest, ns */ latency_max_ns: number | null
  /** the server's own count of what it owed this client, where it tells and the client came once */ told_owed: number | null
  /** and of what it handed to the kernel */ told_delivered: number | null
}

/** A rung of the small ladder. */
export type RowRung = {
  /** what it was asked to hold */ load: number
  /** `None` until it was judged */ verdict: Verdict | null
  /** the value of the main figure */ figure: number | null
}

/** Old against new. */
export type RunComparison = {
  /** of this contract: 1 */ schema: number
  /** id of the run */ old: string
  /** id of the run */ new: string
  /** in machine, programs, settings, server, libraries and runtimes */ differs: Array<Difference>
  /** in sentences, the gravest first: what the figures below are worth */ limits: Array<string>
  /** what both did, in the order of the new run */ cells: Array<ComparedCell>
  /** what only the old run did, in words */ only_old: Array<string>
  /** what only the new run did, in words */ only_new: Array<string>
}

/** What is known of a run besides its trials. */
export type RunFacts = {
  /** unique within a store */ id: string
  /** `--name` */ name: string | null
  /** as the user wrote it */ subject: string
  /** path of the scenario file */ scenario: string | null
  /** everything random came from it */ seed: number
  /** `poisson`, `even`, `burst`, `closed` */ arrivals: string
  /** when it began, ms since the epoch */ started_unix_ms: number
  /** version of this program */ stepladder: string
  /** commit of the user's working directory */ git: string | null
  /** the command line */ command: string
  /** the machine */ environment: Record<string, unknown>
  /** server and generator run on the same cores */ shared_cores: boolean
  /** what the capacity counts: `games`, `clients` … */ capacity_unit: LoadUnit
}

/** A run with everything the page shows first. */
export type RunPage = {
  /** as in the list */ run: RunRow
  /** the command line */ command: string
  /** `--note` */ note: string | null
  /** the answers, as in `--json` */ climb: Climb | null
  /** of its plan */ objectives: Array<MainFigure>
  /** loads that it means to hold, while it goes on */ planned: Array<number>
  /** how long it means to hold each; null where a count ends a hold */ hold_s: number | null
  /** in their order */ trials: Array<TrialPage>
  /** of a comparison of client libraries; it has neither `climb` nor trials */ bench: BenchPage | null
  /** flame graphs of a run that was profiled; null where the page asks for them */ profile: Array<ProfileGraph> | null
  /** of a duel, whose trials are those of both sides: what is known, as in `duel --json` */ duel: DuelAnswers | null
  /** why nothing is said of it, where its plan cannot be read */ problem: string | null
}

/** A row of the list of runs. */
export type RunRow = {
  /** its id */ id: string
  /** as the user wrote it */ subject: string
  /** what was measured */ kind: Kind
  /** path of the scenario file */ scenario: string | null
  /** when it began */ started_unix_ms: number
  /** where it is */ state: State
  /** of the whole run */ verdict: Verdict | null
  /** between which loads */ capacity: Capacity | null
  /** of a run without rungs: what it found, in one line */ answer: string | null
  /** the small ladder */ rungs: Array<RowRung>
  /** what it is drawn by */ main: MainFigure | null
  /** what people wrote on it */ labels: { [key in string]: string }
}

/** One load held once. */
export type Rung = {
  /** number of its trial within the run */ seq: number
  /** what it was asked to hold */ load: number
  /** of what */ load_unit: LoadUnit
  /** in a sweep: axis and value; absent elsewhere */ cell?: { [key in string]: string } | null
  /** simulated clients */ bots: number
  /** what it is worth */ verdict: Verdict
  /** why it did not pass */ reason: string | null
  /** short name of what gave first: `ticks.late_share`, `drifting`, `server exited` … */ signal: string | null
  /** when it was held; null where the hold never began */ hold: HoldSpan | null
  /** measured, after the warm-up cut */ hold_s: number
  /** what ended the hold */ ended_by: string
  /** how the hold went */ steady: Steadiness | null
  /** share of disturbed seconds */ disturbed_share: number | null
  /** what disturbed them; null where nothing did */ disturbance: Disturbance | null
  /** what else must be known of it, also when it passed */ remark: string | null
  /** messages planned in the hold */ offered: number
  /** of these, handed to the kernel */ sent: number
  /** of these, never handed to the kernel */ not_sent: number
  /** replied to */ answered: number
  /** of the answered: after the patience */ late: number
  /** replied to wrongly */ failed: number
  /** lost with their connection */ lost: number
  /** without a reply when the drain ended */ unanswered_at_stop: number
  /** the same by operation, and where every message ended */ flows: { [key in string]: Flow }
  /** errors by cause */ errors: { [key in string]: number }
  /** the first errors of each cause as they were met, at most three of each */ error_samples: Array<ErrorSample>
  /** answers per second; messages that owe none count when sent */ rate_per_s: number
  /** sent of what the plan meant to send, where it meant a rate */ pace_share: number | null
  /** both directions */ bytes_per_s: number | null
  /** lives of bots that end with their function and are followed by others; absent where bots have but one */ sessions?: SessionFigures
  /** connections */ connections: ConnectionFigures
  /** answered − planned; its percentiles count unanswered messages as infinite, which is null here */ response_ns: Summary | null
  /** the same of each operation that is kept apart: those of scripts */ operations_ns?: { [key in string]: Summary }
  /** what scripts recorded with `bot.record`, by name; without a unit */ recorded?: { [key in string]: ValueSummary }
  /** answered − sent */ service_ns: Summary | null
  /** sent − planned */ send_lag_ns: Summary | null
  /** read − readable */ receive_lag_ns: Summary | null
  /** silences of all connections at once, of 20 ms or more while at least four answers were owed; absent where there was none */ stall_ns?: Summary
  /** from the send of a request to the first byte of its answer */ first_byte_ns: Summary | null
  /** the part of the handshakes that TLS took */ tls_ns: Summary | null
  /** of messages without a reply when the drain ended: they took at least so long */ unanswered_ns: Summary | null
  /** arrivals met but a few places of the server's tick, so that latencies are those of these places; null where nobody counted */ aliased: boolean | null
  /** the server's ticks; its clients' view of them where it tells none */ ticks: TickFigures | null
  /** what each source of ticks told, the judged one first; absent where there is only one */ tick_sources?: Array<TickSourceFigures>
  /** ticks as its clients saw them */ client_ticks: ClientTickFigures | null
  /** services on this machine that the server asked: `redis-server on port 6379` */ services?: Array<string>
  /** the networks that were emulated between the clients and the server; absent where there were none */ network?: NetworkFigures
  /** the agents on other machines that made the load, and how each did; absent where this process made it */ agents?: Array<AgentFacts>
  /** what the server draws beside its services, as it says itself */ frames: FrameFigures | null
  /** the books of broadcasts */ deliveries: DeliveryFigures | null
  /** what was claimed against what is */ audit: AuditFigures | null
  /** how the server ended under load; absent where it was not told to */ shutdown?: ShutdownFigures | null
  /** what became of the changes of cheaters; absent where there were none */ cheats?: CheatFigures | null
  /** the server's process tree */ subject: SubjectFigures | null
  /** what the server and the machine did over the hold, by name: every reading of fixed name; absent in older runs */ activity?: { [key in string]: SignalLevel }
  /** how the server's figures went in a hold of five minutes or more; absent of shorter ones */ trends?: TrendFigures
  /** this process */ worker: WorkerFigures
  /** what a user told of while it was held (`stepladder mark`); absent where there was nothing */ marks?: Array<Mark>
  /** what it was judged by */ evidence: Evidence
}

/** How much the runtime itself held operations up, in all runs. What it does not say is null. */
export type RuntimeFitness = {
  /** how much later than due a timer ran: the worst run's p99 */ loop_delay_p99_ns: number | null
  /** at worst */ loop_delay_max_ns: number | null
  /** share of the time in which it paused to collect garbage */ gc_share: number | null
  /** the longest pause */ gc_pause_max_ns: number | null
  /** pauses in all */ gc_count: number | null
  /** the most at the end of a run */ heap_bytes: number | null
}

/** A function of a script, estimated from samples of the running function. */
export type ScriptFunctionFigures = {
  /** as written; empty without one */ name: string
  /** file and line where it begins */ place: string
  /** of the script's time in the hold, without what it called; in [0, 1] */ share: number
}

/** What a search was to reach, and what it reached (RFC 9971). */
export type SearchFigures = {
  /** length of a full-length trial, seconds */ final_trial_s: number
  /** full-length trials of this total length decide whether a load holds, seconds */ duration_sum_s: number
  /** share of them that may miss the objectives, in [0, 1) */ exceed_ratio: number
  /** (upper − lower) / upper at most */ width_goal: number
  /** as it was reached; null without both bounds */ width: number | null
  /** no smaller and no larger load was to be held */ range: [number, number]
  /** loads are whole numbers */ is_whole: boolean
  /** trials of the subject, short and long, without the warm-up */ trials: number
  /** of these, full-length */ full_trials: number
}

/** A second of a trial that goes on, or a value that came later for an old one. */
export type Second = {
  /** the trial's number within the run */ seq: number
  /** seconds since the start of the trial */ t: number
  /** by column */ values: Partial<Record<ColumnName, number>>
}

/** Columns by name, each as long as the first, which is `t`. */
export type Series = Partial<Record<ColumnName, (number | null)[]>>

/** Sessions that were planned in the hold. How long they took is the operation `session`. */
export type SessionFigures = {
  /** all of them */ planned: number
  /** of these, the function returned */ ended: number
  /** of these, the function threw */ failed: number
  /** of these, under way when the bots left */ unended: number
  /** of these, not begun: as many as there may be were under way */ not_begun: number
  /** under way at once, mean over the hold */ at_once: number
  /** the same in the fullest second */ at_once_max: number
}

/** A server that was told to end under load (SIGTERM). */
export type ShutdownFigures = {
  /** when it was told, since the start of the trial */ told_ns: number
  /** from then until it exited with status 0; null where it did not */ exited_after_ns: number | null
  /** whether it could be started again; null where nobody tried */ is_back: boolean | null
  /** what became of requests; null where the clients do not say */ requests: ShutdownRequests | null
}

/** Requests at the end of a server. */
export type ShutdownRequests = {
  /** had left before it was told; each must be answered */ under_way: number
  /** of these, answered, rightly or wrongly */ answered: number
  /** of these, refused or never answered */ dropped: number
  /** sent or planned later */ later: number
  /** of these, refused, lost or never sent, as they may be */ later_refused: number
}

/** A reading over the seconds of the hold. */
export type SignalLevel = {
  /** mean; of a total its growth per second */ mean: number
  /** largest second */ max: number
  /** seconds from the start of the hold until it first reached half of its largest value; null where that is 0 */ half_at_s: number | null
}

/** The receiver that waited longest on average, over the whole trial. */
export type SlowestReceiver = {
  /** its number in the crowd */ receiver: number
  /** mean */ latency_mean_ns: number
  /** longest */ latency_max_ns: number
}

/** Where a run is. */
export type State = "running" | "finished" | "interrupted" | "broken" | "cut_off"

/** How a hold went. */
export type Steadiness = "steady" | "drifting" | "unsteady"

/** The server's process tree over the hold. */
export type SubjectFigures = {
  /** the thread that used most CPU; null where threads are not readable */ busiest_thread: ThreadFigures | null
  /** the names whose threads used most CPU, those first, at most five; empty where threads are not readable */ threads: Array<NamedThreadsFigures>
  /** mean CPU over the hold, in cores */ cpu_cores: number
  /** of the cores it may use */ cpu_share: number | null
  /** cores it may use */ allowed_cores: number | null
  /** maximum over the hold */ rss_bytes: number
  /** maximum over the hold */ fds: number | null
}

/** Deliveries of some receivers, added up. */
export type SumOfBooks = {
  /** receivers */ receivers: number
  /** surely owed */ owed_min: number
  /** possibly owed */ owed_max: number
  /** different messages that came */ delivered: number
  /** of the delivered: after the plan's patience */ late: number
  /** surely owed, and never came, although the receiver was read in time */ lost: number
  /** surely owed, and not read: the bots had no time to read the receiver, so the server dropped it or it was still to be read at the end */ unread?: number
  /** came again */ duplicated: number
  /** came after a newer one of the same sender */ reordered: number
  /** the server says that it dropped them */ dropped: number
  /** the server says that they still waited in its backlog at the end */ in_flight: number
  /** what neither the server nor the clients account for: positive when more was lost, negative when less; see the head */ residual: number
  /** came although they were not owed */ unowed: number
  /** receivers, members when the last message left, that never had the server's word that everything had come */ not_caught_up: number
}

/** The figures of one distribution as they go into the JSON contract. Shape: percentiles, extremes, moments. Units: ns. A percentile that may not be stated is `None`. */
export type Summary = {
  /** median */ p50: number | null
  /** 0.9 quantile */ p90: number | null
  /** 0.99 quantile */ p99: number | null
  /** 0.999 quantile */ p999: number | null
  /** largest value */ max: number | null
  /** arithmetic mean */ mean: number | null
  /** standard deviation */ stddev: number | null
  /** how many values */ count: number
}

/** A thread over the hold. */
export type ThreadFigures = {
  /** its name; text from the server under test is never markup */ name: string
  /** mean */ cpu_cores: number
}

/** Ticks of a rung. */
export type TickFigures = {
  /** `log`, `client` … */ source: string
  /** between two ticks as scheduled */ period_ns: number
  /** (over + under + missed) / due */ late_share: number | null
  /** ticks whose work took longer than a period */ over_budget_share: number | null
  /** instability ratio */ isr: number | null
  /** between two ticks */ interval_ns: Summary | null
  /** of these, those that were late */ late_intervals: LateIntervals
  /** work per tick */ busy_ns: Summary | null
  /** ticks that the schedule asked for */ due: number
  /** within the classes' bounds */ on_time: number
  /** longer */ over: number
  /** shorter */ under: number
  /** never run */ missed: number
}

/** A tick log. */
export type TickFile = {
  /** of the file; text, never markup */ name: string
  /** per entry of the log */ series: Series
  /** why it cannot be read at all */ error: string | null
  /** played to their end; null when the log never says */ games: number | null
  /** (over + under + missed) / due */ late_share: number | null
  /** between two ticks */ interval_ms: IntervalMs
  /** whole ms → ticks */ histogram: { [key in number]: number }
  /** lines that could not be read */ malformed: number
  /** ticks that the schedule asked for */ due: number
  /** within the classes' bounds */ on_time: number
  /** longer */ over: number
  /** shorter */ under: number
  /** never run */ missed: number
}

/** What one of several sources told of a hold. */
export type TickSourceFigures = {
  /** as it was given: `statsd=127.0.0.1:8125` */ source: string
  /** ticks due; 0: it told of none */ due: number
  /** null where it told of none, or only between which bounds */ late_share: number | null
  /** the least and the most that it can be, where that is not the same */ late_share_bounds?: [number, number]
  /** between two ticks */ interval_p99_ns: number | null
}

/** How one figure went. */
export type Trend = {
  /** at the end of the hold, by the slope; bytes, a count, or ns */ level: number
  /** slope per hour */ per_hour: number
  /** lower end of its 95 % interval */ per_hour_min: number
  /** upper end */ per_hour_max: number
  /** it is certain, it matters, and it went on to the end */ grows: boolean
  /** at this slope it doubles so long after the end of the hold, h; null unless it grows */ doubles_after_h: number | null
  /** growth per request or message; null where that is no explanation */ per_sent: number | null
  /** growth per connection that ended; null where that is no explanation */ per_closed: number | null
}

/** How the server's figures went in a long hold. */
export type TrendFigures = {
  /** length of a stretch of the hold, of which each gives one value, s */ stretch_s: number
  /** stretches looked at: without the first tenth of the hold */ stretches: number
  /** requests or messages that were sent in them, per hour */ sent_per_hour: number
  /** connections that ended in them, per hour */ closed_per_hour: number
  /** by the figure's name, as in objectives */ of: { [key in string]: Trend }
}

/** A trial. Columns and buckets may be left out (empty); the page asks for them then. */
export type TrialPage = {
  /** number within the run */ seq: number
  /** `rung`, … */ purpose: Purpose
  /** in `load_unit` */ load: number
  /** `games` … */ load_unit: LoadUnit
  /** simulated clients */ bots: number
  /** of a sweep */ cell: { [key in string]: string }
  /** 0: no ticks */ tick_period_ns: number
  /** marks on the time axis */ events: Array<Event>
  /** what is judged; null before it begins */ hold: HoldSpan | null
  /** what makes a second disturbed */ disturbed_above: DisturbedAbove
  /** as in `--json`; null for calibrations, while it runs, and where the page finds it in `climb` */ rung: Rung | null
  /** one entry per second */ series: Series
  /** seconds per point of the series; above 1 where a long trial was thinned */ seconds_per_point: number
  /** buckets over the hold, by name */ distributions: Partial<Record<DistributionName, [number, number][]>>
  /** of a broadcast */ slowest: Array<ReceiverBooks>
}

/** The figures of a distribution of a script's own, in the unit that the script chose. A percentile that may not be stated is `None`. */
export type ValueSummary = {
  /** median */ p50: number | null
  /** 0.9 quantile */ p90: number | null
  /** 0.99 quantile */ p99: number | null
  /** largest value */ max: number | null
  /** arithmetic mean */ mean: number | null
  /** how many values */ count: number
}

/** What a rung, or a whole run, is worth. */
export type Verdict = "PASS" | "FAIL" | "GENERATOR_LIMITED" | "INCONCLUSIVE" | "INVALID"

/** This process over the hold. */
export type WorkerFigures = {
  /** the busiest worker's share of the hold */ busy_share_max: number | null
  /** the most that one worker was on a core in a second */ cpu_share_max: number | null
  /** the most that one worker was kept waiting for a core in a second */ waiting_share_max: number | null
  /** the functions of the bots' script that took most of its time, the largest first; absent where there is no script */ script_functions?: Array<ScriptFunctionFigures>
  /** mean CPU over the hold, in cores */ cpu_cores: number
  /** of the cores it may use */ cpu_share: number | null
  /** cores it may use */ allowed_cores: number | null
  /** maximum over the hold */ rss_bytes: number
  /** maximum over the hold */ fds: number | null
}

export type ColumnName = 't' | 'offered' | 'sent' | 'answered' | 'failed' | 'lost' | 'late' | 'open' | 'response_mean_ns' | 'response_p50_ns' | 'response_p99_ns' | 'service_p50_ns' | 'service_p99_ns' | 'send_lag_p99_ns' | 'delivery_mean_ns' | 'delivery_p99_ns' | 'ticks_due' | 'ticks_on_time' | 'ticks_over' | 'ticks_under' | 'ticks_missed' | 'late_share' | 'frames' | 'subject_cpu_cores' | 'subject_rss_bytes' | 'worker_cpu_cores' | 'worker_rss_bytes' | 'busy_share' | 'steal_share' | 'throttle_events' | 'others_cores' | 'worker_waiting_share' | 'subject_waiting_share' | 'subject_thread_cores' | 'bytes' | 'errors' | 'not_sent' | 'connects_failed'

export type DistributionName = 'response' | 'service' | 'send_lag' | 'receive_lag' | 'handshake' | 'tick_interval' | 'tick_age' | 'delivery' | 'first_byte' | 'tls' | 'unanswered' | 'stall' | 'client_tick_interval' | 'tick_busy'

/** Of loads that count requests, each of which owes a reply. */
export const REQUEST_UNITS: readonly LoadUnit[] = ['requesters', 'req/s', 'updates/s']
