package groups

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/kafka/groups/classic"
	"github.com/eventyard/eventyard/internal/kafka/groups/member"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// K2: members survive a restart of the coordinator: hearts go on beating, and nobody rebalances. Offsets do, too.
func TestMembersSurviveARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.Hub(t, "orders", 200)
		c, stop := y.start()
		joined := alone(t, c, "g", "orders")
		for _, n := range []int32{0, 127, 128, 199} {
			store(t, c, "g", as(joined), y.partition("orders", n), int64(n)+7)
		}
		stop()
		time.Sleep(time.Hour) // however long it takes
		c, _ = y.start()
		time.Sleep(9 * time.Second)
		testkit.Must(t, beat(t.Context(), c, "g", joined))
		for _, n := range []int32{0, 127, 128, 199} {
			testkit.Equal(t, committed(t, c, "g", y.partition("orders", n)), int64(n)+7, "partition %d", n)
		}
		testkit.Equal(t, committed(t, c, "g", y.partition("orders", 1)), int64(-1), "a partition without commits")
		store(t, c, "g", as(joined), y.partition("orders", 0), 99)
		time.Sleep(11 * time.Second)
		testkit.ErrorIs(t, beat(t.Context(), c, "g", joined), member.ErrUnknown, "after its session")
		testkit.Equal(t, testkit.Value(c.Describe(t.Context(), "g"))(t).State, string(classic.Empty))
		testkit.Equal(t, committed(t, c, "g", y.partition("orders", 0)), int64(99), "an offset of before")
	})
}

// K2: members that nobody hears of after a restart are gone when their session ends, also if nobody asks for the group.
func TestSilentMembersAfterARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.Hub(t, "orders", 1)
		c, stop := y.start()
		alone(t, c, "g", "orders")
		stop()
		c, _ = y.start()
		time.Sleep(11 * time.Second)
		all := testkit.Value(c.List(t.Context()))(t)
		testkit.MustEqual(t, len(all), 1, "groups")
		testkit.Equal(t, all[0].State, string(classic.Empty))
		stored := testkit.Value(decodeEntry(testkit.Value(y.Meta.Get(t.Context(), groupKey("g")))(t)))(t)
		testkit.That(t, !stored.Empty.IsZero(), "the store has it with members")
	})
}

// K2: two members share a group; one that waits hears of the generation when the other has joined.
func TestTwoMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.Hub(t, "orders", 2)
		c, _ := y.start()
		first := alone(t, c, "g", "orders")
		var second classic.Joined
		var waiting sync.WaitGroup
		waiting.Go(func() { second, _ = c.Join(t.Context(), "g", wants("", "orders"), anything) })
		synctest.Wait()
		testkit.ErrorIs(t, beat(t.Context(), c, "g", first), member.ErrRebalancing)
		again := testkit.Value(c.Join(t.Context(), "g", wants(first.Member, "orders"), anything))(t)
		waiting.Wait()
		testkit.Equal(t, again.Generation, first.Generation+1, "generation")
		testkit.Equal(t, second.Generation, again.Generation, "the generation of the other")
		testkit.Equal(t, len(again.Members), 2, "members that the leader hears of")
	})
}

// K2: a coordinator that was replaced and does not know it can store nothing: not an offset, nor a generation. Its
// clients ask who coordinates the group.
func TestAStaleCoordinatorIsFenced(t *testing.T) {
	for name, stale := range map[string]func(y *yard, old *Coordinator, joined classic.Joined) error{
		"an offset in a shard that is there": func(y *yard, old *Coordinator, joined classic.Joined) error {
			_, err := old.Commit(y.t.Context(), "g", as(joined), map[Partition]Position{y.partition("orders", 0): {Offset: 5}})
			return err
		},
		"an offset in a shard that is new": func(y *yard, old *Coordinator, joined classic.Joined) error {
			_, err := old.Commit(y.t.Context(), "g", as(joined), map[Partition]Position{y.partition("bills", 0): {Offset: 5}})
			return err
		},
		"a generation": func(y *yard, old *Coordinator, joined classic.Joined) error {
			_, err := old.Join(y.t.Context(), "g", wants(joined.Member, "orders"), anything)
			return err
		},
		"the end of a member": func(y *yard, old *Coordinator, joined classic.Joined) error {
			_, err := old.Leave(y.t.Context(), "g", []classic.Leaver{{Member: joined.Member}}, anything)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				y := newYard(t)
				y.Hub(t, "orders", 1)
				y.Hub(t, "bills", 1)
				old, _ := y.start()
				joined := alone(t, old, "g", "orders")
				store(t, old, "g", as(joined), y.partition("orders", 0), 3)
				synctest.Wait() // the old one has looked for groups to take over: later it would take this one back
				fresh, _ := y.start(func(c *Config) { c.Node = "there" })
				testkit.Must(t, beat(t.Context(), fresh, "g", joined))
				y.t = t
				testkit.ErrorIs(t, stale(y, old, joined), ErrNotCoordinator)
				testkit.Equal(t, committed(t, fresh, "g", y.partition("orders", 0)), int64(3), "what is stored")
				testkit.Equal(t, committed(t, fresh, "g", y.partition("bills", 0)), int64(-1), "what is stored")
				testkit.Must(t, beat(t.Context(), fresh, "g", joined))
				store(t, fresh, "g", as(joined), y.partition("orders", 0), 4)
			})
		})
	}
}

// K2: a commit that is on its way to the store while another node takes the group over is either there for that
// node, or refused; also where its shard is only about to be made.
func TestACommitMeetsATakeover(t *testing.T) {
	for _, before := range []bool{true, false} {
		t.Run(fmt.Sprint("the shard is there: ", before), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				y := newYard(t)
				y.Hub(t, "orders", 1)
				at := y.partition("orders", 0)
				node := y.Storage.Node()
				old, _ := y.start(func(c *Config) { c.Meta = node.Meta })
				joined := alone(t, old, "g", "orders")
				if before {
					store(t, old, "g", as(joined), at, 3)
				}
				reached, release := make(chan struct{}), make(chan struct{})
				node.Meta.InjectOnce(func(op metatest.Op) bool { return op.Kind == metatest.OpSet && op.Under("kafka/offsets/") }, func(metatest.Op) error {
					close(reached)
					<-release
					return nil
				})
				var err error
				var committing sync.WaitGroup
				committing.Go(func() { _, err = old.Commit(t.Context(), "g", as(joined), map[Partition]Position{at: {Offset: 5}}) })
				<-reached
				fresh, _ := y.start(func(c *Config) { c.Node = "there" })
				testkit.Equal(t, committed(t, fresh, "g", at), map[bool]int64{true: 3, false: -1}[before], "what the new one tells")
				close(release)
				committing.Wait()
				testkit.ErrorIs(t, err, ErrNotCoordinator)
				testkit.Equal(t, committed(t, fresh, "g", at), map[bool]int64{true: 3, false: -1}[before], "what the new one tells later")
			})
		})
	}
}

// K2: commits that come while one is being stored travel together with the next.
func TestCommitsTravelTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.Hub(t, "orders", 1)
		at := y.partition("orders", 0)
		c, _ := y.start()
		store(t, c, "g", nobody, at, 1)
		release := make(chan struct{})
		writes := 0
		y.Meta.Inject(func(op metatest.Op) error {
			if op.Kind == metatest.OpSet && op.Under("kafka/offsets/") {
				if writes++; writes == 1 {
					<-release
				}
			}
			return nil
		})
		var all sync.WaitGroup
		for i := range int64(50) {
			all.Go(func() { store(t, c, "g", nobody, at, 2+i) })
			synctest.Wait()
		}
		close(release)
		all.Wait()
		y.Meta.Inject(nil)
		testkit.Equal(t, writes, 2, "writes")
		testkit.Equal(t, committed(t, c, "g", at), int64(51), "the last one")
	})
}

// K2: what the store did not acknowledge is found out, and what it refuses is told; the group goes on.
func TestTheStoreFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.Hub(t, "orders", 1)
		at := y.partition("orders", 0)
		c, _ := y.start()
		for name, fault := range map[string]error{
			"stored, and not said":     metatest.Unheard(meta.ErrUncertain),
			"not stored, and not said": meta.ErrUncertain,
		} {
			for _, prefix := range []string{"kafka/groups/", "kafka/offsets/"} {
				y.Meta.InjectOnce(func(op metatest.Op) bool { return op.Kind == metatest.OpSet && op.Under(prefix) }, func(metatest.Op) error { return fault })
				group := name + prefix
				store(t, c, group, nobody, at, 9)
				testkit.Equal(t, committed(t, c, group, at), int64(9), group)
			}
		}
		y.Meta.Inject(func(op metatest.Op) error {
			if op.Changes() && op.Under("kafka/") {
				return meta.ErrNoSpace
			}
			return nil
		})
		_, err := c.Join(t.Context(), "full", wants("", "orders"), anything)
		testkit.ErrorIs(t, err, meta.ErrNoSpace)
		_, err = c.Commit(t.Context(), "other", nobody, map[Partition]Position{at: {Offset: 1}})
		testkit.ErrorIs(t, err, meta.ErrNoSpace)
		y.Meta.Inject(nil)
		testkit.Equal(t, committed(t, c, "other", at), int64(-1), "an offset that was refused")
		store(t, c, "other", nobody, at, 1)
		time.Sleep(time.Minute) // in which who was refused is forgotten
		alone(t, c, "full", "orders")
	})
}

// K2: who waits is answered when the coordinator stops, or its own connection does; then it is not a member.
func TestWaitingEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.Hub(t, "orders", 1)
		c, stop := y.start(func(c *Config) { c.InitialDelay = time.Minute })
		ctx, cancel := context.WithCancel(t.Context())
		errs := make(chan error, 2)
		go func() { errs <- testkit.Err(c.Join(ctx, "g", wants("", "orders"), anything)) }()
		synctest.Wait()
		testkit.Equal(t, len(testkit.Value(c.Describe(t.Context(), "g"))(t).Members), 1, "members that wait")
		cancel()
		testkit.ErrorIs(t, <-errs, ErrStopping)
		synctest.Wait()
		testkit.Equal(t, len(testkit.Value(c.Describe(t.Context(), "g"))(t).Members), 0, "members whose connection has ended")
		go func() { errs <- testkit.Err(c.Join(t.Context(), "g", wants("", "orders"), anything)) }()
		synctest.Wait()
		stop()
		testkit.ErrorIs(t, <-errs, ErrStopping)
		testkit.ErrorIs(t, beat(t.Context(), c, "g", classic.Joined{}), ErrStopping)
	})
}

// K2: offsets are kept for seven days after the last member has left, or after the last commit where there was none,
// and not longer.
func TestOffsetsExpire(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.Hub(t, "orders", 1)
		at := y.partition("orders", 0)
		c, _ := y.start()
		joined := alone(t, c, "members", "orders")
		store(t, c, "members", as(joined), at, 1)
		store(t, c, "simple", nobody, at, 2)
		testkit.Must(t, testkit.Err(c.Leave(t.Context(), "members", []classic.Leaver{{Member: joined.Member}}, anything)))
		time.Sleep(3 * 24 * time.Hour)
		store(t, c, "simple", nobody, at, 3)
		time.Sleep(4*24*time.Hour - time.Hour)
		testkit.Equal(t, committed(t, c, "members", at), int64(1), "before")
		time.Sleep(3 * time.Hour)
		testkit.Equal(t, committed(t, c, "members", at), int64(-1), "after")
		testkit.Equal(t, committed(t, c, "simple", at), int64(3), "of one that has committed later")
		time.Sleep(3 * 24 * time.Hour)
		testkit.Equal(t, committed(t, c, "simple", at), int64(-1), "of that one, later")
		testkit.Equal(t, len(testkit.Value(y.Meta.List(t.Context(), "kafka/"))(t)), 0, "entries that are left")
	})
}

// K2: with a hub its offsets are deleted; one that is made anew under its name has none. A commit that meets the
// deletion leaves nothing behind.
func TestOffsetsGoWithTheirHub(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.Hub(t, "orders", 1)
		c, stop := y.start()
		before := y.partition("orders", 0)
		store(t, c, "g", nobody, before, 5)
		testkit.Must(t, y.Broker.DeleteHub(t.Context(), "orders"))
		y.Hub(t, "orders", 1)
		testkit.Equal(t, committed(t, c, "g", y.partition("orders", 0)), int64(-1), "in the new one")
		failed, err := c.Commit(t.Context(), "g", nobody, map[Partition]Position{before: {Offset: 6}, y.partition("orders", 0): {Offset: 1}})
		testkit.Must(t, err)
		testkit.That(t, failed[before] != nil && len(failed) == 1, "what failed: %v", failed)
		stop()
		c, _ = y.start()
		testkit.Slices(t, testkit.Value(c.Logs(t.Context(), "g"))(t), []string{y.partition("orders", 0).Log}, "hubs with offsets")
		for _, e := range testkit.Value(y.Meta.List(t.Context(), "kafka/offsets/"))(t) {
			testkit.That(t, !strings.Contains(e.Key, before.Log), "%s is left", e.Key)
		}
	})
}

// K2: groups are deleted with their offsets, if nobody is in them and there is the right to.
func TestDelete(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.Hub(t, "orders", 1)
		y.Hub(t, "bills", 1)
		c, _ := y.start()
		joined := alone(t, c, "g", "orders")
		for _, hub := range []string{"orders", "bills"} {
			store(t, c, "g", as(joined), y.partition(hub, 0), 5)
		}
		all := func([]string) error { return nil }
		testkit.ErrorIs(t, c.Delete(t.Context(), "g", all), ErrNotEmpty)
		testkit.ErrorIs(t, c.Delete(t.Context(), "other", all), ErrNotFound)
		refused := testkit.Value(c.DeleteOffsets(t.Context(), "g", []Partition{y.partition("orders", 0), y.partition("bills", 0)}))(t)
		testkit.ErrorIs(t, refused[y.partition("orders", 0)], ErrSubscribed)
		testkit.Equal(t, committed(t, c, "g", y.partition("bills", 0)), int64(-1), "of a hub that nobody subscribes to")
		_, err := c.Move(t.Context(), "g", map[Partition]*Position{y.partition("orders", 0): {Offset: 1}})
		testkit.ErrorIs(t, err, ErrNotEmpty)
		testkit.Must(t, testkit.Err(c.Leave(t.Context(), "g", []classic.Leaver{{Member: joined.Member}}, anything)))
		testkit.Must(t, testkit.Err(c.Move(t.Context(), "g", map[Partition]*Position{y.partition("orders", 0): {Offset: 1}})))
		testkit.Equal(t, committed(t, c, "g", y.partition("orders", 0)), int64(1), "moved by an operator")
		var logs []string
		testkit.ErrorIs(t, c.Delete(t.Context(), "g", func(l []string) error { logs = l; return ErrRights }), ErrRights)
		testkit.Equal(t, len(logs), 1, "hubs that a right is needed to: it has no offsets in the other any more")
		testkit.Must(t, c.Delete(t.Context(), "g", all))
		testkit.Equal(t, len(testkit.Value(y.Meta.List(t.Context(), "kafka/"))(t)), 0, "entries that are left")
		testkit.Equal(t, alone(t, c, "g", "orders").Generation, int32(1), "a new one begins anew")
	})
}

// K5: who joins needs a right to its own hubs and to those of the others; who is in it, to its own.
func TestRightsToAGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.Hub(t, "orders", 1)
		y.Hub(t, "bills", 1)
		c, _ := y.start()
		joined := alone(t, c, "g", "orders")
		bills := func(hub string) bool { return hub == "bills" }
		testkit.ErrorIs(t, testkit.Err(c.Join(t.Context(), "g", wants("", "bills"), bills)), ErrRights)
		testkit.ErrorIs(t, testkit.Err(c.Join(t.Context(), "g", wants("", "orders"), bills)), ErrRights)
		testkit.ErrorIs(t, c.Heartbeat(t.Context(), "g", joined.Member, "", joined.Generation, bills), ErrRights)
		testkit.ErrorIs(t, testkit.Err(c.Sync(t.Context(), "g", classic.Sync{Member: joined.Member, Generation: joined.Generation}, bills)), ErrRights)
		testkit.ErrorIs(t, testkit.Err(c.Leave(t.Context(), "g", []classic.Leaver{{Member: joined.Member}}, bills)), ErrRights)
		testkit.ErrorIs(t, testkit.Err(c.Leave(t.Context(), "g", []classic.Leaver{{Instance: "x"}}, bills)), ErrRights)
		testkit.Must(t, beat(t.Context(), c, "g", joined))
	})
}

// K6: groups that nobody uses are forgotten, those that are only asked for are not kept, and there are only so many.
func TestGroupsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.Hub(t, "orders", 1)
		at := y.partition("orders", 0)
		c, _ := y.start(func(c *Config) { c.MaxGroups = 3 })
		for i := range 10 {
			testkit.ErrorIs(t, beat(t.Context(), c, fmt.Sprint("none", i), classic.Joined{}), member.ErrUnknown)
			testkit.Equal(t, committed(t, c, fmt.Sprint("none", i), at), int64(-1), "offset")
		}
		for i := range 3 {
			store(t, c, fmt.Sprint("g", i), nobody, at, 1)
		}
		_, err := c.Commit(t.Context(), "g3", nobody, map[Partition]Position{at: {Offset: 1}})
		testkit.ErrorIs(t, err, ErrBusy)
		time.Sleep(2 * time.Minute) // those are forgotten that nobody is in
		_, err = c.Commit(t.Context(), "g3", nobody, map[Partition]Position{at: {Offset: 1}})
		testkit.ErrorIs(t, err, ErrTooManyGroups)
		store(t, c, "g0", nobody, at, 2)
		testkit.Must(t, c.Delete(t.Context(), "g0", func([]string) error { return nil }))
		store(t, c, "g3", nobody, at, 1)
		for _, id := range []string{"", strings.Repeat("x", member.MaxIDBytes+1)} {
			_, err := c.Commit(t.Context(), id, nobody, map[Partition]Position{at: {Offset: 1}})
			testkit.ErrorIs(t, err, ErrInvalidID)
		}
		failed, err := c.Commit(t.Context(), "g3", nobody, map[Partition]Position{at: {Offset: 1, Metadata: make([]byte, MaxMetadataBytes+1)}})
		testkit.Must(t, err)
		testkit.ErrorIs(t, failed[at], ErrMetadata)
	})
}

// K2: a group is given up when it has become another node's, and taken over when it has come back.
func TestGroupsMoveBetweenNodes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.Hub(t, "orders", 1)
		var mu sync.Mutex
		owner := "here"
		move := func(to string) {
			mu.Lock()
			defer mu.Unlock()
			owner = to
		}
		node := func(name string) *Coordinator {
			c, _ := y.start(func(c *Config) {
				c.Node, c.Several = name, true
				c.Mine = func(string) bool {
					mu.Lock()
					defer mu.Unlock()
					return owner == name
				}
			})
			return c
		}
		here, there := node("here"), node("there")
		joined := alone(t, here, "g", "orders")
		testkit.ErrorIs(t, beat(t.Context(), there, "g", joined), ErrNotCoordinator)
		move("there")
		testkit.ErrorIs(t, beat(t.Context(), here, "g", joined), ErrNotCoordinator)
		testkit.Must(t, beat(t.Context(), there, "g", joined))
		time.Sleep(lookInterval)
		store(t, there, "g", as(joined), y.partition("orders", 0), 8)
		testkit.Equal(t, len(testkit.Value(here.List(t.Context()))(t)), 0, "groups of the one before")
		move("here")
		testkit.Equal(t, committed(t, here, "g", y.partition("orders", 0)), int64(8), "offset")
		testkit.Must(t, beat(t.Context(), here, "g", joined))
		move("there") // whose members are silent then
		time.Sleep(adoptInterval + 15*time.Second)
		all := testkit.Value(there.List(t.Context()))(t)
		testkit.MustEqual(t, len(all), 1, "groups")
		testkit.Equal(t, all[0].State, string(classic.Empty))
	})
}

// K2: a node that loses a group while it is asked does not answer for it, nor removes a member: another may have begun to
// give its partitions away.
func TestANodeThatMayNotActAnswersForNoGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.Hub(t, "orders", 1)
		var left atomic.Int64 // how often the group is still this node's
		left.Store(1 << 40)
		c, _ := y.start(func(c *Config) { c.Mine = func(string) bool { return left.Add(-1) >= 0 } })
		joined := alone(t, c, "g", "orders")
		for what, ask := range map[string]func() error{
			"heartbeat": func() error { return beat(t.Context(), c, "g", joined) },
			"join":      func() error { return testkit.Err(c.Join(t.Context(), "g", wants(joined.Member, "orders"), anything)) },
		} {
			left.Store(1)
			testkit.ErrorIs(t, ask(), ErrNotCoordinator, what)
			left.Store(1 << 40)
			testkit.Must(t, beat(t.Context(), c, "g", joined))
		}
		left.Store(0)
		time.Sleep(time.Minute)
		left.Store(1 << 40)
		testkit.Must(t, beat(t.Context(), c, "g", joined))
	})
}

// K2: whoever makes, uses, looks at and deletes the same groups at once is told what is so: an offset that was
// acknowledged is there unless the group was deleted, and no error is none that clients know.
func TestStorm(t *testing.T) {
	y := newYard(t)
	y.Hub(t, "orders", 1)
	at := y.partition("orders", 0)
	c, _ := y.start()
	var all sync.WaitGroup
	for who := range 8 {
		all.Go(func() {
			for round := range 60 {
				id := fmt.Sprint("g", (who+round)%3)
				var err error
				switch round % 5 {
				case 0, 1:
					_, err = c.Commit(t.Context(), id, nobody, map[Partition]Position{at: {Offset: int64(round)}})
				case 2:
					_, err = c.Offsets(t.Context(), id, at.Log)
				case 3:
					err = beat(t.Context(), c, id, classic.Joined{})
				default:
					err = c.Delete(t.Context(), id, func([]string) error { return nil })
				}
				known := err == nil
				for _, may := range []error{ErrNotFound, ErrNotCoordinator, member.ErrUnknown, meta.ErrConflict} {
					known = known || errors.Is(err, may)
				}
				testkit.That(t, known, "round %d: %v", round, err)
			}
		})
	}
	all.Wait()
	for i := range 3 {
		store(t, c, fmt.Sprint("g", i), nobody, at, 7)
		testkit.Equal(t, committed(t, c, fmt.Sprint("g", i), at), int64(7), "what is committed at last")
	}
}

// K2: any text is a group's id, and comes back from its key.
func FuzzKeys(f *testing.F) {
	for _, id := range []string{"g", "a/b", "100%", "\x00\xff", "größe", "..", "a b", "%2F", "\u0085"} {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		if checkID(id) != nil {
			return
		}
		testkit.Must(t, meta.CheckKey(groupKey(id)))
		testkit.Must(t, meta.CheckKey(shard{strings.Repeat("l", 100), 99}.key(id)))
		testkit.Equal(t, testkit.Value(idOf(groupKey(id)))(t), id)
	})
}

// K6: a full shard, with all that may be said beside its offsets, fits into an entry.
func TestAFullShardFits(t *testing.T) {
	o := offsets{Epoch: 1 << 50, Partitions: make(map[int32]Position)}
	for n := range int32(shardPartitions) {
		o.Partitions[1<<30+n] = Position{Offset: 1 << 62, Epoch: 1 << 30, Time: time.Now(), Metadata: make([]byte, MaxMetadataBytes)}
	}
	testkit.Must(t, meta.CheckValue(encode(o)))
	e := entry{Kind: KindClassic, Epoch: 1 << 50, Write: 1 << 50, Empty: time.Now(), Classic: &classic.Stored{}}
	for n := range maxShards {
		e.Shards = append(e.Shards, shard{strings.Repeat("l", 100), n})
	}
	testkit.That(t, len(encode(e))+member.MaxBytes <= meta.MaxValueBytes, "%d bytes beside the members", len(encode(e)))
	_, err := decodeEntry(meta.Entry{Key: "k", Value: []byte(`{"kind":"newer"}`)})
	testkit.That(t, err != nil, "a kind that is not known is read")
}
