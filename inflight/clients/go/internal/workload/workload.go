// Package workload says which key, value and kind operation i has: pure functions of the plan and i, the same in every
// language (../../../README.md).
package workload

import (
	"hash/crc32"
	"math"
	"sort"
	"strconv"
	"sync"

	"stepladder/inflight/internal/plan"
)

// Kind of an operation.
type Kind uint8

// The three kinds.
const (
	Get Kind = iota
	Set
	Delete
)

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// Workload of a plan.
type Workload struct {
	// Names of the keys by number.
	Names   []string
	startOf []uint8
	limits  []uint64 // of the zipf pattern
	plan    plan.Plan
	values  [62]struct {
		once  sync.Once
		value string
	}
}

// New computes the keys of a plan.
func New(p plan.Plan) *Workload {
	w := &Workload{plan: p, Names: make([]string, max(1, p.Keys.Count))}
	w.startOf = make([]uint8, len(w.Names))
	for j := range w.Names {
		w.Names[j] = "k" + strconv.Itoa(j)
		w.startOf[j] = uint8(crc32.ChecksumIEEE([]byte(w.Names[j])) % 62)
	}
	if p.Keys.Pattern == "zipf" {
		w.limits = zipfLimits(len(w.Names), *p.Keys.Theta)
	}
	return w
}

// Kind of operation i.
func (w *Workload) Kind(i int64) Kind {
	switch w.plan.Op {
	case "get":
		return Get
	case "set":
		return Set
	}
	// 40 % get, 40 % set, 20 % delete.
	switch share := draw(w.plan.Seed, 2*i); {
	case share < 1_717_986_918:
		return Get
	case share < 3_435_973_836:
		return Set
	}
	return Delete
}

// Key is the number of operation i's key.
func (w *Workload) Key(i int64) int {
	switch w.plan.Keys.Pattern {
	case "one":
		return 0
	case "uniform":
		return int(uint64(draw(w.plan.Seed, 2*i+1)) * uint64(len(w.Names)) >> 32)
	}
	share := uint64(draw(w.plan.Seed, 2*i+1))
	return sort.Search(len(w.limits), func(j int) bool { return share < w.limits[j] })
}

// Value of key number key. There are only 62 of a length, and each is made once.
func (w *Workload) Value(key int) string {
	start := int(w.startOf[key])
	v := &w.values[start]
	v.once.Do(func() {
		bytes := make([]byte, w.plan.ValueBytes)
		for i := range bytes {
			bytes[i] = alphabet[(i+start)%62]
		}
		v.value = string(bytes)
	})
	return v.value
}

// UnroundedKey is a key that is practically never there: what the replaced benchmark asked for.
func (w *Workload) UnroundedKey(i int64) string {
	return strconv.FormatFloat(float64(draw(w.plan.Seed, 2*i+1))/(1<<32), 'f', -1, 64)
}

// draw is the n-th random number of a seed: counted, so that it does not depend on who draws when.
func draw(seed uint32, n int64) uint32 {
	h := seed + uint32(n)*0x9e3779b9
	h = (h ^ h>>16) * 0x85ebca6b
	h = (h ^ h>>13) * 0xc2b2ae35
	return h ^ h>>16
}

// zipfLimits: key j is drawn when the number is below limits[j] and not below the one before, with a probability
// proportional to 1 / (j + 1)^theta.
func zipfLimits(count int, theta float64) []uint64 {
	sums := make([]float64, count)
	sum := 0.0
	for j := range sums {
		sum += math.Pow(float64(j+1), -theta)
		sums[j] = sum
	}
	limits := make([]uint64, count)
	for j := range limits {
		limits[j] = uint64(sums[j] / sum * (1 << 32))
	}
	limits[count-1] = 1 << 32
	return limits
}
