package runner

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

// F1: what no host could ever run is refused, and not found out by a function that fails for ever.
func TestHeadersThatTheYardWrites(t *testing.T) {
	y := newYard(t)
	k := y.open()
	for _, name := range []string{
		"Idempotency-Key", "eventyard-function", "Eventyard-Whatever", "Content-Type", "Accept-Encoding", "Host", "Transfer-Encoding", "ce-id", "",
		"a b", "a:b", "ä",
	} {
		_, err := k.Create(t.Context(), resize(func(d *Definition) { d.Headers = map[string]string{name: "x"} }))
		testkit.That(t, errors.Is(err, ErrInvalid) && strings.Contains(err.Error(), "header"), "%q: %v", name, err)
	}
	for _, value := range []string{"secret\r\nX: y", "secret\x00", "\nsecret"} {
		_, err := k.Create(t.Context(), resize(func(d *Definition) { d.Headers = map[string]string{"X": value} }))
		testkit.That(t, errors.Is(err, ErrInvalid) && !strings.Contains(err.Error(), "secret"), "%q: %v", value, err)
	}
}

// F1: names are parts of paths, which nobody could ask for then.
func TestNamesThatArePaths(t *testing.T) {
	y := newYard(t)
	k := y.open()
	for _, name := range []string{".", "..", "...", "a..b", "a.", "a/b", "a b", "ä", "", strings.Repeat("x", 101)} {
		if _, err := k.Create(t.Context(), resize(func(d *Definition) { d.Name, d.Poison = name, PoisonNone })); !errors.Is(err, ErrInvalid) {
			t.Errorf("%q: %v", name, err)
		}
	}
	for _, name := range []string{".a", "-", "_", "A.b-c_9", strings.Repeat("x", 100)} {
		y.create(k, resize(func(d *Definition) { d.Name, d.Poison = name, PoisonNone }))
		testkit.Must(t, k.Delete(t.Context(), name))
	}
}

// F1: a configured function that cannot be had as it stands there stays as it was.
func TestAFunctionIsNotLostToAChangeThatCannotBeMade(t *testing.T) {
	y := newYard(t)
	k := y.open()
	y.create(k, resize())
	y.create(k, resize(func(d *Definition) { d.Name, d.Group = "other", "other" }))
	if err := k.Ensure(t.Context(), resize(func(d *Definition) { d.Group = "other" })); !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), `function "other"`) {
		t.Errorf("to a group that is taken: %v", err)
	}
	if err := k.Ensure(t.Context(), resize(func(d *Definition) { d.Group = "a/b c" })); !errors.Is(err, ErrInvalid) {
		t.Errorf("to a group that cannot be: %v", err)
	}
	if f, err := k.Show(t.Context(), "resize"); err != nil || f.Group != "resizer" {
		t.Errorf("it is %+v, %v", f.Definition, err)
	}
	testkit.Must(t, k.Ensure(t.Context(), resize(func(d *Definition) { d.Group = "third" })))
	if f, err := k.Show(t.Context(), "resize"); err != nil || f.Group != "third" {
		t.Errorf("it is %+v, %v", f.Definition, err)
	}
}

// F1: "latest" is when it was said: what comes behind is not lost because no host ran yet, or one
// that had nothing to do.
func TestLatestIsWhenItWasSaid(t *testing.T) {
	inBubble(t, func(t *testing.T, y *yard) {
		y.hub("small", 1)
		y.send("small", "0", "1")
		time.Sleep(time.Second)
		k := y.open()
		y.create(k, small(func(d *Definition) { d.Start = StartLatest }))
		time.Sleep(time.Second)
		y.send("small", "0", "2")
		stop := y.run(k)
		settle(15 * time.Second)
		testkit.Equal(t, y.program.got("/resize"), "2", "it")
		stop()
	})
	inBubble(t, func(t *testing.T, y *yard) {
		y.hub("small", 1)
		y.send("small", "0", "1")
		time.Sleep(time.Second)
		k := y.open()
		y.create(k, small(func(d *Definition) { d.Start = StartLatest }))
		stop := y.run(k)
		settle(15 * time.Second)
		stop()
		y.send("small", "0", "2")
		y.run(y.open())
		settle(15 * time.Second)
		testkit.Equal(t, y.program.got("/resize"), "2", "after a restart it")
	})
	inBubble(t, func(t *testing.T, y *yard) { // said later than it was made
		y.hub("small", 1)
		k := y.open()
		y.create(k, small())
		time.Sleep(time.Second)
		y.send("small", "0", "1")
		time.Sleep(time.Second)
		testkit.Must(t, k.Ensure(t.Context(), small(func(d *Definition) { d.Start = StartLatest })))
		time.Sleep(time.Second)
		y.send("small", "0", "2")
		testkit.Must(t, k.Ensure(t.Context(), small(func(d *Definition) { d.Start, d.Batch = StartLatest, 7 })))
		y.run(k)
		settle(15 * time.Second)
		if got := y.program.got("/resize"); got != "2" || y.show(k, "resize").Start != StartLatest {
			t.Errorf("it got %q", got)
		}
	})
}

// F1: two who change a function at once change both what they said, and who changes one that is
// deleted does not bring it back.
func TestUpdate(t *testing.T) {
	y := newYard(t)
	k, other := y.open(), y.open()
	y.create(k, resize(func(d *Definition) { d.Headers = map[string]string{"X": "secret"} }))
	asked := 0
	f, err := k.Update(t.Context(), "resize", func(d *Definition) error {
		if asked++; asked == 1 {
			_, err := other.Update(t.Context(), "resize", func(d *Definition) error { d.Batch = 7; return nil })
			testkit.Must(t, err)
		}
		d.Timeout = time.Second
		return nil
	})
	if err != nil || asked != 2 || f.Batch != 7 || f.Timeout != time.Second || f.Headers["X"] != "secret" {
		t.Errorf("asked %d times: %+v, %v", asked, f.Definition, err)
	}
	for name, change := range map[string]func(*Definition){
		"its name":      func(d *Definition) { d.Name = "other" },
		"its hub":       func(d *Definition) { d.Hub = "nowhere" },
		"its group":     func(d *Definition) { d.Group = "other" },
		"into nonsense": func(d *Definition) { d.Batch = -1 },
	} {
		if _, err := k.Update(t.Context(), "resize", func(d *Definition) error { change(d); return nil }); err == nil {
			t.Errorf("%s was changed", name)
		}
	}
	if _, err := k.Update(t.Context(), "resize", func(*Definition) error { return errBroken }); !errors.Is(err, errBroken) {
		t.Errorf("what speaks against it: %v", err)
	}
	_, err = k.Update(t.Context(), "resize", func(d *Definition) error {
		if err := other.Delete(t.Context(), "resize"); err != nil && !errors.Is(err, ErrNotFound) {
			t.Error(err)
		}
		d.Batch = 8
		return nil
	})
	testkit.ErrorIs(t, err, ErrNotFound, "one that was deleted meanwhile")
	testkit.ErrorIs(t, testkit.Err(k.Show(t.Context(), "resize")), ErrNotFound, "it is back")
}

// F1: what was not said follows what was.
func TestWhatFollowsOtherSettings(t *testing.T) {
	y := newYard(t)
	k := y.open()
	f := y.create(k, resize(func(d *Definition) { d.Exponential = true }))
	testkit.That(t, f.Target == 100 && f.RetryMax == time.Minute, "made with %d and %v", f.Target, f.RetryMax)
	f, err := k.Update(t.Context(), "resize", func(d *Definition) error { d.Batch, d.RetryDelay = 10, 2*time.Minute; return nil })
	if err != nil || f.Target != 10 || f.RetryMax != 2*time.Minute {
		t.Errorf("changed it has %d and %v, %v", f.Target, f.RetryMax, err)
	}
	if f, err = k.Update(t.Context(), "resize", func(d *Definition) error { d.Target = 50; return nil }); err != nil || f.Target != 50 {
		t.Errorf("said it is %d, %v", f.Target, err)
	}
	if b := f.binding(nil); b.Target != 50 || b.Retry.Max != 2*time.Minute {
		t.Errorf("bound as %+v", b)
	}
}

// Who is refused leaves nothing behind.
func TestARefusedFunctionMakesNothing(t *testing.T) {
	y := newYard(t)
	k := y.open()
	y.create(k, resize())
	if _, err := k.Create(t.Context(), resize(func(d *Definition) { d.Group = "new" })); !errors.Is(err, ErrExists) {
		t.Errorf("a name that is taken: %v", err)
	}
	if groups, err := y.broker.Groups(t.Context(), "orders"); err != nil || len(groups) != 2 {
		t.Errorf("there are %v, %v", groups, err)
	}
}
