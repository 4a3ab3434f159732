// The runner: one plan in, lines of JSON out. Exit codes: 0, 2 bad plan, 3 cannot connect, 130 and 143 stopped.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	inflight "stepladder/inflight"
	"stepladder/inflight/internal/plan"
	"stepladder/inflight/internal/store"
	"stepladder/inflight/internal/workload"
)

// preloadInFlight is how many values are put at once before the run.
const preloadInFlight = 100

func main() {
	text := ""
	if len(os.Args) == 2 {
		text = os.Args[1]
	}
	p, err := plan.Read(text)
	if err != nil {
		os.Exit(say(err.Error(), 2))
	}
	os.Exit(run(p))
}

func say(message string, code int) int {
	inflight.PrintLine(struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	}{"error", message})
	return code
}

func run(p plan.Plan) int {
	ctx, code := stopOnSignals()
	w := workload.New(p)
	options := inflight.Options{
		TotalOps: p.Total, WarmupOps: p.Warmup, Timeout: time.Duration(p.TimeoutMs) * time.Millisecond,
		MemoryCapBytes: p.MemoryCapBytes, Plan: p, NullOp: operation(p, store.NewNull(w), w),
		InFlight: inflight.Unlimited,
	}
	if p.Warmup == 0 {
		options.WarmupOps = -1
	}
	if inFlight, is := p.InFlight.(int64); is {
		options.InFlight = int(inFlight)
	}
	if p.Target == "fake:" {
		options.Client = inflight.Client{Name: "fake", Version: "1"}
		options.NewClock, options.NextOp, options.NullOp = fakeClock, fakeOperation, nil
	} else {
		var s store.Store = store.NewNull(w)
		if p.Target != "null:" {
			var err error
			if s, err = store.Connect(p); err != nil {
				return say(fmt.Sprintf("cannot connect to %s: %v", named(p), err), 3)
			}
			if err = preload(p, s, w); err != nil {
				return say(fmt.Sprintf("cannot put the first values into %s: %v", named(p), err), 3)
			}
		}
		defer s.Close()
		options.Client, options.Member, options.IsUnknown = s.Client(), s.Member(), s.IsUnknown
		options.NextOp = operation(p, s, w)
	}
	if _, err := inflight.Run(ctx, options); err != nil {
		return say(err.Error(), 2)
	}
	return int(code.Load())
}

// named is the target with all that a mistake may be in.
func named(p plan.Plan) string {
	if strings.HasPrefix(p.Target, "hazelcast") {
		return fmt.Sprintf("%s (cluster %s)", p.Target, p.Cluster)
	}
	return p.Target
}

// stopOnSignals cancels the context at the first signal.
func stopOnSignals() (context.Context, *atomic.Int64) {
	ctx, cancel := context.WithCancel(context.Background())
	code := new(atomic.Int64)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		number := (<-signals).(syscall.Signal)
		code.Store(128 + int64(number))
		cancel()
		// A second signal ends the process, unless it is the first one again: some wrappers pass it on twice.
		for first := time.Now(); ; {
			if again := (<-signals).(syscall.Signal); time.Since(first) > 100*time.Millisecond {
				os.Exit(128 + int(again))
			}
		}
	}()
	return ctx, code
}

// operation is what operation i does with a store, and how its result is judged.
func operation(p plan.Plan, s store.Store, w *workload.Workload) inflight.NextOp {
	unrounded := p.Unlimited()
	return func(ctx context.Context, i int64) (inflight.Outcome, error) {
		key, name := 0, ""
		if unrounded {
			name = w.UnroundedKey(i)
		} else {
			key = w.Key(i)
			name = w.Names[key]
		}
		switch w.Kind(i) {
		case workload.Set:
			return inflight.OK, s.Set(ctx, name, w.Value(key))
		case workload.Delete:
			return inflight.OK, s.Delete(ctx, name)
		}
		value, err := s.Get(ctx, name)
		switch {
		case err != nil:
			return inflight.OK, err
		case value == nil:
			return inflight.Miss, nil
		case value == w.Value(key):
			return inflight.Hit, nil
		}
		return inflight.Wrong, nil
	}
}

// preload puts every value that a get can hit.
func preload(p plan.Plan, s store.Store, w *workload.Workload) error {
	if p.Op == "set" || p.Unlimited() {
		return nil
	}
	var next atomic.Int64
	results := make(chan error, preloadInFlight)
	for range preloadInFlight {
		go func() {
			for {
				key := int(next.Add(1) - 1)
				if key >= len(w.Names) {
					results <- nil
					return
				}
				if err := s.Set(context.Background(), w.Names[key], w.Value(key)); err != nil {
					results <- err
					return
				}
			}
		}()
	}
	var failure error
	for range preloadInFlight {
		if err := <-results; err != nil {
			failure = err
		}
	}
	return failure
}
