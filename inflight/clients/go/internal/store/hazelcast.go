package store

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"time"

	hazelcast "github.com/hazelcast/hazelcast-go-client"
	"github.com/hazelcast/hazelcast-go-client/cluster"
	"github.com/hazelcast/hazelcast-go-client/hzerrors"
	"github.com/hazelcast/hazelcast-go-client/logger"
	"github.com/hazelcast/hazelcast-go-client/types"

	inflight "stepladder/inflight"
	"stepladder/inflight/internal/plan"
)

// unknownErrors come after the operation may have been sent: the connection broke or the client's own time ran out.
var unknownErrors = []error{
	hzerrors.ErrTargetDisconnected, hzerrors.ErrIO, hzerrors.ErrSocket, hzerrors.ErrOperationTimeout, hzerrors.ErrTimeout,
	hzerrors.ErrMemberLeft, hzerrors.ErrClientNotActive, hzerrors.ErrHazelcastInstanceNotActive,
	context.Canceled, context.DeadlineExceeded, net.ErrClosed, io.EOF,
}

type hazelcastStore struct {
	client *hazelcast.Client
	m      *hazelcast.Map
	member *inflight.Member
}

func connectHazelcast(ctx context.Context, p plan.Plan) (Store, error) {
	addresses, mapName, _ := strings.Cut(p.Target[strings.Index(p.Target, "://")+3:], "/")
	config := hazelcast.Config{}
	config.Cluster.Name = p.Cluster
	config.Cluster.Network.SetAddresses(strings.Split(addresses, ",")...)
	config.Cluster.Network.ConnectionTimeout = types.Duration(ConnectTimeout)
	config.Cluster.ConnectionStrategy.Timeout = types.Duration(ConnectTimeout)
	config.Cluster.InvocationTimeout = types.Duration(time.Duration(p.TimeoutMs) * time.Millisecond)
	trusted, err := trust(p)
	if err != nil {
		return nil, err
	}
	if trusted != nil {
		// The library takes one name for all members.
		first, _, _ := strings.Cut(addresses, ",")
		trusted.ServerName, _, _ = net.SplitHostPort(first)
		config.Cluster.Network.SSL.Enabled = true
		config.Cluster.Network.SSL.SetTLSConfig(trusted)
	}
	config.Logger.Level = logger.ErrorLevel
	var version atomic.Pointer[inflight.Member]
	config.AddMembershipListener(func(event cluster.MembershipStateChanged) {
		v := event.Member.Version
		version.CompareAndSwap(nil, &inflight.Member{Version: fmt.Sprintf("%d.%d.%d", v.Major, v.Minor, v.Patch)})
	})
	client, err := hazelcast.StartNewClientWithConfig(ctx, config)
	if err != nil {
		return nil, err
	}
	m, err := client.GetMap(ctx, mapName)
	if err != nil {
		return nil, err
	}
	// The listener is told soon after the client has started, but not before.
	for wait := 0; version.Load() == nil && wait < 100; wait++ {
		time.Sleep(10 * time.Millisecond)
	}
	return &hazelcastStore{client, m, version.Load()}, nil
}

func (h *hazelcastStore) Get(ctx context.Context, key string) (any, error) { return h.m.Get(ctx, key) }

func (h *hazelcastStore) Set(ctx context.Context, key, value string) error {
	return h.m.Set(ctx, key, value)
}

func (h *hazelcastStore) Delete(ctx context.Context, key string) error { return h.m.Delete(ctx, key) }

func (h *hazelcastStore) IsUnknown(err error) bool {
	for _, each := range unknownErrors {
		if errors.Is(err, each) {
			return true
		}
	}
	return false
}

func (h *hazelcastStore) Client() inflight.Client {
	return inflight.Client{Name: "hazelcast-go-client", Version: hazelcast.ClientVersion}
}

func (h *hazelcastStore) Member() *inflight.Member { return h.member }

func (h *hazelcastStore) Close() { _ = h.client.Shutdown(context.Background()) }
