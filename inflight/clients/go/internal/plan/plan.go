// Package plan reads the one JSON object that says what a runner does.
package plan

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"sort"
	"strings"
)

// Plan with the defaults filled in.
type Plan struct {
	Target     string `json:"target"`
	Op         string `json:"op"`
	ValueBytes int    `json:"value_bytes"`
	// Total counts the operations in all, warm-up included.
	Total  int64 `json:"total"`
	Warmup int64 `json:"warmup"`
	// InFlight is a number or "unlimited".
	InFlight       any    `json:"in_flight"`
	Keys           Keys   `json:"keys"`
	Seed           uint32 `json:"seed"`
	Cluster        string `json:"cluster"`
	TimeoutMs      int64  `json:"timeout_ms"`
	MemoryCapBytes int64  `json:"memory_cap_bytes"`
	// Ca is, over TLS, a PEM file with authorities to trust besides the usual ones.
	Ca string `json:"ca,omitempty"`
	// Insecure accepts, over TLS, any certificate.
	Insecure bool `json:"insecure,omitempty"`
}

// Keys that operations choose from.
type Keys struct {
	Pattern string   `json:"pattern"`
	Count   int      `json:"count,omitempty"`
	Theta   *float64 `json:"theta,omitempty"`
}

// Unlimited tells whether all operations start at once.
func (p Plan) Unlimited() bool { return p.InFlight == "unlimited" }

var targets = []*regexp.Regexp{
	regexp.MustCompile(`^hazelcasts?://[^/,]+:\d+(,[^/,]+:\d+)*/.+$`),
	regexp.MustCompile(`^rediss?://(\[[^\]]+\]|[^/:,]+):\d+(/\d+)?$`),
	regexp.MustCompile(`^null:$`),
	regexp.MustCompile(`^fake:$`),
}

var (
	keysOfPlan = []string{
		"target", "op", "value_bytes", "total", "warmup", "in_flight", "keys", "seed", "cluster", "timeout_ms",
		"memory_cap_bytes", "ca", "insecure", "variant",
	}
	keysOfKeys = []string{"pattern", "count", "theta"}
)

var errNoObject = errors.New(`the plan is not a JSON object; give one, for example {"target":"null:"}`)

// Read reads a plan and fills in the defaults. The error names every mistake.
func Read(text string) (Plan, error) {
	var given object
	if json.Unmarshal([]byte(text), &given) != nil || given == nil {
		return Plan{}, errNoObject
	}
	r := reader{}
	r.known(given, "", keysOfPlan)
	if given["variant"] != nil {
		r.mistakes = append(r.mistakes, `"variant" is for the Java runner only`)
	}
	var p Plan
	isTarget := json.Unmarshal(given["target"], &p.Target) == nil &&
		slices.ContainsFunc(targets, func(form *regexp.Regexp) bool { return form.MatchString(p.Target) })
	if !isTarget {
		r.refuse("target", "hazelcast://HOST:PORT/MAP, redis://HOST:PORT, over TLS hazelcasts:// and rediss://, null: or fake:", given["target"])
	}
	p.Op = r.word("op", given["op"], []string{"get", "set", "mix"}, "get, set or mix")
	p.ValueBytes = int(r.whole("value_bytes", given["value_bytes"], 1, 16_777_216, 3, ""))
	p.Total = r.whole("total", given["total"], 1, 1_000_000_000, 1_000_000, "")
	p.Warmup = r.whole("warmup", given["warmup"], 0, p.Total-1, p.Total/10, "")
	if string(given["in_flight"]) == `"unlimited"` {
		p.InFlight = "unlimited"
	} else {
		p.InFlight = r.whole("in_flight", given["in_flight"], 1, 100_000, 100, ` or "unlimited"`)
	}
	p.Keys = r.keys(given["keys"])
	p.Seed = uint32(r.whole("seed", given["seed"], 0, math.MaxUint32, 1, ""))
	p.Cluster = "dev"
	if raw := given["cluster"]; raw != nil {
		if json.Unmarshal(raw, &p.Cluster) != nil || p.Cluster == "" || isNull(raw) {
			r.refuse("cluster", "a name", raw)
		}
	}
	p.TimeoutMs = r.whole("timeout_ms", given["timeout_ms"], 1, 600_000, 10_000, "")
	p.MemoryCapBytes = r.whole("memory_cap_bytes", given["memory_cap_bytes"], 1<<20, 1<<40, 512<<20, "")
	if raw := given["ca"]; raw != nil {
		if json.Unmarshal(raw, &p.Ca) != nil || p.Ca == "" || isNull(raw) {
			r.refuse("ca", "the path of a PEM file", raw)
		}
	}
	if raw := given["insecure"]; raw != nil {
		if json.Unmarshal(raw, &p.Insecure) != nil || isNull(raw) {
			r.refuse("insecure", "true or false", raw)
		}
	}
	if len(r.mistakes) > 0 {
		return Plan{}, errors.New(strings.Join(r.mistakes, "; "))
	}
	return p, nil
}

type object map[string]json.RawMessage

type reader struct{ mistakes []string }

func (r *reader) keys(raw json.RawMessage) Keys {
	var given object
	if raw != nil && (json.Unmarshal(raw, &given) != nil || given == nil) {
		r.refuse("keys", `an object such as {"pattern":"uniform","count":1000}`, raw)
	}
	r.known(given, "keys.", keysOfKeys)
	k := Keys{Pattern: r.word("keys.pattern", given["pattern"], []string{"one", "uniform", "zipf"}, "one, uniform or zipf")}
	k.Count = int(r.whole("keys.count", given["count"], 1, 1_000_000, 1000, ""))
	theta := 0.99
	if raw := given["theta"]; raw != nil {
		if json.Unmarshal(raw, &theta) != nil || isNull(raw) || theta < 0 || theta > 10 {
			r.refuse("keys.theta", "a number from 0 to 10", raw)
		}
	}
	switch k.Pattern {
	case "one":
		k.Count = 0
	case "zipf":
		k.Theta = &theta
	}
	return k
}

func (r *reader) refuse(name, must string, raw json.RawMessage) {
	got := "but is missing"
	if raw != nil {
		var compact bytes.Buffer
		_ = json.Compact(&compact, raw) // It was parsed before.
		got = "got " + compact.String()
	}
	r.mistakes = append(r.mistakes, fmt.Sprintf(`"%s" must be %s, %s`, name, must, got))
}

func (r *reader) known(given object, prefix string, names []string) {
	var strange []string
	for name := range given {
		if !slices.Contains(names, name) {
			strange = append(strange, name)
		}
	}
	sort.Strings(strange)
	for _, name := range strange {
		all := prefix + strings.Join(names, ", "+prefix)
		r.mistakes = append(r.mistakes, fmt.Sprintf(`unknown key "%s%s"; known are %s`, prefix, name, all))
	}
}

func (r *reader) whole(name string, raw json.RawMessage, least, most, fallback int64, or string) int64 {
	if raw == nil {
		return fallback
	}
	var number float64
	fits := json.Unmarshal(raw, &number) == nil && !isNull(raw)
	if !fits || number != math.Trunc(number) || number < float64(least) || number > float64(most) {
		r.refuse(name, fmt.Sprintf("a whole number from %d to %d%s", least, most, or), raw)
		return fallback
	}
	return int64(number)
}

func (r *reader) word(name string, raw json.RawMessage, words []string, must string) string {
	if raw == nil {
		return words[0]
	}
	var word string
	if json.Unmarshal(raw, &word) != nil || !slices.Contains(words, word) {
		r.refuse(name, must, raw)
		return words[0]
	}
	return word
}

func isNull(raw json.RawMessage) bool { return string(raw) == "null" }
