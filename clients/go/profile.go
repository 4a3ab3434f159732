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

// startProfile begins a profile, if the environment asks for one. What is returned ends it and writes the file.
func startProfile() func() error {
	kind, file, _ := strings.Cut(os.Getenv(profileVariable), ":")
	var recorded bytes.Buffer
	switch {
	case kind == "cpu" && file != "":
		if err := pprof.StartCPUProfile(&recorded); err != nil {
			return func() error { return err }
		}
		return func() error {
			pprof.StopCPUProfile()
			return writeStacks(file, &recorded, nil, "cpu", 1000)
		}
	case kind == "alloc" && file != "":
		runtime.MemProfileRate = allocEveryBytes
		var before bytes.Buffer
		runtime.GC() // What was allocated becomes visible with a collection.
		_ = pprof.Lookup("allocs").WriteTo(&before, 0)
		return func() error {
			runtime.GC()
			if err := pprof.Lookup("allocs").WriteTo(&recorded, 0); err != nil {
				return err
			}
			return writeStacks(file, &recorded, &before, "alloc_space", 1)
		}
	}
	return func() error { return nil }
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
