package inflight

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/google/pprof/profile"
)

func TestAProfileBecomesLinesOfStacksFromTheRoot(t *testing.T) {
	function := func(name string) *profile.Function { return &profile.Function{Name: name} }
	location := func(names ...string) *profile.Location {
		l := &profile.Location{}
		for _, name := range names {
			l.Line = append(l.Line, profile.Line{Function: function(name)})
		}
		return l
	}
	leaf, caller := location("runtime.mallocgc"), location("github.com/x/y.inlined", "github.com/x/y.(*T).Get")
	p := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "samples"}, {Type: "cpu"}},
		Sample: []*profile.Sample{
			{Location: []*profile.Location{leaf, caller}, Value: []int64{1, 3_000_000}},
			{Location: []*profile.Location{leaf, caller}, Value: []int64{1, 2_000_000}},
			{Location: []*profile.Location{location("runtime.gcBgMarkWorker")}, Value: []int64{1, 1_000_000}},
			{Location: []*profile.Location{location("internal/runtime/syscall.Syscall6")}, Value: []int64{1, 1_000_000}},
		},
	}
	want := "gc:runtime.gcBgMarkWorker 1000\n" +
		"kernel:internal/runtime/syscall.Syscall6 1000\n" +
		"user:github.com/x/y.(*T).Get;user:github.com/x/y.inlined;runtime:runtime.mallocgc 5000\n"
	if got := stacks(p, "cpu", 1000); got != want {
		t.Errorf("got\n%s want\n%s", got, want)
	}
}

type keptValue struct{ bytes [24]byte }

// keepValues is named in the heap: what it allocates is alive.
//
//go:noinline
func keepValues(count int) []*keptValue {
	kept := make([]*keptValue, count)
	for n := range kept {
		kept[n] = &keptValue{}
	}
	return kept
}

func TestWhatIsAliveIsNamedByTheFunctionThatAllocatedIt(t *testing.T) {
	was := runtime.MemProfileRate
	runtime.MemProfileRate = allocEveryBytes
	defer func() { runtime.MemProfileRate = was }()
	const count = 1_000_000
	kept := keepValues(count)
	recorded, err := allocations()
	if err != nil {
		t.Fatal(err)
	}
	file := t.TempDir() + "/stacks.heap.txt"
	if err := writeHeap(file, recorded); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(string(text), "\n")
	if lines[0] != "by function" || !strings.Contains(lines[1], "keepValues") {
		t.Fatalf("the largest is not what was planted:\n%s", text)
	}
	var held, objects float64
	if _, err := fmt.Sscan(lines[1], &held, &objects); err != nil {
		t.Fatal(err)
	}
	// The pointers beside them take 8 bytes each, in one object; samples lie 32 KB apart.
	if want := float64(count) * (24 + 8); held < 0.8*want || held > 1.2*want || objects < 0.8*count || objects > 1.2*count {
		t.Errorf("%.0f bytes in %.0f objects of %d values", held, objects, count)
	}
	runtime.KeepAlive(kept)
}

func TestWhatTheRuntimeAllocatedForItselfIsNamedByItsOwnFunction(t *testing.T) {
	line := func(name string) *profile.Location {
		return &profile.Location{Line: []profile.Line{{Function: &profile.Function{Name: name}}}}
	}
	p := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "alloc_space"}, {Type: "inuse_objects"}, {Type: "inuse_space"}},
		Sample: []*profile.Sample{
			{Location: []*profile.Location{line("runtime.malg"), line("runtime.main")}, Value: []int64{9, 1, 500}},
			{Location: []*profile.Location{line("bytes.growSlice"), line("github.com/x/y.Get")}, Value: []int64{9, 2, 800}},
			{Location: []*profile.Location{line("bytes.growSlice"), line("github.com/x/y.Put")}, Value: []int64{9, 0, 0}},
		},
	}
	got, err := heap(p)
	if want := "by function\n800 2 github.com/x/y.Get\n500 1 runtime.malg\n"; err != nil || got != want {
		t.Errorf("got\n%s want\n%s (%v)", got, want, err)
	}
	if _, err := heap(&profile.Profile{SampleType: p.SampleType[:1]}); err == nil {
		t.Error("a profile that tells nothing of what is alive became a table")
	}
}
