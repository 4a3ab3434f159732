package store

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	inflight "stepladder/inflight"
	"stepladder/inflight/internal/plan"
)

// connectionsMax bounds the pool: go-redis has one operation in flight on each connection.
const connectionsMax = 1000

type redisStore struct {
	client *redis.Client
	member *inflight.Member
}

func connectRedis(ctx context.Context, p plan.Plan) (Store, error) {
	options, err := redis.ParseURL(p.Target)
	if err != nil {
		return nil, err
	}
	trusted, err := trust(p)
	if err != nil {
		return nil, err
	}
	if trusted != nil {
		// The URL has set the name that the certificate must carry.
		trusted.ServerName = options.TLSConfig.ServerName
		options.TLSConfig = trusted
	}
	if inFlight, is := p.InFlight.(int64); is {
		options.PoolSize = int(min(inFlight, connectionsMax))
	}
	options.DialTimeout = ConnectTimeout
	timeout := time.Duration(p.TimeoutMs) * time.Millisecond
	options.ReadTimeout, options.WriteTimeout = timeout, timeout
	// A command that was sent twice would count once.
	options.MaxRetries = -1
	options.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	client := redis.NewClient(options)
	info, err := client.Info(ctx, "server").Result()
	if err != nil {
		return nil, err
	}
	store := &redisStore{client: client}
	if _, after, found := strings.Cut(info, "redis_version:"); found {
		version, _, _ := strings.Cut(after, "\r\n")
		store.member = &inflight.Member{Version: version}
	}
	return store, nil
}

func (r *redisStore) Get(ctx context.Context, key string) (any, error) {
	value, err := r.client.Get(ctx, key).Result()
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	return value, err
}

func (r *redisStore) Set(ctx context.Context, key, value string) error {
	return r.client.Set(ctx, key, value, 0).Err()
}

func (r *redisStore) Delete(ctx context.Context, key string) error {
	return r.client.Del(ctx, key).Err()
}

// IsUnknown holds for a connection that broke or timed out; one that was refused never sent the command.
func (r *redisStore) IsUnknown(err error) bool {
	var network *net.OpError
	if errors.As(err, &network) && network.Op == "dial" || errors.Is(err, redis.ErrPoolTimeout) {
		return false
	}
	return errors.As(err, &network) || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}

func (r *redisStore) Client() inflight.Client {
	return inflight.Client{Name: "go-redis", Version: redis.Version()}
}

func (r *redisStore) Member() *inflight.Member { return r.member }

func (r *redisStore) Close() { _ = r.client.Close() }
