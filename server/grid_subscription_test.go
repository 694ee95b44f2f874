package server

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/api/eventgrid"

	"github.com/eventyard/eventyard/internal/grid/handshake"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

// oracle answers for endpoints.
type oracle func(ctx context.Context, s topics.Subscription) topics.Agreement

func (o oracle) Validate(ctx context.Context, s topics.Subscription, _, _, _ string) topics.Agreement {
	return o(ctx, s)
}

// definitions is a yard that has nothing but them, and its log.
func definitions(t *testing.T, answer oracle) (*yard, *testkit.Buffer) {
	t.Helper()
	text := &testkit.Buffer{}
	quiet := slog.New(slog.DiscardHandler)
	engine, err := disk.Open(disk.Config{FS: vfs.NewMem(), Log: quiet})
	testkit.Must(t, err)
	t.Cleanup(func() { _ = engine.Close() })
	store := metatest.NewMemory()
	b, err := broker.Open(t.Context(), broker.Config{Engine: engine, Meta: store, Log: quiet})
	testkit.Must(t, err)
	registry, err := topics.Open(t.Context(), topics.Config{
		Engine: engine, Meta: store, Broker: b, Validate: answer, Log: quiet,
		CheckEndpoint: func(s topics.Subscription) error {
			if strings.Contains(s.Webhook.URL, "10.0.0.1") {
				return fmt.Errorf("address is not allowed")
			}
			return nil
		},
	})
	testkit.Must(t, err)
	y := &yard{topics: handshake.NewRegistry(registry, nil, quiet), cfg: Config{PublicURL: "http://yard"}}
	y.makeTopic(t, "orders")
	return y, text
}

func (y *yard) makeTopic(t *testing.T, name string) {
	t.Helper()
	_, err := y.topics.EnsureTopic(t.Context(), topics.TopicConfig{Topic: topics.Topic{Name: name}})
	testkit.Must(t, err)
}

// ensuring makes configured subscriptions in the background until the test ends.
func (y *yard) ensuring(t *testing.T, log io.Writer, all ...Subscription) {
	t.Helper()
	y.cfg.Subscriptions, y.cfg.Log = all, slog.New(slog.NewTextHandler(log, nil))
	testkit.Run(t, y.ensureSubscriptions)
}

func (y *yard) stateOf(name string) topics.State {
	s, err := y.topics.Find(topics.Source{Topic: "orders"}, name)
	if err != nil {
		return ""
	}
	return s.State
}

// G11: an endpoint may come up after the yard; what is in the way is said once.
func TestAnEndpointThatComesUpLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		up := time.Now().Add(time.Minute)
		y, log := definitions(t, func(context.Context, topics.Subscription) topics.Agreement {
			return topics.Agreement{Agreed: time.Now().After(up), Why: "nobody is there"}
		})
		y.ensuring(t, log, Subscription{Name: "billing", Topic: "orders", Endpoint: new("http://x/")})
		time.Sleep(59 * time.Second)
		testkit.Equal(t, y.stateOf("billing"), "", "it")
		time.Sleep(subscribeAgain + 2*time.Second)
		testkit.Equal(t, y.stateOf("billing"), topics.Active, "it")
		if n := strings.Count(log.String(), "nobody is there"); n != 1 {
			t.Errorf("it was said %d times:\n%s", n, log)
		}
	})
}

// One endpoint that takes its time holds nobody up.
func TestASlowEndpointHoldsNobodyUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y, log := definitions(t, func(ctx context.Context, s topics.Subscription) topics.Agreement {
			if s.Name == "slow" {
				<-ctx.Done()
			}
			return topics.Agreement{Agreed: true}
		})
		y.ensuring(t, log, Subscription{Name: "slow", Topic: "orders", Endpoint: new("http://x/")}, Subscription{Name: "quick", Topic: "orders", Endpoint: new("http://y/")})
		synctest.Wait()
		testkit.Equal(t, y.stateOf("quick"), topics.Active, "the other")
	})
}

// Whoever reads the log of a configured yard finds the link in it.
func TestTheLinkOfAPendingSubscriptionIsLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y, log := definitions(t, func(context.Context, topics.Subscription) topics.Agreement { return topics.Agreement{Awaiting: true} })
		y.ensuring(t, log, Subscription{Name: "billing", Topic: "orders", Endpoint: new("http://x/")})
		synctest.Wait()
		s, err := y.topics.Find(topics.Source{}, "billing")
		if err != nil || s.State != topics.Pending || !strings.Contains(log.String(), "http://yard"+eventgrid.ValidationPath("orders", s.ID, s.Validation.Token)) {
			t.Errorf("%+v, %v\n%s", s, err, log)
		}
	})
}

// What can never work is said as an error, and not tried for ever.
func TestWhatCannotBeConfiguredIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		y, log := definitions(t, func(context.Context, topics.Subscription) topics.Agreement {
			asked++
			return topics.Agreement{Agreed: true}
		})
		y.ensuring(t, log, Subscription{Name: "billing", Topic: "orders", Endpoint: new("http://10.0.0.1/")})
		time.Sleep(time.Hour)
		if text := log.String(); asked != 0 || strings.Count(text, "level=ERROR") != 1 || !strings.Contains(text, "address is not allowed") || strings.Contains(text, "level=WARN") {
			t.Errorf("asked %d times:\n%s", asked, text)
		}
	})
}

// A topic that is made later is waited for.
func TestATopicThatIsMadeLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y, log := definitions(t, func(context.Context, topics.Subscription) topics.Agreement { return topics.Agreement{Agreed: true} })
		y.ensuring(t, log, Subscription{Name: "billing", Topic: "later", Endpoint: new("http://x/")})
		time.Sleep(time.Minute)
		y.makeTopic(t, "later")
		time.Sleep(subscribeAgain)
		synctest.Wait()
		if _, err := y.topics.Find(topics.Source{Topic: "later"}, "billing"); err != nil || strings.Count(log.String(), "level=WARN") != 1 {
			t.Errorf("%v\n%s", err, log)
		}
	})
}
