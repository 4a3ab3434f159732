package inflight

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// RuntimeFigures say how fit the runtime was: pauses of the garbage collector and the heap.
type RuntimeFigures struct {
	GCPauseNs    int64 `json:"gc_pause_ns"`
	GCPauseMaxNs int64 `json:"gc_pause_max_ns"`
	GCCount      int64 `json:"gc_count"`
	HeapBytes    int64 `json:"heap_bytes"`
}

// gcSpan gives what the collector did since the call of take before.
type gcSpan struct {
	count int64
	pause time.Duration
}

func (g *gcSpan) take() RuntimeFigures {
	var stats debug.GCStats
	debug.ReadGCStats(&stats)
	collections := stats.NumGC - g.count
	figures := RuntimeFigures{GCPauseNs: int64(stats.PauseTotal - g.pause), GCCount: collections, HeapBytes: heapBytes()}
	// The newest pause comes first; the runtime keeps 256.
	for _, pause := range stats.Pause[:min(collections, int64(len(stats.Pause)))] {
		figures.GCPauseMaxNs = max(figures.GCPauseMaxNs, int64(pause))
	}
	g.count, g.pause = stats.NumGC, stats.PauseTotal
	return figures
}

func heapBytes() int64 {
	sample := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(sample)
	return int64(sample[0].Value.Uint64())
}

func cpuTimes() (userNs, systemNs int64) {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0, 0
	}
	return usage.Utime.Nano(), usage.Stime.Nano()
}

// residentBytes returns the memory that the process holds, and the most it ever held. Without /proc the former is 0.
func residentBytes() (now, peak int64) {
	if text, err := os.ReadFile("/proc/self/statm"); err == nil {
		if fields := strings.Fields(string(text)); len(fields) > 1 {
			pages, _ := strconv.ParseInt(fields[1], 10, 64)
			now = pages * int64(os.Getpagesize())
		}
	}
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err == nil {
		peak = usage.Maxrss * 1024
	}
	return now, max(now, peak)
}
