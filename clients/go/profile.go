package inflight

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"runtime/pprof"
	"sort"
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
	var recorded bytes.Buffer
	switch {
	case kind == "cpu" && file != "":
		if err := pprof.StartCPUProfile(&recorded); err != nil {
			return func(bool) error { return err }
		}
		return func(bool) error {
			pprof.StopCPUProfile()
			return writeStacks(file, &recorded, nil, "cpu", 1000)
		}
	case kind == "alloc" && file != "":
		var before bytes.Buffer
		runtime.GC() // What was allocated becomes visible with a collection.
		_ = pprof.Lookup("allocs").WriteTo(&before, 0)
		return func(isWhole bool) error {
			runtime.GC()
			if err := pprof.Lookup("allocs").WriteTo(&recorded, 0); err != nil {
				return err
			}
			if err := writeStacks(file, bytes.NewBuffer(recorded.Bytes()), &before, "alloc_space", 1); err != nil || !isWhole {
				return err
			}
			return writeHeap(file+".heap.txt", &recorded)
		}
	}
	return func(bool) error { return nil }
}

// writeHeap writes what was alive at the last collection, by the function that allocated it.
func writeHeap(file string, recorded *bytes.Buffer) error {
	p, err := profile.Parse(recorded)
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(heap(p)), 0o600)
}

// heap is a table of bytes, objects and the function that allocated them: of user code where one called for it.
func heap(p *profile.Profile) string {
	objectsAt, bytesAt := -1, -1
	for n, each := range p.SampleType {
		switch each.Type {
		case "inuse_objects":
			objectsAt = n
		case "inuse_space":
			bytesAt = n
		}
	}
	type held struct{ bytes, objects int64 }
	by := map[string]held{}
	for _, sample := range p.Sample {
		if name := allocator(sample); name != "" && objectsAt >= 0 && bytesAt >= 0 && sample.Value[objectsAt] > 0 {
			sum := by[name]
			by[name] = held{sum.bytes + sample.Value[bytesAt], sum.objects + sample.Value[objectsAt]}
		}
	}
	names := make([]string, 0, len(by))
	for name := range by {
		names = append(names, name)
	}
	sort.Slice(names, func(a, b int) bool {
		if by[names[a]].bytes != by[names[b]].bytes {
			return by[names[a]].bytes > by[names[b]].bytes
		}
		return names[a] < names[b]
	})
	var out strings.Builder
	out.WriteString("by function\n")
	for _, name := range names {
		fmt.Fprintf(&out, "%d %d %s\n", by[name].bytes, by[name].objects, name)
	}
	return out.String()
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

// writeStacks writes what was recorded after before as lines of a stack and its weight.
func writeStacks(file string, recorded, before *bytes.Buffer, sampleType string, unit int64) error {
	p, err := profile.Parse(recorded)
	if err == nil && before != nil {
		var old *profile.Profile
		if old, err = profile.Parse(before); err == nil {
			old.Scale(-1)
			p, err = profile.Merge([]*profile.Profile{p, old})
		}
	}
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(stacks(p, sampleType, unit)), 0o644)
}

func stacks(p *profile.Profile, sampleType string, unit int64) string {
	value := -1
	for n, each := range p.SampleType {
		if each.Type == sampleType {
			value = n
		}
	}
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
	names := make([]string, 0, len(weights))
	for name := range weights {
		names = append(names, name)
	}
	sort.Strings(names)
	for _, name := range names {
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
