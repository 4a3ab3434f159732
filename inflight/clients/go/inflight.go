// Package inflight is the in-flight benchmark: N operations in flight, each one that ends starts the next, until the
// total is reached. It works for any client library whose operations block; N goroutines keep N of them in flight.
//
// Every operation that was started is counted exactly once, even when NextOp panics, returns an error or does not
// return. The output is described in ../README.md.
package inflight

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"
)

// Outcome says how an operation ended that returned no error.
type Outcome uint8

// Hit, Miss and Wrong are of operations that read: the first two are OK as well, and Wrong counts as failed.
const (
	OK Outcome = iota
	Hit
	Miss
	Wrong
)

// ErrUnknown, anywhere in an error's chain, says that the operation may or may not have been carried out.
var ErrUnknown = errors.New("outcome unknown")

// Unlimited as Options.InFlight starts every operation at once, each in its own goroutine.
const Unlimited = -1

// NextOp performs operation i (from 0, warm-up included). ctx is cancelled when the operation is given up.
type NextOp func(ctx context.Context, i int64) (Outcome, error)

// Options of Run. Only NextOp must be given.
type Options struct {
	NextOp NextOp
	// TotalOps counts the operations in all, warm-up included. 0: 1,000,000.
	TotalOps int64
	// InFlight is how many operations are under way at once. 0: 100.
	InFlight int
	// WarmupOps are the first ones, which are not counted. 0: a tenth of TotalOps; negative: none.
	WarmupOps int64
	// Timeout after which an operation ends as unknown. 0: 10 s.
	Timeout time.Duration
	// IsUnknown tells whether an error leaves it open what became of the operation. nil: ErrUnknown does.
	IsUnknown func(error) bool
	// MemoryCapBytes stops an Unlimited run when the process holds more memory. 0: 512 MiB.
	MemoryCapBytes int64
	Client         Client
	Member         *Member
	// Plan goes into the line "start" as it is.
	Plan any
	// NullOp does nothing, at the price that NextOp has besides the client library. nil: it returns at once.
	NullOp NextOp
	// OnLine receives the lines. nil: they go to standard output as JSON.
	OnLine func(line any)
	// NewClock gives each goroutine its clock in nanoseconds, for tests. nil: the monotonic clock.
	NewClock func(ctx context.Context) (context.Context, func() int64)
}

// Client is the library that is measured.
type Client struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

// Member is the server, as far as the client library knows it.
type Member struct {
	Version string `json:"version"`
}

// Start is the first line.
type Start struct {
	Type                  string  `json:"type"`
	Format                int     `json:"format"`
	Client                Client  `json:"client"`
	Runtime               Client  `json:"runtime"`
	Member                *Member `json:"member"`
	Plan                  any     `json:"plan"`
	OwnOverheadNsPerOp    int64   `json:"own_overhead_ns_per_op"`
	OwnOverheadCPUNsPerOp int64   `json:"own_overhead_cpu_ns_per_op"`
}

// Second is the line of each second, and of the rest at the end of a phase.
type Second struct {
	Type  string `json:"type"`
	Phase string `json:"phase"`
	AtNs  int64  `json:"at_ns"`
	Counts
	InFlight int            `json:"in_flight"`
	P50Ns    int64          `json:"p50_ns"`
	P99Ns    int64          `json:"p99_ns"`
	MaxNs    int64          `json:"max_ns"`
	Runtime  RuntimeFigures `json:"runtime"`
}

// End is the last line: the measured part, without the warm-up.
type End struct {
	Type      string `json:"type"`
	ElapsedNs int64  `json:"elapsed_ns"`
	Counts
	Latency      string         `json:"latency"`
	CPUUserNs    int64          `json:"cpu_user_ns"`
	CPUSystemNs  int64          `json:"cpu_system_ns"`
	RSSBytes     int64          `json:"rss_bytes"`
	RSSPeakBytes int64          `json:"rss_peak_bytes"`
	Runtime      RuntimeFigures `json:"runtime"`
	Errors       []ErrorCount   `json:"errors"`
	Stopped      string         `json:"stopped,omitempty"`
}

// Timeline tells the first operations of the measured part one by one: start and end in ns since it began.
type Timeline struct {
	Type       string     `json:"type"`
	Operations [][2]int64 `json:"operations"`
}

// PrintLine writes a line to standard output.
func PrintLine(line any) {
	text, err := json.Marshal(line)
	if err != nil {
		panic(err) // Only a Plan that JSON cannot express.
	}
	os.Stdout.Write(append(text, '\n'))
}

// Run runs the benchmark, writes its lines and returns the last one. Cancelling ctx stops it; what it has is reported.
func Run(ctx context.Context, options Options) (End, error) {
	o, err := options.withDefaults()
	if err != nil {
		return End{}, err
	}
	wallNs, cpuNs := o.ownOverhead()
	o.OnLine(Start{
		Type: "start", Format: 1, Client: o.Client, Member: o.Member, Plan: o.Plan,
		Runtime:            Client{Name: "go", Version: strings.TrimPrefix(runtime.Version(), "go")},
		OwnOverheadNsPerOp: wallNs, OwnOverheadCPUNsPerOp: cpuNs,
	})

	began := monotonicNs()
	phase := func(name string, from, to int64) result {
		var seconds gcSpan
		seconds.take()
		p := newPhase(&o, from, to)
		p.onSecond = func(counts Counts, q quantiles, inFlight int) {
			o.OnLine(Second{
				Type: "second", Phase: name, AtNs: monotonicNs() - began, Counts: counts, InFlight: inFlight,
				P50Ns: q.p50, P99Ns: q.p99, MaxNs: q.max, Runtime: seconds.take(),
			})
		}
		return p.run(ctx)
	}
	var stopped string
	if o.WarmupOps > 0 {
		stopped = phase("warmup", 0, o.WarmupOps).stopped
	}
	endProfile := startProfile()
	var gc gcSpan
	gc.take()
	userNs, systemNs := cpuTimes()
	measured := result{tally: newTally()}
	if stopped == "" {
		measured = phase("measure", o.WarmupOps, o.TotalOps)
		stopped = measured.stopped
	}
	userEndNs, systemEndNs := cpuTimes()
	resident, peak := residentBytes()
	end := End{
		Type: "end", ElapsedNs: measured.elapsedNs, Counts: measured.tally.counts(), Latency: measured.tally.encoded(),
		CPUUserNs: userEndNs - userNs, CPUSystemNs: systemEndNs - systemNs, RSSBytes: resident, RSSPeakBytes: peak,
		Runtime: gc.take(), Errors: measured.tally.errors(), Stopped: stopped,
	}
	if err := endProfile(stopped == ""); err != nil {
		return End{}, fmt.Errorf("the profile cannot be written: %w", err)
	}
	o.OnLine(Timeline{Type: "timeline", Operations: append([][2]int64{}, measured.timeline...)})
	o.OnLine(end)
	return end, nil
}

func (o Options) withDefaults() (Options, error) {
	if o.NextOp == nil {
		return o, errors.New("NextOp is missing")
	}
	if o.TotalOps == 0 {
		o.TotalOps = 1_000_000
	}
	switch {
	case o.WarmupOps == 0:
		o.WarmupOps = o.TotalOps / 10
	case o.WarmupOps < 0:
		o.WarmupOps = 0
	}
	if o.TotalOps < 1 || o.WarmupOps >= o.TotalOps {
		return o, fmt.Errorf("TotalOps must be more than WarmupOps (%d), got %d", o.WarmupOps, o.TotalOps)
	}
	if o.InFlight == 0 {
		o.InFlight = 100
	}
	if o.InFlight < 1 && o.InFlight != Unlimited {
		return o, fmt.Errorf("InFlight must be 1 or more, or Unlimited, got %d", o.InFlight)
	}
	if o.Timeout == 0 {
		o.Timeout = 10 * time.Second
	}
	if o.IsUnknown == nil {
		o.IsUnknown = func(err error) bool { return errors.Is(err, ErrUnknown) }
	}
	if o.MemoryCapBytes == 0 {
		o.MemoryCapBytes = 512 << 20
	}
	if o.Client.Name == "" {
		o.Client.Name = "custom"
	}
	if o.Plan == nil {
		o.Plan = map[string]any{"total": o.TotalOps, "warmup": o.WarmupOps, "in_flight": o.inFlightText()}
	}
	if o.NullOp == nil {
		o.NullOp = func(context.Context, int64) (Outcome, error) { return OK, nil }
	}
	if o.OnLine == nil {
		o.OnLine = PrintLine
	}
	if o.NewClock == nil {
		o.NewClock = func(ctx context.Context) (context.Context, func() int64) { return ctx, monotonicNs }
	}
	return o, nil
}

func (o Options) inFlightText() any {
	if o.InFlight == Unlimited {
		return "unlimited"
	}
	return o.InFlight
}

const overheadNs = 100_000_000

// ownOverhead measures an operation that does nothing: in a run of at least 100 ms, after shorter ones.
func (o Options) ownOverhead() (wallNs, cpuNs int64) {
	o.NextOp, o.NewClock = o.NullOp, func(ctx context.Context) (context.Context, func() int64) { return ctx, monotonicNs }
	if o.InFlight == Unlimited {
		o.InFlight = 100
	}
	ops, warmedNs := int64(10_000), int64(0)
	for {
		user, system := cpuTimes()
		elapsed := newPhase(&o, 0, ops).run(context.Background()).elapsedNs
		if elapsed >= overheadNs && warmedNs >= overheadNs {
			userEnd, systemEnd := cpuTimes()
			return elapsed / ops, (userEnd - user + systemEnd - system) / ops
		}
		warmedNs += elapsed
		if elapsed < overheadNs {
			ops *= 2
		}
	}
}

var processStart = time.Now()

// monotonicNs is never 0.
func monotonicNs() int64 { return int64(time.Since(processStart)) + 1 }
