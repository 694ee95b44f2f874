package natskv_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
	"github.com/eventyard/eventyard/processor/natskv"
)

func TestTheBucketIsMadeAsAskedAndFoundAgain(t *testing.T) { // P8
	js := dial(t, startServer(t, nil))
	var all sync.WaitGroup // several instances start at once
	for range 4 {
		all.Go(func() {
			testkit.Check(t, testkit.Err(natskv.New(t.Context(), js, natskv.Config{Bucket: "leases", Replicas: 1})))
		})
	}
	all.Wait()
	stream, err := js.Stream(t.Context(), "KV_leases")
	testkit.Must(t, err)
	c := stream.CachedInfo().Config
	if c.Replicas != 1 || c.MaxMsgsPerSubject != 1 || c.Storage != jetstream.FileStorage || c.MaxAge != 0 {
		t.Errorf("the bucket is %+v", c)
	}
}

func TestOnAClusterABucketHasThreeReplicas(t *testing.T) { // P8
	js := dial(t, startCluster(t)...)
	open(t, js, natskv.Config{})
	stream, err := js.Stream(t.Context(), "KV_eventyard")
	if err != nil || stream.CachedInfo().Config.Replicas != 3 {
		t.Errorf("the bucket is %+v, %v", stream.CachedInfo().Config, err)
	}
	if _, err := natskv.New(t.Context(), js, natskv.Config{Replicas: 1}); err == nil {
		t.Error("a bucket of three replicas was taken for one of one")
	}
}

func TestABucketThatWouldLoseRecordsIsRefused(t *testing.T) { // P3
	js := dial(t, startServer(t, nil))
	for name, cfg := range map[string]jetstream.KeyValueConfig{
		"that expires":  {TTL: time.Minute},
		"in memory":     {Storage: jetstream.MemoryStorage},
		"of that name,": {}, // and nothing wrong with it
	} {
		t.Run(name, func(t *testing.T) {
			cfg.Bucket = newBucket()
			testkit.Must(t, testkit.Err(js.CreateKeyValue(t.Context(), cfg)))
			_, err := natskv.New(t.Context(), js, natskv.Config{Bucket: cfg.Bucket})
			if wrong := cfg.TTL != 0 || cfg.Storage != jetstream.FileStorage; (err != nil) != wrong {
				t.Errorf("a bucket %s: %v", name, err)
			}
		})
	}
}

// Names of hubs, groups and partitions may hold what NATS reads as a wildcard.
func TestAnyNameIsLegal(t *testing.T) { // P8
	s := open(t, dial(t, startServer(t, nil)), natskv.Config{})
	groups := []processor.Group{
		{Namespace: "a.b", Hub: "c", Group: "d"}, {Namespace: "a", Hub: "b.c", Group: "d"}, {Namespace: "a", Hub: "*", Group: ">"},
		{Namespace: "", Hub: "größe", Group: "with a space"}, {Namespace: "a", Hub: "*", Group: "*"}, {Namespace: "a", Hub: "=2A", Group: ">"},
	}
	for i, g := range groups {
		won, err := s.Claim(t.Context(), g, []processor.Lease{{Partition: "*", Owner: fmt.Sprint(i), Epoch: 1}, {Partition: "p.1", Epoch: 1}})
		if err != nil || len(won) != 2 {
			t.Fatalf("claim in %+v: %+v, %v", g, won, err)
		}
	}
	for i, g := range groups {
		leases, err := s.Leases(t.Context(), g)
		of := slices.IndexFunc(leases, func(l processor.Lease) bool { return l.Partition == "*" })
		if err != nil || len(leases) != 2 || of < 0 || leases[of].Owner != fmt.Sprint(i) {
			t.Errorf("%+v has leases %+v, %v", g, leases, err)
		}
	}
}

func TestMoreEntriesThanOneAnswerHoldsAreRead(t *testing.T) { // P8
	s := open(t, dial(t, startServer(t, nil)), natskv.Config{})
	const many = 1100 // a server gives 1024
	for i := range many {
		testkit.Must(t, testkit.Err(s.Put(t.Context(), group, processor.Entry{Key: fmt.Sprintf("presence/%d", i), Value: []byte{1}})))
	}
	entries, err := s.Entries(t.Context(), group, "presence/")
	if err != nil || len(entries) != many {
		t.Fatalf("read %d entries, %v", len(entries), err)
	}
	testkit.Must(t, s.Remove(t.Context(), group, entries[0]))
	if entries, err = s.Entries(t.Context(), group, ""); err != nil || len(entries) != many-1 {
		t.Errorf("read %d entries after one was removed, %v", len(entries), err)
	}
}

// Every instance leaves a key behind, so what is left must not stay for ever.
func TestTheMarkOfARemovedEntryExpires(t *testing.T) {
	js := dial(t, startServer(t, nil))
	s := open(t, js, natskv.Config{})
	f, err := s.Put(t.Context(), group, processor.Entry{Key: "presence/a"})
	if err == nil {
		err = s.Remove(t.Context(), group, f)
	}
	testkit.Must(t, err)
	stream, err := js.Stream(t.Context(), "KV_eventyard")
	testkit.Must(t, err)
	last, err := stream.GetMsg(t.Context(), stream.CachedInfo().State.LastSeq)
	if err != nil || !strings.HasSuffix(last.Subject, ".fact.presence.a") || last.Header.Get("Nats-TTL") == "" {
		t.Errorf("the mark is %+v, %v", last, err)
	}
}

func TestAVersionOfAnotherKindOfStoreIsAConflict(t *testing.T) {
	s := open(t, dial(t, startServer(t, nil)), natskv.Config{})
	for _, version := range []processor.Version{"0x8D", "0", "-1", "1.5"} {
		_, err := s.Put(t.Context(), group, processor.Entry{Key: "a", Version: version})
		testkit.ErrorIs(t, err, processor.ErrConflict, "put in version %q", version)
	}
}
