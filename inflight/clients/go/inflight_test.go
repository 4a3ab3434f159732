package inflight

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// run runs without printing, and returns the last line and those of the seconds.
func run(t *testing.T, ctx context.Context, o Options) (End, []Second) {
	t.Helper()
	var seconds []Second
	o.OnLine = func(line any) {
		if second, is := line.(Second); is {
			seconds = append(seconds, second)
		}
	}
	end, err := Run(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	return end, seconds
}

func wantCounts(t *testing.T, end End, want Counts) {
	t.Helper()
	if end.Counts != want {
		t.Errorf("counts are %+v, want %+v", end.Counts, want)
	}
}

func wantErrors(t *testing.T, end End, want map[string]int64) {
	t.Helper()
	got := map[string]int64{}
	for _, each := range end.Errors {
		got[each.Cause] = each.Count
	}
	if len(got) != len(want) {
		t.Errorf("errors are %v, want %v", got, want)
	}
	for cause, count := range want {
		if got[cause] != count {
			t.Errorf("errors are %v, want %v", got, want)
		}
	}
}

// most keeps the largest number that was under way at once.
type most struct{ open, max atomic.Int64 }

func (m *most) enter() {
	open := m.open.Add(1)
	for old := m.max.Load(); open > old && !m.max.CompareAndSwap(old, open); old = m.max.Load() {
	}
}

func (m *most) leave() { m.open.Add(-1) }

func TestNoMoreThanInFlightOperationsRunAtOnceAndAsManyAsThatDo(t *testing.T) {
	var m most
	// The first 13 wait for each other, so that they are certain to overlap.
	var first sync.WaitGroup
	first.Add(13)
	end, _ := run(t, context.Background(), Options{TotalOps: 5000, InFlight: 13, NextOp: func(_ context.Context, i int64) (Outcome, error) {
		m.enter()
		defer m.leave()
		if i < 13 {
			first.Done()
			first.Wait()
		}
		for range i % 7 {
			runtime.Gosched()
		}
		return OK, nil
	}})
	if m.max.Load() != 13 {
		t.Errorf("%d operations ran at once, want 13", m.max.Load())
	}
	wantCounts(t, end, Counts{Ops: 4500, OK: 4500})
}

type planted struct{}

func (planted) Error() string { return "planted" }

func TestEveryOperationIsCountedOnceHoweverItEnds(t *testing.T) {
	started := make([]atomic.Int64, 5000)
	end, _ := run(t, context.Background(), Options{TotalOps: 5000, WarmupOps: -1, InFlight: 10, NextOp: func(_ context.Context, i int64) (Outcome, error) {
		started[i].Add(1)
		switch i % 5 {
		case 0:
			panic("thrown")
		case 1:
			return OK, planted{}
		case 2:
			return OK, errors.Join(ErrUnknown, planted{})
		case 3:
			time.Sleep(time.Microsecond)
		}
		return OK, nil
	}})
	for i := range started {
		if started[i].Load() != 1 {
			t.Fatalf("operation %d was started %d times", i, started[i].Load())
		}
	}
	wantCounts(t, end, Counts{Ops: 5000, OK: 2000, Failed: 2000, Unknown: 1000})
	wantErrors(t, end, map[string]int64{"panic": 1000, "inflight.planted": 1000, "errors.joinError": 1000})
}

func TestTheWarmUpIsRunFirstAndNotCounted(t *testing.T) {
	var measured atomic.Bool
	var warm atomic.Int64
	end, seconds := run(t, context.Background(), Options{TotalOps: 1000, WarmupOps: 300, InFlight: 5, NextOp: func(_ context.Context, i int64) (Outcome, error) {
		if i >= 300 {
			measured.Store(true)
			return OK, nil
		}
		if measured.Load() {
			t.Error("a warm-up operation runs after a measured one")
		}
		warm.Add(1)
		return OK, planted{}
	}})
	wantCounts(t, end, Counts{Ops: 700, OK: 700})
	wantErrors(t, end, nil)
	sums := map[string]int64{}
	for _, second := range seconds {
		sums[second.Phase] += second.Ops
	}
	if sums["warmup"] != 300 || sums["measure"] != 700 || warm.Load() != 300 {
		t.Errorf("the seconds add up to %v, want 300 and 700", sums)
	}
}

func TestAnOperationThatHangsEndsAsUnknownAndItsLateResultIsNotCounted(t *testing.T) {
	last := make(chan struct{})
	var returned sync.WaitGroup
	returned.Add(4)
	end, _ := run(t, context.Background(), Options{TotalOps: 8, WarmupOps: -1, InFlight: 4, Timeout: 20 * time.Millisecond,
		NextOp: func(_ context.Context, i int64) (Outcome, error) {
			// The last one starts when the first four have been given up, whatever their context says. It ends all others,
			// those four too late.
			switch {
			case i < 4:
				defer returned.Done()
				<-last
			case i < 7:
				<-last
			default:
				close(last)
				returned.Wait()
			}
			return OK, nil
		}})
	wantCounts(t, end, Counts{Ops: 8, OK: 4, Unknown: 4})
	wantErrors(t, end, map[string]int64{"timeout": 4})
}

func TestTheContextOfAnOperationThatHangsIsCancelled(t *testing.T) {
	end, _ := run(t, context.Background(), Options{TotalOps: 4, WarmupOps: -1, InFlight: 2, Timeout: 20 * time.Millisecond,
		NextOp: func(ctx context.Context, i int64) (Outcome, error) {
			<-ctx.Done()
			return OK, ctx.Err()
		}})
	wantCounts(t, end, Counts{Ops: 4, Unknown: 4})
}

func TestUnlimitedStartsEverythingAtOnceAndStopsAtTheMemoryCap(t *testing.T) {
	var m most
	var all sync.WaitGroup
	all.Add(3000)
	end, _ := run(t, context.Background(), Options{TotalOps: 3000, WarmupOps: -1, InFlight: Unlimited, MemoryCapBytes: 1 << 40,
		NextOp: func(context.Context, int64) (Outcome, error) {
			m.enter()
			defer m.leave()
			all.Done()
			all.Wait()
			return OK, nil
		}})
	wantCounts(t, end, Counts{Ops: 3000, OK: 3000})
	if m.max.Load() != 3000 || end.Stopped != "" {
		t.Errorf("%d operations ran at once, want 3000; stopped %q", m.max.Load(), end.Stopped)
	}
	capped, _ := run(t, context.Background(), Options{TotalOps: 100_000, WarmupOps: -1, InFlight: Unlimited, MemoryCapBytes: 1,
		NextOp: func(context.Context, int64) (Outcome, error) { return OK, nil }})
	if capped.Stopped != "memory" || capped.Ops >= 100_000 || capped.Ops != capped.OK {
		t.Errorf("stopped %q after %+v, want memory and fewer than all", capped.Stopped, capped.Counts)
	}
}

func TestAStopEndsTheRunAndWhatHasNoResultByThenIsUnknown(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	end, _ := run(t, ctx, Options{TotalOps: 1000, WarmupOps: -1, InFlight: 1,
		NextOp: func(_ context.Context, i int64) (Outcome, error) {
			if i == 50 {
				cancel()
				select {}
			}
			return OK, nil
		}})
	wantCounts(t, end, Counts{Ops: 51, OK: 50, Unknown: 1})
	wantErrors(t, end, map[string]int64{"stopped": 1})
	if end.Stopped != "signal" {
		t.Errorf("stopped is %q", end.Stopped)
	}
}

func TestWhatCannotBeRunIsRefused(t *testing.T) {
	nextOp := func(context.Context, int64) (Outcome, error) { return OK, nil }
	for _, each := range []struct {
		options Options
		want    string
	}{
		{Options{}, "NextOp is missing"},
		{Options{NextOp: nextOp, TotalOps: 10, WarmupOps: 10}, "TotalOps must be more than WarmupOps (10), got 10"},
		{Options{NextOp: nextOp, TotalOps: 10, InFlight: -5}, "InFlight must be 1 or more, or Unlimited, got -5"},
	} {
		if _, err := Run(context.Background(), each.options); err == nil || !strings.Contains(err.Error(), each.want) {
			t.Errorf("the error is %v, want %q", err, each.want)
		}
	}
}

func TestErrorsAreKeptByCauseUpToALimit(t *testing.T) {
	tally := newTally()
	for cause := range 30 {
		tally.blame(string(rune('a'+cause)), strings.Repeat("é", 400))
	}
	found := tally.errors()
	if len(found) != causesKept+1 || found[0].Cause != "other" || found[0].Count != 10 {
		t.Errorf("%d causes, the first is %+v", len(found), found[0])
	}
	if !slices.ContainsFunc(found, func(each ErrorCount) bool { return len([]rune(each.First)) == firstCharacters }) {
		t.Error("the first words are not cut")
	}
}
