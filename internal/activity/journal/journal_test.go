package journal

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/activity"
	"github.com/eventyard/eventyard/internal/storage/disk"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/eventlog/logtest"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

// fixture is a journal on the real engine, in memory and with faults.
type fixture struct {
	t         *testing.T
	fs        *vfs.Mem
	engine    *logtest.Faulty
	published []string // types of events
	*Journal
	notes activity.Notes
}

func newFixture(t *testing.T) *fixture {
	f := &fixture{t: t, fs: vfs.NewMem()}
	f.open()
	t.Cleanup(func() { _ = f.engine.Close() })
	return f
}

func (f *fixture) open() {
	f.engine = logtest.NewFaulty(testkit.Value(disk.Open(disk.Config{FS: f.fs, Log: testkit.Quiet()}))(f.t))
	f.Journal = testkit.Value(New(Config{Engine: f.engine, Node: "n1", Log: testkit.Quiet(), Publish: f.publish}))(f.t)
	f.notes = f.Note
}

func (f *fixture) publish(_ context.Context, events [][]byte) error {
	for _, text := range events {
		var e published
		testkit.Must(f.t, json.Unmarshal(text, &e))
		f.published = append(f.published, e.EventType)
	}
	return nil
}

// kinds gives those of a page, the newest first.
func (f *fixture) kinds(q Query) (kinds []string) {
	f.t.Helper()
	found, _, err := f.Page(f.t.Context(), q)
	testkit.Must(f.t, err)
	for _, r := range found {
		kinds = append(kinds, string(r.Kind))
	}
	return kinds
}

// V5: what is noted is there after a restart, with who, where and when, and is published once.
func TestWhatIsNotedIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		stop := testkit.Run(t, f.Run)
		began := time.Now()
		f.notes.Note(activity.By(t.Context(), "till", "192.0.2.1"), activity.Entry{Kind: "hub.created", Object: "hubs/orders"})
		f.notes.Note(t.Context(), activity.Entry{Kind: activity.CircuitOpened, Object: "circuits/mail"})
		f.notes.Note(t.Context(), activity.Entry{Kind: activity.ProbationBegan, Object: "topics/yard-events/subscriptions/s", Silent: true})
		synctest.Wait()
		stop()
		testkit.Slices(t, f.published, []string{"Eventyard.HubCreated"}, "what something else tells of, or would lead to the next, is not published")
		testkit.Must(t, f.engine.Close())
		f.open()
		found, next, err := f.Page(t.Context(), Query{Kinds: []string{"hub"}})
		testkit.Must(t, err)
		testkit.Equal(t, next, 0, "the next page")
		testkit.Deep(t, found, []Recorded{{Number: 0, Entry: activity.Entry{
			At: began.UTC().Round(0), Kind: "hub.created", Object: "hubs/orders", By: "till", Address: "192.0.2.1", Node: "n1",
		}}})
		testkit.Slices(t, f.kinds(Query{}), []string{"probation.began", "circuit.opened", "hub.created"})
	})
}

// V5: while the storage takes nothing, notes are made without waiting; what there is no room for is counted,
// and said when there is.
func TestWhatIsDroppedIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		f.engine.Fail(eventlog.ErrNoSpace, logtest.OpSubmit)
		stop := testkit.Run(t, f.Run)
		began := time.Now()
		for i := range maxQueued + 10 {
			f.notes.Note(t.Context(), activity.Entry{Kind: "hub.created", Object: "hubs/h" + strconv.Itoa(i)})
		}
		testkit.Equal(t, time.Since(began), 0, "the time that notes took")
		time.Sleep(time.Minute)
		testkit.Equal(t, len(f.kinds(Query{})), 0, "entries of a full disk")
		f.engine.Fail(nil, logtest.OpSubmit)
		time.Sleep(time.Minute)
		stop()
		found, _, err := f.Page(t.Context(), Query{Limit: 1})
		testkit.Must(t, err)
		testkit.Equal(t, found[0].Kind, activity.Dropped)
		testkit.Equal(t, found[0].Count, 10, "of how many it tells")
		testkit.Equal(t, found[0].Number, maxQueued, "how many were kept")
	})
}

// V5: partitions that change their owner at the same time are one entry; of one that moved several times the
// first owner and the last count.
func TestOwnershipIsGathered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		stop := testkit.Run(t, f.Run)
		move := func(group, from, to string, partitions ...string) {
			at := time.Now()
			f.notes.Note(t.Context(), activity.Entry{
				At: at, Kind: activity.OwnershipMoved, Object: "hubs/h/groups/" + group,
				Moves: []activity.Move{{At: at.UTC(), From: from, To: to, Partitions: partitions}},
			})
		}
		began := time.Now().UTC().Round(0)
		for i := range 1024 {
			move("g", "a", "b", strconv.Itoa(i))
		}
		move("g", "b", "c", "10", "9")
		move("other", "", "a", "0")
		time.Sleep(3 * gatherFor)
		stop()
		found, _, err := f.Page(t.Context(), Query{Object: "hubs/h/groups/g"})
		testkit.Must(t, err)
		testkit.Equal(t, len(found), 1, "entries of 1026 moves")
		moves := found[0].Moves
		testkit.Equal(t, len(moves), 2, "moves by owner")
		testkit.Equal(t, len(moves[0].Partitions), 1022, "partitions from a to b")
		testkit.Deep(t, moves[1], activity.Move{At: began, From: "a", To: "c", Partitions: []string{"9", "10"}})
		testkit.Equal(t, len(f.kinds(Query{})), 2, "entries in all")
		testkit.Slices(t, f.published, []string{"Eventyard.OwnershipMoved", "Eventyard.OwnershipMoved"}, "published: one event for each entry")
	})
}

// V5: who reads, and who has left, can be subscribed to as all other changes can.
func TestInstancesArePublished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		stop := testkit.Run(t, f.Run)
		for _, kind := range []activity.Kind{activity.InstanceCame, activity.InstanceWent, activity.InstanceForgotten} {
			f.notes.Note(t.Context(), activity.Entry{Kind: kind, Object: "hubs/h/groups/g/instances/one"})
			synctest.Wait()
		}
		stop()
		testkit.Slices(t, f.published, []string{"Eventyard.InstanceCame", "Eventyard.InstanceWent", "Eventyard.InstanceForgotten"})
	})
}

// V5: who looks at the same keys again and again is noted once in a while.
func TestRevealsAreNotedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		stop := testkit.Run(t, f.Run)
		look := func(by string) {
			f.notes.Note(activity.By(t.Context(), by, ""), activity.Entry{Kind: activity.KeyRevealed, Object: "policies/till"})
		}
		for range 100 {
			look("ann")
		}
		look("bob")
		time.Sleep(revealEvery)
		look("ann")
		synctest.Wait()
		stop()
		testkit.Equal(t, len(f.kinds(Query{})), 3, "entries")
	})
}

// V5: pages go back through all there is, whatever is chosen of it.
func TestPages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		stop := testkit.Run(t, f.Run)
		began := time.Now()
		const entries = 2 * block
		for i := range entries {
			kind := activity.Kind("hub.created")
			if i%100 == 7 {
				kind = activity.BackupTaken
			}
			f.notes.Note(activity.By(t.Context(), fmt.Sprint("p", i%2), ""), activity.Entry{
				At: began.Add(time.Duration(i) * time.Second), Kind: kind, Object: fmt.Sprint("hubs/h", i%10, "/groups/g"),
			})
		}
		synctest.Wait()
		stop()
		all, before := []Recorded(nil), eventlog.Sequence(0)
		for {
			found, next, err := f.Page(t.Context(), Query{Before: before, Limit: 300})
			testkit.Must(t, err)
			all = append(all, found...)
			if before = next; next == 0 {
				break
			}
		}
		testkit.Equal(t, len(all), entries, "entries of all pages")
		for i, r := range all {
			testkit.Equal(t, int(r.Number), entries-1-i, "the number of one")
		}
		count := func(q Query) int { q.Limit = entries; return len(f.kinds(q)) }
		testkit.Equal(t, count(Query{Kinds: []string{"backup"}}), 11, "by family")
		testkit.Equal(t, count(Query{Kinds: []string{"backup.taken", "node"}}), 11, "by kind")
		testkit.Equal(t, count(Query{By: "P1"}), entries/2, "by who did it")
		testkit.Equal(t, count(Query{Object: "hubs/h1"}), 103, "by object")
		testkit.Equal(t, count(Query{Object: "hubs/H1/groups"}), 103, "in other letters")
		testkit.Equal(t, count(Query{Object: "hubs/h"}), 0, "by the beginning of a name")
		testkit.Equal(t, count(Query{Since: began.Add(time.Second), Until: began.Add(4 * time.Second)}), 3, "by time")
	})
}

// V5: a tail gives what comes, or what came behind a number.
func TestTails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		defer testkit.Run(t, f.Run)()
		f.notes.Note(t.Context(), activity.Entry{Kind: "hub.created", Object: "hubs/a"})
		f.notes.Note(t.Context(), activity.Entry{Kind: "hub.created", Object: "hubs/b"})
		synctest.Wait()
		behind := testkit.Value(f.Follow(t.Context(), Query{}, 0))(t)
		defer behind.Close()
		got := testkit.Value(behind.Next(t.Context()))(t)
		testkit.Equal(t, got[0].Object, "hubs/b")
		latest := testkit.Value(f.Follow(t.Context(), Query{Kinds: []string{"hub.deleted"}}, -1))(t)
		defer latest.Close()
		f.notes.Note(t.Context(), activity.Entry{Kind: "hub.deleted", Object: "hubs/c"})
		got = testkit.Value(latest.Next(t.Context()))(t)
		testkit.Equal(t, got[0].Object, "hubs/c")
		ahead := testkit.Value(f.Follow(t.Context(), Query{}, 1000))(t)
		defer ahead.Close()
		testkit.Equal(t, ahead.At(), 3, "where a tail goes on that begins behind the end")
	})
}

// C4: nodes write to one journal, and each reads what all have written.
func TestNodesShareAJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := testkit.Value(disk.Open(disk.Config{FS: vfs.NewMem(), Log: testkit.Quiet()}))(t)
		defer engine.Close()
		nodes := logtest.NewNodes(engine)
		var all []*Journal
		for _, name := range []string{"a", "b"} {
			j := testkit.Value(New(Config{Engine: nodes.Node(), Node: name, Log: testkit.Quiet()}))(t)
			defer testkit.Run(t, j.Run)()
			activity.Notes(j.Note).Note(t.Context(), activity.Entry{Kind: activity.NodeCame, Object: "nodes/" + name})
			synctest.Wait()
			all = append(all, j)
		}
		for _, j := range all {
			found, _, err := j.Page(t.Context(), Query{})
			testkit.Must(t, err)
			testkit.Equal(t, len(found), 2, "entries")
			testkit.That(t, found[0].Node == "b" && found[1].Node == "a", "they are %+v", found)
		}
	})
}

// R2: who may listen to a hub has entries written as he likes, and drives out none of what operators did;
// another group's are kept as well. What is dropped is reported once in a while.
func TestClientsHaveAPartOfTheJournal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		stop := testkit.Run(t, f.Run)
		defer stop()
		f.notes.Note(t.Context(), activity.Entry{Kind: "policy.deleted", Object: "policies/root"})
		for second := range 600 {
			for i := range 20 {
				f.notes.Note(t.Context(), activity.Entry{Kind: activity.InstanceCame, Object: fmt.Sprintf("hubs/orders/groups/loud/instances/%d-%d", second, i)})
			}
			time.Sleep(time.Second)
		}
		f.notes.Note(t.Context(), activity.Entry{Kind: activity.InstanceCame, Object: "hubs/orders/groups/quiet/instances/one"})
		time.Sleep(2 * time.Minute)
		b := testkit.Value(f.partition.Bounds(t.Context()))(t)
		testkit.That(t, b.Bytes < 1<<20, "the journal has %d bytes", b.Bytes)
		testkit.Equal(t, len(f.kinds(Query{Kinds: []string{"policy"}})), 1, "what an operator did")
		testkit.Equal(t, len(f.kinds(Query{Object: "hubs/orders/groups/quiet"})), 1, "of another group")
		reports := len(f.kinds(Query{Kinds: []string{"activity"}}))
		testkit.That(t, reports > 0 && reports <= 12, "it is reported %d times", reports)
	})
}

// R2: names as long as they may be, of all partitions at once, do not stop the journal.
func TestAnEntryThatIsTooLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFixture(t)
		stop := testkit.Run(t, f.Run)
		defer stop()
		for i := range 1024 {
			at := time.Now()
			f.notes.Note(t.Context(), activity.Entry{At: at, Kind: activity.OwnershipMoved, Object: "hubs/orders/groups/loud", Moves: []activity.Move{
				{At: at, From: strings.Repeat("<", 250) + fmt.Sprint(i), To: strings.Repeat(">", 250) + fmt.Sprint(i), Partitions: []string{fmt.Sprint(i)}},
			}})
		}
		time.Sleep(3 * time.Second)
		f.notes.Note(t.Context(), activity.Entry{Kind: "policy.deleted", Object: "policies/root"})
		synctest.Wait()
		testkit.Slices(t, f.kinds(Query{}), []string{"policy.deleted", "ownership.moved"})
		found, _, err := f.Page(t.Context(), Query{Kinds: []string{"ownership"}})
		testkit.Must(t, err)
		testkit.Equal(t, fmt.Sprint(found[0].Count, found[0].Moves == nil), "1024 true")
	})
}
