package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/eventyard/eventyard/admin"
)

const (
	// keepAge and keepBytes bound what the hub keeps: the last hour is all that residents see.
	keepAge   = "1h"
	keepBytes = 128 << 20 // of each partition
)

// furnish creates what the demo needs in its yard, and gives what its children are told.
func furnish(ctx context.Context, c *admin.Client, cfg Config, desk string) (settings, error) {
	s := settings{Homes: cfg.Homes, Every: cfg.Every, Lease: cfg.Lease, Blobs: cfg.Blobs, Container: container}
	if cfg.Blobs != "" { // an account that other runs may have written to
		s.Container += time.Now().UTC().Format("-20060102-150405")
	}
	steps := []func() error{
		func() error { return createHub(ctx, c, sensorsHub, sensorPartitions, aggregatorGroup, liveGroup) },
		func() error { return createHub(ctx, c, odditiesHub, oddityPartitions, scorer) },
		func() (err error) {
			t, err := c.CreateTopic(ctx, admin.TopicRequest{Name: alarmsTopic})
			if err == nil {
				s.Topic, s.TopicKey = t.Endpoint, t.Keys.Key1
			}
			return err
		},
		func() (err error) {
			s.Connection, err = c.ConnectionString(ctx, admin.ConnectionStringQuery{})
			return err
		},
		func() (err error) {
			if s.Blobs == "" {
				s.Blobs, err = c.ConnectionString(ctx, admin.ConnectionStringQuery{Blob: true})
			}
			return err
		},
	}
	for _, hook := range hooksAtFirst {
		steps = append(steps, func() error { return hook.create(ctx, c, desk) })
	}
	steps = append(steps, func() error { return createScorer(ctx, c, desk) })
	for _, step := range steps {
		if err := step(); err != nil {
			return s, fmt.Errorf("prepare the yard: %w", err)
		}
	}
	return s, nil
}

func createHub(ctx context.Context, c *admin.Client, name string, partitions int, groups ...string) error {
	age, bytes := keepAge, int64(keepBytes)
	if _, err := c.CreateHub(ctx, admin.HubRequest{
		Name: name, Partitions: &partitions, Retention: &admin.RetentionRequest{Age: &age, Bytes: &bytes},
	}); err != nil {
		return err
	}
	for _, group := range groups {
		if _, err := c.CreateGroup(ctx, name, group); err != nil {
			return err
		}
	}
	return nil
}

// hook is a webhook that the parent plays, and which alarms it gets.
type hook struct {
	name  string
	types []string
}

// brokenHook is the one that can be broken.
const brokenHook = "alarm-company"

var (
	hooksAtFirst = []hook{
		{brokenHook, []string{"door.opened", "glass.broken"}},
		{"resident-push", []string{"door.opened", "glass.broken", "co.high"}},
		{"insurance-log", []string{"glass.broken"}},
	}
	// hookWithCarbon comes with the fifth sensor.
	hookWithCarbon = hook{"fire-desk", []string{"co.high"}}
)

func (h hook) create(ctx context.Context, c *admin.Client, desk string) error {
	endpoint, about := desk+"/hooks/"+h.name, "A webhook that the demo plays."
	_, err := c.CreateSubscription(ctx, admin.SubscriptionRequest{
		Name: h.name, Topic: alarmsTopic, Endpoint: &endpoint, Types: h.types, Description: &about,
	})
	return err
}

// scorerBreaker opens the circuit when more than so many events fail within a time, or when the
// scorer is away for all of it. It is shorter than usual, for those who watch.
const scorerBreaker = "50/10s"

func createScorer(ctx context.Context, c *admin.Client, desk string) error {
	endpoint, breaker, batch, delay, retries := desk+"/scorer", scorerBreaker, 20, "20ms", admin.Retries(1)
	_, err := c.CreateFunction(ctx, admin.FunctionRequest{
		Name: scorer, Hub: odditiesHub, Group: scorer, Endpoint: &endpoint, Batch: &batch,
		Retries: &retries, RetryDelay: &delay, Breaker: &breaker, Notify: []string{desk + "/mailbox"},
	})
	return err
}
