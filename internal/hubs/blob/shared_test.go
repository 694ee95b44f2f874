package blob

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

// sharing is two nodes over one store and one set of bodies.
type sharing struct {
	t           *testing.T
	mem         *vfs.Mem
	meta        *metatest.Memory
	here, there *Service
	tends       bool // there
	began       time.Time
}

func newSharing(t *testing.T) *sharing {
	t.Helper()
	y := &sharing{t: t, mem: vfs.NewMem(), meta: metatest.NewMemory(), tends: true, began: time.Now()}
	open := func(tends func() bool) *Service {
		s, err := Open(Config{Meta: metatest.NewLateNode(y.meta), Bodies: files{y.mem}, Tends: tends, Log: testkit.Quiet()})
		testkit.Must(t, err)
		return s
	}
	y.here, y.there = open(func() bool { return false }), open(func() bool { return y.tends })
	testkit.Must(t, testkit.Err(y.here.CreateContainer(t.Context(), box, nil)))
	return y
}

func (y *sharing) put(name string, body []byte) {
	y.t.Helper()
	testkit.Must(y.t, testkit.Err(y.here.Put(y.t.Context(), in(name), bytes.NewReader(body), Content{}, Conditions{})))
}

// sweep has both nodes do what Run does.
func (y *sharing) sweep() {
	y.here.tend(y.t.Context())
	y.there.tend(y.t.Context())
}

func (y *sharing) want(count int, what string) {
	y.t.Helper()
	testkit.Equal(y.t, len(testkit.Value(y.mem.List("."))(y.t)), count, "bodies %s", what)
}

// C2, P8: to clients all nodes are one account. What was written through one is read through another at
// once, in lists too, and changed there on condition that it is that.
func TestNodesAreOneAccount(t *testing.T) {
	y := newSharing(t)
	ctx := t.Context()
	wantList := func(names ...string) {
		t.Helper()
		page := testkit.Value(y.there.List(ctx, box, ListQuery{}))(t)
		var got []string
		for _, b := range page.Blobs {
			got = append(got, b.Name)
		}
		testkit.Slices(t, got, names, "listed at the other node")
	}
	for i, name := range []string{"b", "b", "c"} {
		first := testkit.Value(y.here.Put(ctx, in(name), bytes.NewReader(noise(uint64(i), 10)), Content{}, Conditions{}))(t)
		testkit.That(t, bytes.Equal(testkit.Value(readAll(ctx, y.there, in(name)))(t), noise(uint64(i), 10)), "another node has something else")
		testkit.Must(t, testkit.Err(y.there.Put(ctx, in(name), bytes.NewReader(noise(9, 10)), Content{}, Conditions{IfMatch: first.ETag})))
		testkit.That(t, bytes.Equal(testkit.Value(readAll(ctx, y.here, in(name)))(t), noise(9, 10)), "the first node has something else")
	}
	wantList("b", "c")
	testkit.Must(t, y.here.Delete(ctx, in("b"), Conditions{}))
	wantList("c")
	other := Path{Account: "a", Container: "other"}
	testkit.Must(t, testkit.Err(y.here.CreateContainer(ctx, other, nil)))
	testkit.ErrorIs(t, testkit.Err(y.there.CreateContainer(ctx, other, nil)), ErrContainerExists)
	containers, _, err := y.there.Containers(ctx, "a", ListQuery{})
	testkit.Must(t, err)
	testkit.Equal(t, len(containers), 2, "containers at the other node")
	testkit.Must(t, y.here.DeleteContainer(ctx, other, Conditions{}))
	testkit.ErrorIs(t, testkit.Err(y.there.SetContainerMetadata(ctx, other, nil, Conditions{})), ErrContainerNotFound)
}

// C4: what was replaced through one node can be read to its end at another, and goes an hour later.
func TestSharedBodiesOutliveTheirNames(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newSharing(t)
		y.put("b", noise(1, large))
		testkit.Must(t, y.there.meta.Fresh(t.Context(), ""))
		reading := testkit.Value(y.there.Open(t.Context(), in("b"), Conditions{}))(t)
		defer reading.Close()
		y.put("b", noise(2, large))
		y.sweep()
		time.Sleep(59 * time.Minute)
		y.sweep()
		y.want(2, "within the hour")
		var got bytes.Buffer
		testkit.Must(t, reading.WriteRange(t.Context(), &got, 0, reading.Bytes))
		testkit.That(t, bytes.Equal(got.Bytes(), noise(1, large)), "what was replaced cannot be read")
		reading.Close()
		time.Sleep(2 * time.Minute)
		y.sweep()
		y.want(1, "after the hour")
		testkit.Must(t, y.there.meta.Fresh(t.Context(), ""))
		testkit.That(t, bytes.Equal(testkit.Value(readAll(t.Context(), y.there, in("b")))(t), noise(2, large)), "what is named is gone")
	})
}

// C4: only the node that tends removes anything, and one that begins to tend waits for an hour.
func TestOneNodeTends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newSharing(t)
		y.put("b", noise(1, large))
		testkit.Must(t, y.here.Delete(t.Context(), in("b"), Conditions{}))
		y.sweep()
		y.tends = false
		for range 5 {
			time.Sleep(time.Hour)
			y.sweep()
		}
		y.want(1, "while nobody tends")
		y.tends = true
		y.sweep()
		y.want(1, "when it begins")
		time.Sleep(time.Hour)
		y.sweep()
		y.want(0, "after the hour")
	})
}

// slowly reads a body that takes hours to come, after its first bytes.
type slowly struct {
	io.Reader
	wait time.Duration
}

func (r *slowly) Read(p []byte) (int, error) {
	time.Sleep(r.wait)
	return r.Reader.Read(p)
}

// C4: a body whose upload another node cannot see is not lost with a good answer: where it took so
// long that it was swept, the writer says so.
func TestASweepUnderASlowUploadElsewhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newSharing(t)
		answer := make(chan error, 1)
		go func() {
			body := io.MultiReader(bytes.NewReader(noise(1, large)), &slowly{bytes.NewReader(noise(2, 10)), 3 * time.Hour})
			_, err := y.here.Put(t.Context(), in("slow"), body, Content{}, Conditions{})
			answer <- err
		}()
		for range 8 { // the last sweeps come before it is named, and remove what was stored
			time.Sleep(50 * time.Minute)
			y.there.tend(t.Context())
		}
		err := <-answer
		_, readErr := readAll(t.Context(), y.here, in("slow"))
		testkit.That(t, err != nil || readErr == nil, "it was acknowledged and cannot be read: %v", readErr)
		testkit.That(t, err != nil, "the test shows nothing: the body was not swept")
	})
}

// slowList is a store in which reading containers, the last that a sweep reads, takes a while.
type slowList struct {
	meta.Store
	wait time.Duration
}

func (s slowList) List(ctx context.Context, prefix string) ([]meta.Entry, error) {
	if prefix == containersPrefix {
		time.Sleep(s.wait)
	}
	return s.Store.List(ctx, prefix)
}

// C4: a body that is named at one node while a sweep of another has read the entries already, and has
// not removed anything yet, is there, or its writer is told that it may not be.
func TestASweepWhileItsBodyIsNamedElsewhere(t *testing.T) {
	for _, tt := range []struct {
		name     string
		upload   time.Duration
		accepted bool
	}{
		{"before the sweep", 55 * time.Minute, true},
		{"while it reads, within the grace", 59*time.Minute + 30*time.Second, true},
		{"while it reads, after the grace", 61 * time.Minute, false},
		{"long after", 4 * time.Hour, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				y := newSharing(t)
				answer := make(chan error, 1)
				go func() {
					body := io.MultiReader(bytes.NewReader(noise(1, large)), &slowly{bytes.NewReader(noise(2, 10)), tt.upload / 2})
					_, err := y.here.Put(t.Context(), in("slow"), body, Content{}, Conditions{})
					answer <- err
				}()
				synctest.Wait()
				testkit.Must(t, y.there.Sweep(t.Context())) // what is stored of it has no name
				y.there.meta = slowList{y.there.meta, 5 * time.Minute}
				for _, at := range []time.Duration{57 * time.Minute, 65 * time.Minute, 75 * time.Minute, 5 * time.Hour} {
					time.Sleep(at - time.Since(y.began))
					testkit.Must(t, y.there.Sweep(t.Context()))
				}
				err := <-answer
				testkit.Equal(t, err == nil, tt.accepted, "it is accepted: %v", err)
				if _, readErr := readAll(t.Context(), y.here, in("slow")); err == nil {
					testkit.Must(t, readErr, "it was accepted and cannot be read")
				}
			})
		})
	}
}

func TestConfirm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHeld(testkit.Value(openFiles(vfs.NewMem()))(t), time.Hour)
		w, release, err := h.take(t.Context(), bytes.NewReader(noise(1, large)), InlineBytes)
		testkit.Must(t, err)
		defer release()
		time.Sleep(40 * time.Minute)
		testkit.Must(t, h.confirm(t.Context(), w.began, w.file))
		testkit.Must(t, h.Remove(t.Context(), w.file))
		testkit.ErrorIs(t, h.confirm(t.Context(), w.began, w.file), fs.ErrNotExist)
		testkit.Must(t, h.confirm(t.Context(), time.Now(), w.file)) // it cannot be gone so soon
		testkit.Must(t, newHeld(h.Bodies, 0).confirm(t.Context(), w.began, w.file))
		time.Sleep(20 * time.Minute)
		testkit.ErrorIs(t, h.confirm(t.Context(), w.began), errSlow)
	})
}

func TestOpenWantsOneKindOfBodies(t *testing.T) {
	mem := vfs.NewMem()
	for _, cfg := range []Config{{}, {FS: mem}, {Meta: metatest.NewMemory()}, {Meta: metatest.NewMemory(), FS: mem, Bodies: files{mem}}} {
		_, err := Open(cfg)
		testkit.That(t, err != nil && !errors.Is(err, fs.ErrNotExist), "%+v is taken", cfg)
	}
}
