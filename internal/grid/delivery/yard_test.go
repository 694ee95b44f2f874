package delivery

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/grid/retrylog"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/hubs/hubstest"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/storage/storagetest"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/egress"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// yard is a grid on a file system in memory. Its service can be killed and started again.
type yard struct {
	*hubstest.Yard
	t      testing.TB
	topics *topics.Registry
	sender *postman
	dead   *graveyard
	// config changes what services are made with; nil: nothing.
	config func(*Config)
	// disk refuses to store; nil: nothing.
	disk *fullDisk
	// jitter is the retry logs'.
	jitter func() float64

	service *Service
	plug    *plug
	end     func()
}

// bubble runs a test in virtual time, with a yard that runs.
func bubble(t *testing.T, test func(t *testing.T, y *yard)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.start()
		test(t, y)
		y.stop()
	})
}

func newYard(t testing.TB) *yard { return newYardOn(t, storagetest.Config{}) }

func newYardOn(t testing.TB, cfg storagetest.Config) *yard {
	t.Helper()
	y := &yard{Yard: hubstest.Open(t, cfg), t: t, sender: newPostman(t), dead: &graveyard{}}
	var err error
	y.topics, err = topics.Open(t.Context(), topics.Config{Engine: y.Engine, Meta: y.Memory, Broker: y.Broker, Log: testkit.Quiet()})
	testkit.Must(t, err)
	testkit.Run(t, y.topics.Run)
	t.Cleanup(y.stop)
	return y
}

// start opens a service and runs it.
func (y *yard) start() {
	y.t.Helper()
	y.open()
	y.run()
}

func (y *yard) open() {
	y.t.Helper()
	y.plug = &plug{}
	plug, disk := y.plug, y.disk
	storage := y.Storage.Node()
	storage.Engine.Inject(func(op logtest.Op) error {
		switch op.Kind {
		case logtest.OpRemove, logtest.OpTrim:
			return plug.check()
		case logtest.OpSubmit:
			return errors.Join(plug.check(), disk.check(op.ID.Log))
		}
		return nil
	})
	storage.Meta.Inject(func(op metatest.Op) error {
		if op.Changes() {
			return plug.check()
		}
		return nil
	})
	waiting, err := retrylog.Open(y.t.Context(), retrylog.Config{Engine: storage.Engine, Meta: storage.Meta, Ladder: retry.Ladder(), Jitter: y.jitter, Log: testkit.Quiet()})
	testkit.Must(y.t, err)
	cfg := Config{
		Meta: storage.Meta, Topics: y.topics, Broker: y.Broker, Sender: plugSender{y.sender, y.plug}, Dead: plugDead{y.dead, y.plug},
		RetryLogs: waiting, Log: testkit.Quiet(),
	}
	if y.config != nil {
		y.config(&cfg)
	}
	y.service, err = Open(y.t.Context(), cfg)
	testkit.Must(y.t, err)
}

func (y *yard) run() { y.end = testkit.Run(y.t, y.service.Run) }

// stop stops the service as it should be.
func (y *yard) stop() {
	if y.end != nil {
		y.end()
	}
}

// kill lets the service die: from now on nothing it does has any effect.
func (y *yard) kill() {
	y.plug.pulled.Store(true)
	y.stop()
}

// reconfigure stops the service and starts another with another configuration.
func (y *yard) reconfigure(change func(*Config)) {
	y.t.Helper()
	y.stop()
	y.config = change
	y.start()
}

func (y *yard) restart() {
	y.kill()
	y.start()
}

func (y *yard) topic(name string) string {
	y.t.Helper()
	testkit.Must(y.t, testkit.Err(y.topics.CreateTopic(y.t.Context(), topics.TopicConfig{Topic: topics.Topic{Name: name}})))
	return name
}

// subscribe makes a subscription of a topic. Its endpoint is http://NAME unless settings say
// otherwise.
func (y *yard) subscribe(topic, name string, change ...func(*topics.Settings)) string {
	y.t.Helper()
	return y.subscribeTo(topics.Source{Topic: topic}, name, change...)
}

// orders makes the topic of that name, and a subscription of it that is at work.
func (y *yard) orders(name string, change ...func(*topics.Settings)) string {
	y.t.Helper()
	y.topic("orders")
	id := y.subscribe("orders", name, change...)
	wait()
	return id
}

func (y *yard) unsubscribe(topic, name string) {
	y.t.Helper()
	testkit.Must(y.t, y.topics.Delete(y.t.Context(), topics.Source{Topic: topic}, name))
}

// lane is a subscription's.
func (y *yard) lane(id string) *lane {
	y.t.Helper()
	l, err := y.service.lane(id)
	testkit.Must(y.t, err)
	return l
}

func (y *yard) subscribeTo(source topics.Source, name string, change ...func(*topics.Settings)) string {
	y.t.Helper()
	s := topics.Settings{Webhook: &egress.Endpoint{URL: "https://" + name + ".example"}, DeadLetter: topics.Target{Kind: "yard"}}
	for _, c := range change {
		if c != nil {
			c(&s)
		}
	}
	sub, err := y.topics.Create(y.t.Context(), source, name, s)
	testkit.Must(y.t, err)
	return sub.ID
}

func (y *yard) change(topic, name string, change func(*topics.Settings)) {
	y.t.Helper()
	y.changeOf(topics.Source{Topic: topic}, name, change)
}

func (y *yard) changeOf(source topics.Source, name string, change func(*topics.Settings)) topics.Subscription {
	y.t.Helper()
	sub, err := y.topics.Update(y.t.Context(), source, name, func(s *topics.Settings) error {
		change(s)
		return nil
	})
	testkit.Must(y.t, err)
	return sub
}

// publish stores events with these ids, as one batch.
func (y *yard) publish(topic string, ids ...string) {
	y.t.Helper()
	events := make([][]byte, len(ids))
	for i, id := range ids {
		events[i] = eventOf(id)
	}
	testkit.Must(y.t, y.topics.Publish(y.t.Context(), topic, events, nil))
}

// eventOf is an event whose type is what stands before a slash of its id, and whose subject is
// all before a colon.
func eventOf(id string) []byte {
	kind, _, _ := strings.Cut(id, "/")
	subject, _, _ := strings.Cut(id, ":")
	return fmt.Appendf(nil, `{"id":%q,"subject":%q,"eventType":%q,"eventTime":"2024-01-01T00:00:00Z","data":{"n":1}}`, id, subject, kind)
}

func (y *yard) stats(id string) Stats {
	y.t.Helper()
	st, err := y.service.Stats(y.t.Context(), id)
	testkit.Must(y.t, err)
	return st
}

func (y *yard) wantStats(id string, are func(Stats) bool) {
	y.t.Helper()
	if st := y.stats(id); !are(st) {
		y.t.Errorf("stats %+v", st)
	}
}

// wantLetter expects one dead letter, for a reason and after so many attempts.
func (y *yard) wantLetter(reason string, attempts int) {
	y.t.Helper()
	letters := y.dead.all()
	if len(letters) != 1 || letters[0].Reason != reason || letters[0].Attempts != attempts {
		y.t.Errorf("dead letters %+v, want one for %s after %d attempts", letters, reason, attempts)
	}
}

func (y *yard) wantEndpoint(id string, want retry.State) {
	y.t.Helper()
	testkit.Equal(y.t, y.stats(id).Endpoint.State, want, "the endpoint of %s", y.lane(id).termsNow().sub.Name)
}

// wantRequests counts those that have ended, of a subscription or (empty) of all.
func (y *yard) wantRequests(sub string, want int, when string) {
	y.t.Helper()
	testkit.Equal(y.t, len(y.sender.all(sub)), want, "requests %s", when)
}

func (y *yard) wantNoMemory(when string) {
	y.t.Helper()
	testkit.Equal(y.t, y.service.budget.used.Load(), 0, "bytes are %s", when)
}

// wait lets everything happen that can happen without time going on.
func wait() { synctest.Wait() }

// after lets time go on.
func after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// ids makes n of them.
func ids(prefix string, n int) []string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf("%s%05d", prefix, i)
	}
	return all
}

// wantIDs compares ids without regard to order or repeats.
func wantIDs(t testing.TB, what string, got, want []string) {
	t.Helper()
	count := make(map[string]int)
	for _, id := range got {
		count[id] |= 1
	}
	for _, id := range want {
		count[id] |= 2
	}
	var missing, extra []string
	for _, id := range slices.Sorted(maps.Keys(count)) {
		switch count[id] {
		case 1:
			extra = append(extra, id)
		case 2:
			missing = append(missing, id)
		}
	}
	if len(missing)+len(extra) > 0 {
		t.Errorf("%s: of %d, %d are missing: %.300v; %d are too many: %.300v", what, len(want), len(missing), missing, len(extra), extra)
	}
}

// plug connects a service to the world, until it is pulled, or its fuse blows.
type plug struct {
	pulled atomic.Bool
	// fuse is how many more changes it lasts; zero: for ever.
	fuse atomic.Int64
}

var errPulled = errors.New("the process is dead")

func (p *plug) check() error {
	if p.fuse.Load() > 0 && p.fuse.Add(-1) == 0 {
		p.pulled.Store(true)
	}
	if p.pulled.Load() {
		return errPulled
	}
	return nil
}
