package main

import (
	"context"
	"fmt"

	inflight "stepladder/inflight"
)

// The deterministic fake: operation i has a planted latency and outcome. Each goroutine has a virtual time of its own,
// which its operations move on.

type fakeTimeKey struct{}

func fakeClock(ctx context.Context) (context.Context, func() int64) {
	now := new(int64)
	*now = 1
	return context.WithValue(ctx, fakeTimeKey{}, now), func() int64 { return *now }
}

func plantedLatencyNs(i int64) int64 { return 1000 + (i*7919%100_003)*37 }

func fakeOperation(ctx context.Context, i int64) (inflight.Outcome, error) {
	*ctx.Value(fakeTimeKey{}).(*int64) += plantedLatencyNs(i)
	switch {
	case i%1009 == 0:
		return inflight.OK, fmt.Errorf("operation %d fails as planted", i)
	case i%2003 == 0:
		return inflight.OK, fmt.Errorf("operation %d is unknown as planted: %w", i, inflight.ErrUnknown)
	}
	return inflight.OK, nil
}
