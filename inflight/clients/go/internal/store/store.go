// Package store has the stores that a runner can benchmark, each behind the same few calls.
package store

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	inflight "stepladder/inflight"
	"stepladder/inflight/internal/plan"
	"stepladder/inflight/internal/workload"
)

// ConnectTimeout is how long connecting may take.
const ConnectTimeout = 10 * time.Second

// Store is one client library, connected.
type Store interface {
	// Get returns nil for a key that is not there.
	Get(ctx context.Context, key string) (any, error)
	Set(ctx context.Context, key, value string) error
	Delete(ctx context.Context, key string) error
	// IsUnknown tells whether the error leaves it open what became of an operation that was sent.
	IsUnknown(err error) bool
	Client() inflight.Client
	Member() *inflight.Member
	Close()
}

// Connect connects to the plan's target.
func Connect(p plan.Plan) (Store, error) {
	ctx, cancel := context.WithTimeout(context.Background(), ConnectTimeout)
	defer cancel()
	switch {
	case strings.HasPrefix(p.Target, "hazelcast:"), strings.HasPrefix(p.Target, "hazelcasts:"):
		return connectHazelcast(ctx, p)
	case strings.HasPrefix(p.Target, "redis:"), strings.HasPrefix(p.Target, "rediss:"):
		return connectRedis(ctx, p)
	}
	return nil, fmt.Errorf("%s is no store", p.Target)
}

// trust is what TLS trusts by a plan; nil without TLS.
func trust(p plan.Plan) (*tls.Config, error) {
	if !strings.HasPrefix(p.Target, "hazelcasts:") && !strings.HasPrefix(p.Target, "rediss:") {
		return nil, nil
	}
	config := &tls.Config{InsecureSkipVerify: p.Insecure}
	if p.Ca == "" {
		return config, nil
	}
	pem, err := os.ReadFile(p.Ca)
	if err != nil {
		return nil, err
	}
	// Where the system has no authorities, the file's are all there are.
	config.RootCAs, err = x509.SystemCertPool()
	if err != nil {
		config.RootCAs = x509.NewCertPool()
	}
	if !config.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s: no certificate in it", p.Ca)
	}
	return config, nil
}

// Null answers at once. Values are copies, so that checking one compares its bytes as it does with a real store.
type Null struct{ copies []any }

// NewNull copies the values of all keys.
func NewNull(w *workload.Workload) *Null {
	made := map[string]any{}
	n := &Null{copies: make([]any, len(w.Names))}
	for key := range n.copies {
		value := w.Value(key)
		if made[value] == nil {
			made[value] = strings.Clone(value)
		}
		n.copies[key] = made[value]
	}
	return n
}

// Get returns the key's value.
func (n *Null) Get(_ context.Context, key string) (any, error) {
	number, err := strconv.Atoi(key[1:])
	if key[0] != 'k' || err != nil {
		return nil, nil
	}
	return n.copies[number], nil
}

// Set does nothing.
func (n *Null) Set(context.Context, string, string) error { return nil }

// Delete does nothing.
func (n *Null) Delete(context.Context, string) error { return nil }

// IsUnknown is false.
func (n *Null) IsUnknown(error) bool { return false }

// Client names no library.
func (n *Null) Client() inflight.Client { return inflight.Client{Name: "null", Version: "1"} }

// Member is none.
func (n *Null) Member() *inflight.Member { return nil }

// Close does nothing.
func (n *Null) Close() {}
