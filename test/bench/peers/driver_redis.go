package main

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"
)

// redisStream is go-redis: XADD in pipelines over a few connections, XREAD in large counts over one.
type redisStream struct{}

const (
	redisConns    = 4
	redisPipeline = 100
	redisCount    = 1_000
)

func (redisStream) dial(p peer) *redis.Client {
	return redis.NewClient(&redis.Options{Addr: p.address("redis"), PoolSize: redisConns})
}

// create does nothing: a stream is there with its first entry.
func (redisStream) create(context.Context, peer, string, int) error { return nil }

func (d redisStream) remove(ctx context.Context, p peer, topic string) error {
	client := d.dial(p)
	defer client.Close()
	return client.Del(ctx, topic).Err()
}

func (redisStream) drains() bool { return false }

type redisProducer struct {
	client *redis.Client
	stream string
	body   []byte
}

func (d redisStream) producer(ctx context.Context, p peer, topic string, l load) (producer, error) {
	one := &redisProducer{d.dial(p), topic, l.body()}
	if err := one.client.Ping(ctx).Err(); err != nil {
		one.close()
		return nil, err
	}
	return one, nil
}

func (p *redisProducer) close() { _ = p.client.Close() }

func (p *redisProducer) send(ctx context.Context, lim limit) (int64, error) {
	// The share of each connection, which is a pipeline at least.
	lim.events = max(lim.events/redisConns, min(lim.events, redisPipeline))
	var acknowledged atomic.Int64
	group, ctx := errgroup.WithContext(ctx)
	for range redisConns {
		group.Go(func() error {
			for c := lim.begin(); c.next(redisPipeline); {
				_, err := p.client.Pipelined(ctx, func(batch redis.Pipeliner) error {
					for range redisPipeline {
						batch.XAdd(ctx, &redis.XAddArgs{Stream: p.stream, Values: []any{"b", p.body}})
					}
					return nil
				})
				if err != nil {
					return err
				}
				acknowledged.Add(redisPipeline)
			}
			return nil
		})
	}
	err := group.Wait()
	return acknowledged.Load(), err
}

func (d redisStream) consume(ctx context.Context, p peer, topic string, _ load, events int64) error {
	client := d.dial(p)
	defer client.Close()
	last := "0"
	for n := int64(0); n < events; {
		answer, err := client.XRead(ctx, &redis.XReadArgs{Streams: []string{topic, last}, Count: redisCount, Block: -1}).Result()
		if err != nil {
			return fmt.Errorf("after %d of %d entries: %w", n, events, err)
		}
		for _, stream := range answer {
			n += int64(len(stream.Messages))
			last = stream.Messages[len(stream.Messages)-1].ID
		}
	}
	return nil
}
