package processor_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/eventyard/eventyard/hub"
	"github.com/eventyard/eventyard/processor"
)

// A panic of whatever the user gave us does not end the process, and work goes on.
func TestPanicsOfCallbacksAreErrors(t *testing.T) {
	for _, where := range []string{"factory", "Start", "OnError", "OnState", "ProcessError", "Close"} {
		t.Run(where, func(t *testing.T) {
			bubble(t, 2, func(w *world) {
				panics := 0
				may := func(here string) {
					w.mu.Lock()
					now := here == where && panics < 3
					if now {
						panics++
					}
					w.mu.Unlock()
					if now {
						panic("oh")
					}
				}
				cfg := w.config("a")
				cfg.Start = func(string) hub.Position { may("Start"); return hub.Earliest }
				cfg.OnError = func(err error) { w.onError(err); may("OnError") }
				cfg.OnState = func(s processor.Status) { w.onState(s); may("OnState") }
				d := &panicky{diary: diary{w: w, process: w.note}, may: may}
				d.process = w.failing
				a := w.startHost(cfg, func(string) processor.Worker { may("factory"); return d })
				w.feedAll(time.Minute, 3)
				w.wantAll()
				a.stop()
				var p *processor.PanicError
				if panics == 0 || where != "OnError" && where != "OnState" && where != "ProcessError" && !w.reportedAs(&p) {
					t.Errorf("%d panics, and OnError was told of %v", panics, w.errs)
				}
			})
		})
	}
}

func (w *world) reportedAs(target any) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, err := range w.errs {
		if errors.As(err, target) {
			return true
		}
	}
	return false
}

type panicky struct {
	diary
	may func(string)
}

func (p *panicky) ProcessError(ctx context.Context, part *processor.Partition, err error) {
	p.may("ProcessError")
}

func (p *panicky) Close(ctx context.Context, part *processor.Partition, why processor.Reason) error {
	p.may("Close")
	return nil
}

// A worker that hangs, and with it its ProcessError, harms its own partition only.
func TestAWorkerThatHangsInProcessErrorDoesNotHoldUpOthers(t *testing.T) {
	bubble(t, 2, func(w *world) {
		hang := make(chan struct{})
		cfg := w.config("a")
		cfg.HandlerTimeout = time.Second
		a := w.startHost(cfg, func(partition string) processor.Worker {
			return &jammed{diary{w: w, process: w.note}, make(chan struct{}, 1), partition == "0", hang}
		})
		w.feed(3*time.Minute, "0", 1)
		w.feed(time.Second, "1", 1)
		w.wantGot("1", 0)
		if l := w.lease("1"); l.Owner != "a" || l.Epoch != 1 {
			t.Errorf("the lease of the other partition is %+v", l)
		}
		w.wantReported(processor.ErrStalled)
		a.cancel()
		after(time.Minute)
		select {
		case <-a.done:
		default:
			t.Error("it does not stop")
		}
		close(hang)
	})
}

// jammed takes a lock in each of its methods, and hangs with it.
type jammed struct {
	diary
	lock chan struct{}
	jam  bool
	hang chan struct{}
}

func (j *jammed) ProcessEvents(ctx context.Context, b *processor.Batch) error {
	j.lock <- struct{}{}
	defer func() { <-j.lock }()
	if j.jam {
		<-j.hang
	}
	return j.diary.ProcessEvents(ctx, b)
}

func (j *jammed) ProcessError(context.Context, *processor.Partition, error) {
	j.lock <- struct{}{}
	<-j.lock
}
