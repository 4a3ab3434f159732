package inflight

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime"
	"runtime/pprof"
	"slices"
	"strings"

	"github.com/google/pprof/profile"
)

// profileVariable asks for a profile of the measured part: cpu:FILE or alloc:FILE. ../README.md describes the file.
const profileVariable = "INFLIGHT_PROFILE"

// init sets the rate before anything that lives is allocated: all samples of a heap are scaled by one rate.
func init() {
	if strings.HasPrefix(os.Getenv(profileVariable), "alloc:") {
		runtime.MemProfileRate = allocEveryBytes
	}
}

// startProfile begins a profile, if the environment asks for one. What is returned ends it and writes the file; of a run
// that was not stopped also what is alive, where allocations are profiled.
func startProfile() func(isWhole bool) error {
	kind, file, _ := strings.Cut(os.Getenv(profileVariable), ":")
	switch {
	case kind == "cpu" && file != "":
		var recorded bytes.Buffer
		if err := pprof.StartCPUProfile(&recorded); err != nil {
			return func(bool) error { return err }
		}
		return func(bool) error {
			pprof.StopCPUProfile()
			p, err := profile.Parse(&recorded)
			if err != nil {
				return err
			}
			return writeStacks(file, p, "cpu", 1000)
		}
	case kind == "alloc" && file != "":
		before, err := allocations()
		if err != nil {
			return func(bool) error { return err }
		}
		before.Scale(-1)
		return func(isWhole bool) error {
			whole, err := allocations()
			if err != nil {
				return err
			}
			measured, err := profile.Merge([]*profile.Profile{whole, before})
			if err != nil {
				return err
			}
			if err := writeStacks(file, measured, "alloc_space", 1); err != nil || !isWhole {
				return err
			}
			return writeHeap(file+".heap.txt", whole)
		}
	}
	return func(bool) error { return nil }
}

// allocations are those since the program began, and what of them is alive.
func allocations() (*profile.Profile, error) {
	runtime.GC() // What was allocated becomes visible with a collection.
	var recorded bytes.Buffer
	if err := pprof.Lookup("allocs").WriteTo(&recorded, 0); err != nil {
		return nil, err
	}
	return profile.Parse(&recorded)
}

// writeHeap writes what was alive at the last collection, by the function that allocated it.
func writeHeap(file string, p *profile.Profile) error {
	table, err := heap(p)
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(table), 0o600)
}

// heap is a table of bytes, objects and the function that allocated them: of user code where one called for it.
func heap(p *profile.Profile) (string, error) {
	objectsAt, bytesAt := valueOf(p, "inuse_objects"), valueOf(p, "inuse_space")
	if objectsAt < 0 || bytesAt < 0 {
		return "", errors.New("the runtime does not tell what is alive")
	}
	type held struct{ bytes, objects int64 }
	by := map[string]held{}
	for _, sample := range p.Sample {
		if name := allocator(sample); name != "" && sample.Value[objectsAt] > 0 {
			sum := by[name]
			by[name] = held{sum.bytes + sample.Value[bytesAt], sum.objects + sample.Value[objectsAt]}
		}
	}
	names := slices.Sorted(maps.Keys(by))
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(by[b].bytes, by[a].bytes) })
	var out strings.Builder
	out.WriteString("by function\n")
	for _, name := range names {
		fmt.Fprintf(&out, "%d %d %s\n", by[name].bytes, by[name].objects, name)
	}
	return out.String(), nil
}

// valueOf is where the samples of a profile hold a figure, or -1.
func valueOf(p *profile.Profile, sampleType string) int {
	return slices.IndexFunc(p.SampleType, func(each *profile.ValueType) bool { return each.Type == sampleType })
}

// allocator is the innermost function of user code, or the innermost of all.
func allocator(sample *profile.Sample) string {
	innermost := ""
	for _, location := range sample.Location {
		for _, line := range location.Line {
			if line.Function == nil {
				continue
			}
			name := line.Function.Name
			if frameKind(name) == "user" {
				return name
			}
			if innermost == "" {
				innermost = name
			}
		}
	}
	return innermost
}

const allocEveryBytes = 32 << 10

// writeStacks writes a profile as lines of a stack and its weight.
func writeStacks(file string, p *profile.Profile, sampleType string, unit int64) error {
	return os.WriteFile(file, []byte(stacks(p, sampleType, unit)), 0o644)
}

func stacks(p *profile.Profile, sampleType string, unit int64) string {
	value := valueOf(p, sampleType)
	weights := map[string]int64{}
	for _, sample := range p.Sample {
		var frames []string
		for n := len(sample.Location) - 1; n >= 0; n-- {
			lines := sample.Location[n].Line
			for m := len(lines) - 1; m >= 0; m-- { // Of inlined functions the last is the caller.
				if function := lines[m].Function; function != nil {
					frames = append(frames, frameKind(function.Name)+":"+strings.NewReplacer(";", " ", " ", "").Replace(function.Name))
				}
			}
		}
		if len(frames) > 0 && value >= 0 {
			weights[strings.Join(frames, ";")] += sample.Value[value]
		}
	}
	var out strings.Builder
	for _, name := range slices.Sorted(maps.Keys(weights)) {
		if weight := weights[name] / unit; weight > 0 {
			fmt.Fprintf(&out, "%s %d\n", name, weight)
		}
	}
	return out.String()
}

// frameKind tells user code from the runtime, its collector and what the kernel does for a system call.
func frameKind(function string) string {
	switch {
	case strings.Contains(function, "syscall.Syscall6") || strings.Contains(function, "syscall.RawSyscall") ||
		function == "runtime.futex" || function == "runtime.epollwait" || function == "runtime.usleep":
		return "kernel"
	case strings.HasPrefix(function, "runtime.gc") || strings.HasPrefix(function, "runtime.bgsweep") ||
		strings.HasPrefix(function, "runtime.bgscavenge") || strings.HasPrefix(function, "runtime.scanobject") ||
		strings.HasPrefix(function, "runtime.greyobject") || strings.HasPrefix(function, "runtime.markroot"):
		return "gc"
	}
	// Packages of the standard library have no dot in their first part.
	first, _, isPath := strings.Cut(function, "/")
	if strings.HasPrefix(function, "main.") || strings.HasPrefix(function, "stepladder/") || isPath && strings.Contains(first, ".") {
		return "user"
	}
	return "runtime"
}
