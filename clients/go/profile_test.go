package inflight

import (
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
