package deadletter

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/grid/schema"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/testkit"
)

// Letters are gathered for five minutes and then written together, under the name and with the
// fields that Event Grid has. // G8
func TestLettersAreWrittenTogetherAfterFiveMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		defer y.run()()
		sub := y.subscribe("billing", "folder:dead", schema.EventGrid)
		y.die(sub, 1)
		time.Sleep(4 * time.Minute)
		y.die(sub, 2, 3)
		pass(time.Minute - time.Millisecond)
		testkit.MustEqual(t, len(files(t, y.data)), 0, "written before five minutes were over")
		pass(time.Millisecond)
		found := files(t, filepath.Join(y.data, "dead"))
		testkit.MustEqual(t, len(found), 1, "files, want one: %v", found)
		for name := range found {
			if !regexp.MustCompile(`^ORDERS/BILLING/2000/1/1/0/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\.json$`).MatchString(name) {
				t.Errorf("the file is called %s", name)
			}
		}
		all := lettersOf(t, found)
		testkit.MustEqual(t, len(all), 3, "letters")
		for field, want := range map[string]any{
			"id": "e1", "topic": "/topics/orders", "deadLetterReason": "UndeliverableDueToClientError", "deliveryAttempts": 3.0,
			"lastDeliveryOutcome": "NotFound", "publishTime": "2026-01-31T12:00:00.0000000Z",
		} {
			testkit.Equal(t, all[0][field], want, "%s", field)
		}
		counts := y.counts(sub.ID)
		testkit.Slices(t, []int64{counts.Kept, counts.Unwritten}, []int64{3, 0}, "counts")
	})
}

// A target that cannot be written to is tried again; after four hours its letters are given up and
// counted, and the yard still has them. // G8
func TestATargetOutOfReachIsGivenUpAfterFourHours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		testkit.Must(t, os.WriteFile(filepath.Join(y.data, "dead"), nil, 0o600)) // a file where the folder should be
		sub := y.subscribe("billing", "hub:failures", schema.EventGrid)
		y.hubs.fail = errors.New("the hub is gone")
		defer y.run()()
		y.die(sub, 1, 2)
		pass(5*time.Minute + 3*time.Hour + 50*time.Minute)
		counts := y.counts(sub.ID)
		if counts.Dropped != 0 || counts.Unwritten != 2 || counts.Problem == "" || counts.Since.IsZero() {
			t.Fatalf("before four hours: %+v", counts)
		}
		pass(30 * time.Minute)
		counts = y.counts(sub.ID)
		testkit.MustSlices(t, []int64{counts.Dropped, counts.Unwritten, counts.Kept}, []int64{2, 0, 2}, "after four hours")
		// It comes back, and new letters reach it.
		y.hubs.mu.Lock()
		y.hubs.fail = nil
		y.hubs.mu.Unlock()
		y.die(sub, 3)
		pass(20 * time.Minute)
		counts = y.counts(sub.ID)
		if len(y.hubs.sent) != 1 || !strings.Contains(y.hubs.sent[0], `"e3"`) || counts.Problem != "" || !counts.Since.IsZero() {
			t.Fatalf("after it came back: %v, %+v", y.hubs.sent, counts)
		}
	})
}

// Letters that wait when the yard stops are written after the next start; those that were written
// stay written once: a repeat after a crash has the same name. // G8
func TestLettersSurviveARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		stop := y.run()
		sub := y.subscribe("billing", "folder:dead", schema.CloudEvents)
		y.die(sub, 1, 2)
		time.Sleep(time.Minute)
		stop()
		y.reopen()
		stop = y.run()
		pass(5 * time.Minute)
		first := files(t, filepath.Join(y.data, "dead"))
		testkit.MustEqual(t, len(lettersOf(t, first)), 2, "files are %v", first)
		// As after a crash between the file and the note of it.
		testkit.Must(t, y.whole.box(sub.ID).changeState(t.Context(), func(st *state) { st.cut(0) }))
		stop()
		y.reopen()
		defer y.run()()
		pass(5 * time.Minute)
		testkit.Equal(t, len(files(t, filepath.Join(y.data, "dead"))), 1, "the same letters are in")
	})
}

// G8: each write is announced on the yard's own topic, but not those of that topic's own
// subscriptions.
func TestWritesAreAnnounced(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		defer y.run()()
		sub := y.subscribe("billing", "folder:dead", schema.EventGrid)
		y.die(sub, 1)
		own := y.subscribe("own", "folder:dead", schema.EventGrid)
		own.Source.Topic = topics.YardEvents
		y.die(own, 2)
		pass(time.Second)
		testkit.MustEqual(t, len(lettersOf(t, files(t, filepath.Join(y.data, "dead")))), 2, "letters were written")
		testkit.MustEqual(t, len(y.topics.published), 1, "announced: %v", y.topics.published)
		for _, part := range []string{topics.YardEvents + " ", `"eventType":"Microsoft.Storage.BlobCreated"`, `"subscription":"billing"`, `"letters":1`} {
			if !strings.Contains(y.topics.published[0], part) {
				t.Errorf("%s lacks %s", y.topics.published[0], part)
			}
		}
	})
}

// A hub has no blobs: the event about a write there names none, and who reads the hub
// learns the subscription's name.
func TestAWriteToAHubIsAnnouncedWithoutBlobs(t *testing.T) { // G8
	bubble(t, func(t *testing.T, y *yard) {
		defer y.run()()
		sub := y.subscribe("billing", "hub:failures", schema.EventGrid)
		y.die(sub, 1)
		pass(time.Second)
		testkit.MustSlices(t, []any{len(y.topics.published), len(y.hubs.properties)}, []any{1, 1}, "announced")
		reported := y.topics.published[0]
		if !strings.Contains(reported, `"url":"/hubs/failures"`) || strings.Contains(reported, "lob") {
			t.Errorf("announced %s", reported)
		}
		if p := y.hubs.properties[0]; p["subscription"] != sub.ID || p["subscriptionName"] != "billing" {
			t.Errorf("sent with %v", p)
		}
	})
}

// What was kept in the yard alone is written nowhere.
func TestLettersKeptInTheYardAreWrittenNowhere(t *testing.T) {
	bubble(t, func(t *testing.T, y *yard) {
		defer y.run()()
		sub := y.subscribe("billing", "yard", schema.EventGrid)
		y.die(sub, 1)
		time.Sleep(time.Hour)
		page := y.list(sub.ID, Query{})
		if len(page.Letters) != 1 || page.Letters[0].Written != "" || len(files(t, y.data)) != 0 {
			t.Errorf("letters %v, files %v", page.Letters, files(t, y.data))
		}
	})
}

// A deleted subscription's letters go with it.
func TestLettersOfADeletedSubscriptionGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		defer y.run()()
		sub := y.subscribe("billing", "yard", schema.EventGrid)
		y.die(sub, 1)
		y.topics.set(sub.ID, nil)
		synctest.Wait()
		if y.whole.box(sub.ID) != nil {
			t.Error("its box is still there")
		}
		entries := testkit.Value(y.meta.List(t.Context(), entryPrefix))(t)
		testkit.Equal(t, len(entries), 0, "entries are left: %v", entries)
		testkit.Must(t, y.Put(t.Context(), sub, nil)) // one under way meanwhile does no harm
	})
}

// Folders are inside the data folder, or allowed, whatever way the name goes.
func TestFoldersElsewhereAreRefused(t *testing.T) {
	allowed := t.TempDir()
	y := newYard(t, func(c *Config) { c.AllowDirs = []string{allowed} })
	testkit.Must(t, os.Symlink(t.TempDir(), filepath.Join(y.data, "link")))
	testkit.Must(t, os.Symlink(filepath.Join(t.TempDir(), "not yet"), filepath.Join(y.data, "nowhere")))
	for dir, ok := range map[string]bool{
		"dead": true, "a/b/../c": true, filepath.Join(y.data, "x"): true, allowed: true, filepath.Join(allowed, "y"): true,
		"..": false, "../elsewhere": false, "a/../../b": false, "/etc": false, ".": false, "": false, "link": false, "link/x": false, "nowhere": false, "nowhere/x": false, "log": false, "LOG/x": false,
		"journal": false, "blobs/x": false, filepath.Join(allowed, "..", "other"): false,
	} {
		err := y.cfg.CheckTarget(topics.Target{Kind: topics.TargetFolder, Where: dir})
		testkit.Equal(t, (err == nil), ok, "folder %q: %v", dir, err)
		if err != nil && !errors.Is(err, topics.ErrInvalid) {
			t.Errorf("folder %q: %v is not ErrInvalid", dir, err)
		}
	}
}
