package inflight

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// grace is how long operations in flight may still end by themselves after a stop.
const grace = time.Second

// States of a worker besides the instant, above 0, at which its open operation started.
const (
	idle    = 0
	givenUp = -1
)

// timelineOps is how many operations of a phase are reported one by one.
const timelineOps = 200

// phase is one part of a run, warm-up or measurement: the closed loop itself.
type phase struct {
	o        *Options
	next     atomic.Int64
	from, to int64
	began    int64
	timeline [timelineOps][2]int64 // Each is written by whoever ends its operation.
	tally    *tally
	onSecond func(counts Counts, q quantiles, inFlight int)

	stopReason atomic.Pointer[string]
	stopping   chan struct{}
	open       sync.WaitGroup

	mu      sync.Mutex
	workers []*worker // under mu
}

// worker is one of the places in which an operation can be in flight.
type worker struct {
	number int
	// state is idle, givenUp or the start of the open operation. Whoever moves it on from that instant counts the
	// operation: the worker itself, or the phase that gives it up.
	state  atomic.Int64
	ctx    context.Context
	cancel context.CancelFunc
	now    func() int64
}

type result struct {
	tally     *tally
	elapsedNs int64
	stopped   string
	timeline  [][2]int64
}

func newPhase(o *Options, from, to int64) *phase {
	p := &phase{o: o, from: from, to: to, tally: newTally(), stopping: make(chan struct{})}
	p.next.Store(from)
	return p
}

// run returns when each operation has ended.
func (p *phase) run(ctx context.Context) result {
	_, now := p.o.NewClock(context.Background())
	began := now()
	p.began = began
	realBegan := monotonicNs()
	ended := make(chan struct{})
	supervised := make(chan struct{})
	go p.supervise(ctx, ended, supervised)
	if p.o.InFlight == Unlimited {
		p.startAll()
	} else {
		for range min(int64(p.o.InFlight), p.to-p.next.Load()) {
			p.open.Add(1)
			go p.work(p.newWorker())
		}
	}
	p.open.Wait()
	elapsed := now() - began
	if elapsed == 0 { // A fake clock of another goroutine.
		elapsed = monotonicNs() - realBegan
	}
	close(ended)
	<-supervised
	stopped := ""
	if reason := p.stopReason.Load(); reason != nil {
		stopped = *reason
	}
	told := min(timelineOps, p.next.Load()-p.from, p.to-p.from)
	return result{p.tally, elapsed, stopped, p.timeline[:max(told, 0)]}
}

func (p *phase) newWorker() *worker {
	w := &worker{}
	ctx, cancel := context.WithCancel(context.Background())
	w.cancel = cancel
	w.ctx, w.now = p.o.NewClock(ctx)
	p.mu.Lock()
	w.number = len(p.workers)
	p.workers = append(p.workers, w)
	p.mu.Unlock()
	return w
}

// work performs one operation after the other, until none is left or its own was given up.
func (p *phase) work(w *worker) {
	for p.stopReason.Load() == nil {
		i := p.next.Add(1) - 1
		if i >= p.to {
			break
		}
		if !p.perform(w, i) {
			return
		}
	}
	p.open.Done()
}

// perform reports whether the operation ended by itself; another worker has taken over if not.
func (p *phase) perform(w *worker, i int64) bool {
	started := w.now()
	w.state.Store(started)
	outcome, err := p.call(w.ctx, i)
	took := w.now() - started
	if !w.state.CompareAndSwap(started, idle) {
		return false
	}
	p.tell(i, started, started+took)
	switch {
	case err == nil:
		p.tally.record(w.number, outcome, took)
		if outcome == Wrong {
			p.tally.blame("wrong", fmt.Sprintf("operation %d returned a wrong value", i))
		}
	case p.o.IsUnknown(err):
		p.tally.record(w.number, unknown, took)
		p.tally.blame(cause(err), err.Error())
	default:
		p.tally.record(w.number, failed, took)
		p.tally.blame(cause(err), err.Error())
	}
	return true
}

// tell keeps the times of one of the first operations.
func (p *phase) tell(i, started, ended int64) {
	if place := i - p.from; place < timelineOps {
		p.timeline[place] = [2]int64{max(started-p.began, 0), max(ended-p.began, 0)}
	}
}

// call turns a panic into an error.
func (p *phase) call(ctx context.Context, i int64) (outcome Outcome, err error) {
	defer func() {
		if thrown := recover(); thrown != nil {
			err = panicked{thrown}
		}
	}()
	return p.o.NextOp(ctx, i)
}

// startAll is the benchmark without back-pressure: one goroutine for each operation.
func (p *phase) startAll() {
	for started := 0; p.stopReason.Load() == nil; started++ {
		i := p.next.Add(1) - 1
		if i >= p.to {
			return
		}
		if started%1000 == 0 {
			if resident, _ := residentBytes(); resident > p.o.MemoryCapBytes {
				p.stop("memory")
				return
			}
		}
		p.open.Add(1)
		w := p.newWorker()
		go func() {
			if p.perform(w, i) {
				p.open.Done()
			}
			w.cancel()
		}()
	}
}

func (p *phase) stop(reason string) {
	if p.stopReason.CompareAndSwap(nil, &reason) {
		close(p.stopping)
	}
}

// supervise reports every second, gives up what takes too long and obeys a stop.
func (p *phase) supervise(ctx context.Context, ended, supervised chan struct{}) {
	seconds := time.NewTicker(time.Second)
	defer seconds.Stop()
	overdue := time.NewTicker(min(100*time.Millisecond, p.o.Timeout/4+1))
	defer overdue.Stop()
	stopping, cancelled := p.stopping, ctx.Done()
	var cut <-chan time.Time
	for {
		select {
		case <-seconds.C:
			p.report()
		case <-overdue.C:
			p.giveUp(p.o.Timeout, "timeout", fmt.Sprintf("no result within %v", p.o.Timeout))
		case <-cancelled:
			cancelled = nil
			p.stop("signal")
		case <-stopping:
			stopping = nil
			cut = time.After(grace)
		case <-cut:
			p.giveUp(0, "stopped", "the run was stopped before the result came")
		case <-ended:
			p.report()
			close(supervised)
			return
		}
	}
}

func (p *phase) report() {
	counts, q := p.tally.takeInterval()
	if p.onSecond == nil {
		return
	}
	inFlight := 0
	for _, w := range p.snapshot() {
		if w.state.Load() > 0 {
			inFlight++
		}
	}
	p.onSecond(counts, q, inFlight)
}

func (p *phase) snapshot() []*worker {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]*worker(nil), p.workers...)
}

// giveUp ends the operations that are open for at least this long as unknown. Their goroutines may still be stuck in
// the client library, so that others take their places.
func (p *phase) giveUp(after time.Duration, why, text string) {
	for _, w := range p.snapshot() {
		started := w.state.Load()
		took := w.now() - started
		if started <= 0 || took < int64(after) || !w.state.CompareAndSwap(started, givenUp) {
			continue
		}
		w.cancel()
		p.tally.record(w.number, unknown, took)
		p.tally.blame(why, text)
		if p.o.InFlight == Unlimited {
			p.open.Done()
		} else {
			go p.work(p.newWorker())
		}
	}
}
