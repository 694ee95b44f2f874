package runner

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/functions/circuit"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// F1: a definition that is mended, by whatever version, runs.
func TestADefinitionThatIsMended(t *testing.T) {
	inBubble(t, func(t *testing.T, y *yard) {
		y.hub("small", 1)
		k := y.open()
		y.run(k)
		y.create(k, small())
		settle(15 * time.Second)
		good, err := y.meta.Get(t.Context(), "functions/resize")
		testkit.Must(t, err)
		bad, err := y.meta.CompareAndSet(t.Context(), good.Key, good.Revision, []byte("{"))
		testkit.Must(t, err)
		settle(10 * time.Second)
		if f := y.show(k, "resize"); f.State != StateFailing || k.jobs[good.Key].host != nil {
			t.Errorf("unreadable it is %s, with host %v", f.State, k.jobs[good.Key].host)
		}
		_, err = y.meta.CompareAndSet(t.Context(), good.Key, bad, good.Value)
		testkit.Must(t, err)
		y.send("small", "0", "1")
		settle(15 * time.Second)
		testkit.Equal(t, y.program.got("/resize"), "1", "mended it")
	})
}

// F1: who deletes a function is not kept waiting by who makes another of that name the moment it is
// gone, and that one runs.
func TestAFunctionMadeAnewTheMomentItIsGone(t *testing.T) {
	inBubble(t, func(t *testing.T, y *yard) {
		y.hub("small", 1)
		k := y.open()
		y.create(k, small())
		j := &job{key: "functions/resize", poke: make(chan struct{}, 1), done: make(chan struct{})}
		k.jobs[j.key] = j
		marked, err := k.mark(t.Context(), "resize")
		testkit.Must(t, err)
		testkit.Must(t, k.turn(t.Context(), j, marked)) // the definition is removed, and the job has yet to look what comes next
		y.create(k, small())
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		go k.work(ctx, j)
		testkit.Check(t, k.stopped(ctx, marked), "who deletes it hears")
		y.run(k)
		y.send("small", "0", "1")
		settle(15 * time.Second)
		if got := y.program.got("/resize"); got != "1" || len(k.jobs) != 1 {
			t.Errorf("the new one got %q in %d jobs", got, len(k.jobs))
		}
	})
}

// F7: a deletion that was finished by others takes nothing from the next function of that name.
func TestADeletionThatOthersHaveFinished(t *testing.T) {
	y := newYard(t)
	k := y.open()
	g := y.create(k, resize()).group("yard")
	y.trip(g, "resize")
	marked, err := k.mark(t.Context(), "resize")
	testkit.Must(t, err)
	testkit.Must(t, y.open().finish(t.Context(), marked))
	if entries := y.entries(g); len(entries) != 0 {
		t.Fatalf("it has left %v", entries)
	}
	y.trip(g, "resize") // a host of ours that has ended since
	j := &job{key: marked.key, poke: make(chan struct{}, 1), done: make(chan struct{})}
	j.ran = &marked.Definition
	testkit.Must(t, k.turn(t.Context(), j, marked))
	if entries := y.entries(g); len(entries) != 0 {
		t.Fatalf("our host has left %v", entries)
	}
	y.create(k, resize())
	_, err = k.Pause(t.Context(), "resize", "ada", "not yet")
	testkit.Must(t, err)
	testkit.Must(t, k.finish(t.Context(), marked))
	testkit.Equal(t, y.show(k, "resize").State, StatePaused, "the new one")
}

// F1: of several who make the same function at once one does.
func TestCreatingAtOnce(t *testing.T) {
	y := newYard(t)
	var made, refused atomic.Int64
	var wg sync.WaitGroup
	for i := range 8 {
		k := y.open()
		wg.Go(func() {
			d := resize(func(d *Definition) { d.Batch = i + 1 })
			if i%2 == 0 {
				d.Name = "Resize"
			}
			switch _, err := k.Create(t.Context(), d); {
			case err == nil:
				made.Add(1)
			case errors.Is(err, ErrExists):
				refused.Add(1)
			default:
				t.Error(err)
			}
		})
	}
	wg.Wait()
	testkit.That(t, made.Load() == 1 && refused.Load() == 7, "%d made it, %d were refused", made.Load(), refused.Load())
}

func TestEnsuringAtOnce(t *testing.T) {
	y := newYard(t)
	var wg sync.WaitGroup
	for i := range 8 {
		k := y.open()
		wg.Go(func() {
			err := k.Ensure(t.Context(), resize(func(d *Definition) { d.Batch = i + 1 }))
			if err != nil && !errors.Is(err, ErrExists) { // by who came a moment before it was made
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if all, err := y.open().List(t.Context()); err != nil || len(all) != 1 || all[0].Batch < 1 || all[0].Batch > 8 {
		t.Errorf("there are %+v, %v", all, err)
	}
}

// An entry that a host writes while it is removed is removed all the same.
func TestAnEntryThatChangesWhileItIsRemoved(t *testing.T) {
	y := newYard(t)
	k := y.open()
	g := y.create(k, resize()).group("yard")
	y.trip(g, "resize")
	old, err := y.groups.Entries(t.Context(), g, circuit.Prefix)
	testkit.Must(t, err)
	y.trip(g, "resize")
	testkit.Must(t, k.removeEntry(t.Context(), g, old[0]))
	testkit.Must(t, k.removeEntry(t.Context(), g, old[0])) // is gone
	if entries := y.entries(g); len(entries) != 0 {
		t.Errorf("left are %v", entries)
	}
}

var errBroken = errors.New("no such disk")

// "Cannot be read" is never "there is none".
func TestAStoreThatDoesNotAnswer(t *testing.T) {
	y := newYard(t)
	k := y.open()
	y.create(k, resize())
	y.meta.Inject(func(op metatest.Op) error {
		if op.Kind == metatest.OpGet || op.Kind == metatest.OpList {
			return errBroken
		}
		return nil
	})
	testkit.ErrorIs(t, testkit.Err(k.List(t.Context())), errBroken, "list")
	if _, err := k.Show(t.Context(), "resize"); !errors.Is(err, errBroken) || errors.Is(err, ErrNotFound) {
		t.Errorf("show: %v", err)
	}
	testkit.ErrorIs(t, k.Delete(t.Context(), "resize"), errBroken, "delete")
	testkit.ErrorIs(t, k.Ensure(t.Context(), resize()), errBroken, "ensure")
	testkit.ErrorIs(t, testkit.Err(k.ListCircuits(t.Context())), errBroken, "circuits")
	if _, err := Open(t.Context(), Config{Meta: y.meta, Broker: y.broker, Groups: y.groups}); !errors.Is(err, errBroken) {
		t.Errorf("open: %v", err)
	}
	testkit.That(t, testkit.Err(Open(t.Context(), Config{})) != nil, "it opened on nothing")
}

// F5: that holds also for what our own host has left, if it took its time to stop: the entries are
// the next function's by then.
func TestAHostThatStopsAfterTheNextFunctionWasMade(t *testing.T) {
	y := newYard(t)
	k := y.open()
	y.create(k, resize())
	marked, err := k.mark(t.Context(), "resize")
	testkit.Must(t, err)
	testkit.Must(t, y.open().finish(t.Context(), marked)) // another node
	y.create(y.open(), resize())
	_, err = k.Pause(t.Context(), "resize", "ada", "not yet")
	testkit.Must(t, err)
	j := &job{key: marked.key, poke: make(chan struct{}, 1), done: make(chan struct{})}
	j.ran = &marked.Definition
	testkit.Must(t, k.turn(t.Context(), j, marked))
	testkit.Equal(t, y.show(k, "resize").State, StatePaused, "the new one")
}

// Who deletes a function does not wait for the next one of its name.
func TestADeletionDoesNotWaitForTheNextFunction(t *testing.T) {
	inBubble(t, func(t *testing.T, y *yard) {
		y.hub("small", 1)
		k := y.open()
		y.create(k, small())
		y.run(k)
		settle(time.Second)
		marked, err := k.mark(t.Context(), "resize")
		testkit.Must(t, err)
		settle(10 * time.Second) // its job finishes the deletion
		y.create(k, small())
		settle(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		testkit.Check(t, k.stopped(ctx, marked), "who deletes it hears")
	})
}
