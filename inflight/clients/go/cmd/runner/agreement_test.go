package main

// What all languages agree on: the files beside ../../../check, which ../../../expected.py and README.md stand for.

import (
	"context"
	"encoding/json"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/HdrHistogram/hdrhistogram-go"

	inflight "stepladder/inflight"
	"stepladder/inflight/internal/plan"
	"stepladder/inflight/internal/store"
	"stepladder/inflight/internal/workload"
)

func read(t *testing.T, name string, into any) {
	t.Helper()
	text, err := os.ReadFile("../../../" + name)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func quietly(t *testing.T, o inflight.Options) inflight.End {
	t.Helper()
	o.OnLine = func(any) {}
	end, err := inflight.Run(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	return end
}

func TestTheFakeGivesTheExpectedHistogramBucketByBucket(t *testing.T) {
	var expected struct {
		Plan    struct{ Total, Warmup int64 }
		Counts  struct{ Ops, Ok, Failed, Unknown int64 }
		Buckets [][2]int64
	}
	read(t, "fake-histogram.json", &expected)
	end := quietly(t, inflight.Options{
		NextOp: fakeOperation, NewClock: fakeClock, TotalOps: expected.Plan.Total, WarmupOps: expected.Plan.Warmup,
	})
	c := expected.Counts
	if want := (inflight.Counts{Ops: c.Ops, OK: c.Ok, Failed: c.Failed, Unknown: c.Unknown}); end.Counts != want {
		t.Errorf("counts are %+v, want %+v", end.Counts, want)
	}
	histogram, err := hdrhistogram.Decode([]byte(end.Latency))
	if err != nil {
		t.Fatal(err)
	}
	var found [][2]int64
	for _, bar := range histogram.Distribution() {
		if bar.Count > 0 {
			found = append(found, [2]int64{bar.From, bar.Count})
		}
	}
	if !reflect.DeepEqual(found, expected.Buckets) {
		t.Errorf("%d buckets differ from the %d expected ones", len(found), len(expected.Buckets))
	}
}

func TestKeysValuesAndKindsAreThoseOfEveryLanguage(t *testing.T) {
	var expected struct {
		Kinds   []string
		Uniform []int `json:"uniform_1000"`
		Zipf    []int `json:"zipf_1000_0.99"`
		Values  map[string]string
	}
	read(t, "vectors.json", &expected)
	made := func(keys string) *workload.Workload {
		p, err := plan.Read(`{"target":"null:","op":"mix","seed":7,"value_bytes":70,"keys":` + keys + `}`)
		if err != nil {
			t.Fatal(err)
		}
		return workload.New(p)
	}
	uniform := made(`{"pattern":"uniform","count":1000}`)
	zipf := made(`{"pattern":"zipf","count":1000,"theta":0.99}`)
	names := map[workload.Kind]string{workload.Get: "get", workload.Set: "set", workload.Delete: "delete"}
	for i := range int64(200) {
		if got := names[uniform.Kind(i)]; got != expected.Kinds[i] {
			t.Errorf("kind of %d is %s, want %s", i, got, expected.Kinds[i])
		}
		if got := uniform.Key(i); got != expected.Uniform[i] {
			t.Errorf("uniform key of %d is %d, want %d", i, got, expected.Uniform[i])
		}
		if got := zipf.Key(i); got != expected.Zipf[i] {
			t.Errorf("zipf key of %d is %d, want %d", i, got, expected.Zipf[i])
		}
	}
	many := made(`{"pattern":"uniform","count":1000000}`)
	for name, value := range expected.Values {
		key, _ := strconv.Atoi(name[1:])
		if got := many.Value(key); got != value {
			t.Errorf("value of %s is %s, want %s", name, got, value)
		}
	}
}

func TestPlansAreReadOrRefusedWithEverythingThatIsWrong(t *testing.T) {
	var plans struct {
		Good []struct {
			Plan  json.RawMessage
			AsRun any `json:"as_run"`
		}
		Bad []struct{ Plan, Message string }
	}
	read(t, "plans.json", &plans)
	for _, each := range plans.Good {
		p, err := plan.Read(string(each.Plan))
		if err != nil {
			t.Errorf("%s is refused: %v", each.Plan, err)
			continue
		}
		text, _ := json.Marshal(p)
		var got any
		_ = json.Unmarshal(text, &got)
		if !reflect.DeepEqual(got, each.AsRun) {
			t.Errorf("%s is run as %s, want %v", each.Plan, text, each.AsRun)
		}
	}
	for _, each := range plans.Bad {
		if _, err := plan.Read(each.Plan); err == nil || err.Error() != each.Message {
			t.Errorf("%s is refused with\n%v, want\n%s", each.Plan, err, each.Message)
		}
	}
	if _, err := plan.Read(`{"target":"null:","variant":"semaphore"}`); err == nil || !strings.Contains(err.Error(), "Java runner only") {
		t.Errorf("a variant is refused with %v", err)
	}
}

// broken returns planted values for some keys.
type broken struct {
	store.Store
	planted map[string]any
}

func (b broken) Get(ctx context.Context, key string) (any, error) {
	if value, is := b.planted[key]; is {
		return value, nil
	}
	return b.Store.Get(ctx, key)
}

func TestAClientThatReturnsAWrongValueOrLengthIsCountedAsWrongAndAMissingOneAsAMiss(t *testing.T) {
	p, err := plan.Read(`{"target":"null:","op":"get","total":400,"warmup":0,"keys":{"pattern":"uniform","count":4},"value_bytes":10}`)
	if err != nil {
		t.Fatal(err)
	}
	w := workload.New(p)
	b := broken{store.NewNull(w), map[string]any{"k0": w.Value(0) + "x", "k1": strings.Repeat("x", 10), "k2": nil}}
	var drawn [4]int64
	for i := range int64(400) {
		drawn[w.Key(i)]++
	}
	end := quietly(t, inflight.Options{NextOp: operation(p, b, w), TotalOps: 400, WarmupOps: -1})
	wrong := drawn[0] + drawn[1]
	want := inflight.Counts{Ops: 400, OK: drawn[2] + drawn[3], Failed: wrong, Hits: drawn[3], Misses: drawn[2], Wrong: wrong}
	if end.Counts != want {
		t.Errorf("counts are %+v, want %+v", end.Counts, want)
	}
	if len(end.Errors) != 1 || end.Errors[0].Cause != "wrong" || end.Errors[0].Count != wrong {
		t.Errorf("errors are %+v", end.Errors)
	}
}
