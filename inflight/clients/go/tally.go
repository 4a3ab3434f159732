package inflight

import (
	"fmt"
	"reflect"
	"sort"
	"strings"
	"sync"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Outcomes that an error stands for.
const (
	failed  Outcome = 254
	unknown Outcome = 255
)

// HighestLatencyNs is the upper end of the histogram; a longer latency counts as this one.
const HighestLatencyNs = 3_600_000_000_000

const (
	causesKept      = 20
	firstCharacters = 300
	shardCount      = 4
)

// Counts of operations by how they ended.
type Counts struct {
	Ops     int64 `json:"ops"`
	OK      int64 `json:"ok"`
	Failed  int64 `json:"failed"`
	Unknown int64 `json:"unknown"`
	Hits    int64 `json:"hits"`
	Misses  int64 `json:"misses"`
	Wrong   int64 `json:"wrong"`
}

func (c *Counts) add(o Counts) {
	c.Ops += o.Ops
	c.OK += o.OK
	c.Failed += o.Failed
	c.Unknown += o.Unknown
	c.Hits += o.Hits
	c.Misses += o.Misses
	c.Wrong += o.Wrong
}

func (c *Counts) count(outcome Outcome) {
	c.Ops++
	switch outcome {
	case OK:
		c.OK++
	case Hit:
		c.OK++
		c.Hits++
	case Miss:
		c.OK++
		c.Misses++
	case Wrong:
		c.Failed++
		c.Wrong++
	case unknown:
		c.Unknown++
	default:
		c.Failed++
	}
}

// ErrorCount is one cause of errors, with the first one's words.
type ErrorCount struct {
	Cause string `json:"cause"`
	Count int64  `json:"count"`
	First string `json:"first"`
}

type quantiles struct{ p50, p99, max int64 }

// tally holds what a phase counted. Workers spread over its shards, so that they seldom wait for each other.
type tally struct {
	shards [shardCount]shard
	// Read and written by the supervisor only, and by the caller after it has ended.
	sum   Counts
	total *hdrhistogram.Histogram

	mu     sync.Mutex
	causes map[string]*ErrorCount // under mu
}

type shard struct {
	mu       sync.Mutex
	counts   Counts                  // under mu
	interval *hdrhistogram.Histogram // under mu
	spare    *hdrhistogram.Histogram
	_        [64]byte // Shards share no cache line.
}

func newHistogram() *hdrhistogram.Histogram { return hdrhistogram.New(1, HighestLatencyNs, 3) }

func newTally() *tally {
	t := &tally{total: newHistogram(), causes: map[string]*ErrorCount{}}
	for n := range t.shards {
		t.shards[n].interval, t.shards[n].spare = newHistogram(), newHistogram()
	}
	return t
}

func (t *tally) record(worker int, outcome Outcome, latencyNs int64) {
	s := &t.shards[worker%shardCount]
	s.mu.Lock()
	s.counts.count(outcome)
	_ = s.interval.RecordValue(min(max(latencyNs, 1), HighestLatencyNs)) // In range, so there is no error.
	s.mu.Unlock()
}

func (t *tally) blame(cause, text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.causes[cause] == nil && len(t.causes) >= causesKept {
		cause = "other"
	}
	known := t.causes[cause]
	if known == nil {
		if characters := []rune(text); len(characters) > firstCharacters {
			text = string(characters[:firstCharacters])
		}
		known = &ErrorCount{Cause: cause, First: text}
		t.causes[cause] = known
	}
	known.Count++
}

// takeInterval returns counts and quantiles since the call before. Workers wait only while histograms are swapped.
func (t *tally) takeInterval() (Counts, quantiles) {
	var counts Counts
	merged := newHistogram()
	for n := range t.shards {
		s := &t.shards[n]
		s.mu.Lock()
		counts.add(s.counts)
		s.counts = Counts{}
		s.interval, s.spare = s.spare, s.interval
		s.mu.Unlock()
		merged.Merge(s.spare)
		s.spare.Reset()
	}
	t.sum.add(counts)
	t.total.Merge(merged)
	return counts, quantiles{merged.ValueAtQuantile(50), merged.ValueAtQuantile(99), merged.Max()}
}

func (t *tally) counts() Counts { return t.sum }

// encoded is the histogram of the whole phase in HdrHistogram's V2 format, deflated, base64.
func (t *tally) encoded() string {
	text, err := t.total.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
	if err != nil {
		panic(err) // Writing to memory does not fail.
	}
	return string(text)
}

func (t *tally) errors() []ErrorCount {
	t.mu.Lock()
	defer t.mu.Unlock()
	found := make([]ErrorCount, 0, len(t.causes))
	for _, each := range t.causes {
		found = append(found, *each)
	}
	sort.Slice(found, func(a, b int) bool {
		return found[a].Count > found[b].Count || found[a].Count == found[b].Count && found[a].Cause < found[b].Cause
	})
	return found
}

// panicked is what NextOp threw.
type panicked struct{ value any }

func (p panicked) Error() string { return fmt.Sprint(p.value) }

// cause names the type of the innermost error.
func cause(err error) string {
	if _, is := err.(panicked); is {
		return "panic"
	}
	for {
		inner, wraps := err.(interface{ Unwrap() error })
		if !wraps || inner.Unwrap() == nil {
			break
		}
		err = inner.Unwrap()
	}
	name := reflect.TypeOf(err).String()
	if name == "*errors.errorString" || name == "*fmt.wrapError" || name == "syscall.Errno" {
		return firstWords(err.Error())
	}
	return strings.TrimPrefix(name, "*")
}

func firstWords(text string) string {
	if len(text) > 40 {
		return text[:40]
	}
	return text
}
