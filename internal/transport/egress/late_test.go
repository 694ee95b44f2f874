package egress

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/grid/retry"
	"github.com/eventyard/eventyard/internal/testkit"
)

// slow answers 200 after a while, unless the request ends before.
type slow struct {
	after time.Duration
	body  io.ReadCloser // nil: none
}

func (s slow) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		io.Copy(io.Discard, r.Body)
		r.Body.Close()
	}
	select {
	case <-r.Context().Done():
		return nil, context.Cause(r.Context())
	case <-time.After(s.after):
	}
	body := s.body
	if body == nil {
		body = http.NoBody
	}
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: body, ContentLength: -1}, nil
}

// late gives a request that may take 30 s for its caller and 3 min in all.
func late() Request {
	return Request{Endpoint: Endpoint{URL: "http://receiver.example/"}, Method: "POST", Body: []byte("x"), Timeout: 30 * time.Second, Late: 3 * time.Minute}
}

// G5: a late success is reported, after the caller has gone on.
func TestALateAnswerIsReported(t *testing.T) {
	for name, x := range map[string]struct {
		after  time.Duration
		want   retry.Outcome
		took   time.Duration
		status int
	}{
		"it comes after a minute":            {time.Minute, retry.Delivered, time.Minute, 200},
		"it comes just within three minutes": {3*time.Minute - time.Second, retry.Delivered, 3*time.Minute - time.Second, 200},
		"it does not come":                   {time.Hour, retry.TimedOut, 3 * time.Minute, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newClient(t, Config{Transport: slow{after: x.after}})
				began := time.Now()
				ctx, cancel := context.WithCancel(t.Context())
				a := c.Do(ctx, late())
				cancel() // a caller that has left ends nothing
				if a.Outcome != retry.TimedOut || a.Status != 0 || a.Late == nil || time.Since(began) != 30*time.Second || a.Took != 30*time.Second {
					t.Fatalf("after %v: %+v", time.Since(began), a)
				}
				reported := make(chan Answer, 2)
				a.Then(func(l Answer) { reported <- l })
				l, ok := <-a.Late
				if !ok || l.Outcome != x.want || l.Status != x.status || l.Took != x.took || time.Since(began) != x.took {
					t.Errorf("after %v: %+v", time.Since(began), l)
				}
				if _, more := <-a.Late; more {
					t.Error("there is a second answer")
				}
				if h := <-reported; h.Outcome != x.want {
					t.Errorf("the function was told %+v", h)
				}
				a.Then(func(l Answer) { reported <- l })
				if h := <-reported; h.Outcome != x.want {
					t.Errorf("afterwards it was told %+v", h)
				}
			})
		})
	}
}

func TestAnAnswerInTimeIsNotLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, Config{Transport: slow{after: 29 * time.Second}})
		a := c.Do(t.Context(), late())
		if a.Outcome != retry.Delivered || a.Late != nil || a.Took != 29*time.Second {
			t.Errorf("%+v", a)
		}
		a.Then(func(Answer) { t.Error("a late answer came") })
	})
}

func TestWithoutLateARequestEndsWithItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, Config{Transport: slow{after: time.Minute}})
		for _, span := range []time.Duration{0, 30 * time.Second} {
			r := late()
			r.Late = span
			a := c.Do(t.Context(), r)
			if a.Outcome != retry.TimedOut || a.Late != nil || !strings.Contains(a.Err.Error(), "no answer within 30s") {
				t.Errorf("%+v", a)
			}
		}
	})
}

// Only so many go on; the others end with their time, and nothing waits.
func TestTooManyLateRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, Config{Transport: slow{after: time.Minute}, MaxLate: 3})
		var mu sync.Mutex
		goingOn := 0
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				a := c.Do(t.Context(), late())
				testkit.Equal(t, a.Outcome, retry.TimedOut, "%+v", a)
				if a.Late != nil {
					mu.Lock()
					goingOn++
					mu.Unlock()
					if l := <-a.Late; l.Outcome != retry.Delivered {
						t.Errorf("late: %+v", l)
					}
				}
			})
		}
		all.Wait()
		testkit.Equal(t, goingOn, 3, "go on")
		if a := c.Do(t.Context(), late()); a.Late == nil {
			t.Error("the places are not free again")
		}
	})
}

func TestCloseEndsLateRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, Config{Transport: slow{after: time.Hour}})
		a := c.Do(t.Context(), late())
		began := time.Now()
		c.Close()
		if l := <-a.Late; l.Outcome != retry.Canceled || time.Since(began) != 0 {
			t.Errorf("after %v: %+v", time.Since(began), l)
		}
	})
}

func TestTheCallerMayEndItsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, Config{Transport: slow{after: time.Hour}})
		for _, span := range []time.Duration{0, time.Minute} {
			stop := errors.New("stopping")
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(5*time.Second, func() { cancel(stop) })
			r := late()
			r.Late = span
			a := c.Do(ctx, r)
			if a.Outcome != retry.Canceled || a.Late != nil || a.Took != 5*time.Second || !errors.Is(a.Err, stop) {
				t.Errorf("%+v", a)
			}
		}
	})
}

// drip is a body that gives a byte now and then, for ever, and ends when the request does.
type drip struct{ ctx context.Context }

func (d drip) Read(b []byte) (int, error) {
	select {
	case <-d.ctx.Done():
		return 0, d.ctx.Err()
	case <-time.After(300 * time.Millisecond):
		b[0] = '.'
		return 1, nil
	}
}

func (drip) Close() error { return nil }

type dripping struct{ after time.Duration }

func (s dripping) RoundTrip(r *http.Request) (*http.Response, error) {
	return slow{s.after, drip{r.Context()}}.RoundTrip(r)
}

// The head decides. A body has a second, or, where all of it is wanted, the request's time.
func TestHowLongABodyMayTake(t *testing.T) {
	for name, x := range map[string]struct {
		late, after, want time.Duration
		bytes, ask        int
	}{
		"only its beginning is wanted":   {after: 10 * time.Second, want: 11 * time.Second, bytes: 3},
		"so it is where one may leave":   {after: 10 * time.Second, late: time.Minute, want: 11 * time.Second, bytes: 3},
		"all of it is wanted":            {after: 10 * time.Second, ask: -1, want: 30 * time.Second, bytes: 66},
		"the head is there just in time": {after: 29900 * time.Millisecond, want: 30900 * time.Millisecond, bytes: 3},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newClient(t, Config{Transport: dripping{x.after}})
				began := time.Now()
				r := late()
				r.Late, r.HeadBytes = x.late, x.ask
				a := c.Do(t.Context(), r)
				if a.Status != 200 || a.Outcome != retry.Delivered || a.Took != x.after || time.Since(began) != x.want || len(a.Head) != x.bytes || a.Late != nil {
					t.Errorf("after %v: %+v", time.Since(began), a)
				}
			})
		})
	}
}

// A body that was written is not kept for the minutes that a late request goes on.
func TestALateRequestGivesItsBodyBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, Config{Transport: slow{after: time.Minute}})
		r := late()
		r.Body = make([]byte, smallBytes+1)
		released := 0
		r.Release = func() { released++ }
		a := c.Do(t.Context(), r)
		synctest.Wait()
		if released != 1 || a.Late == nil {
			t.Errorf("released %d times when the caller left", released)
		}
		<-a.Late
		synctest.Wait()
		testkit.Equal(t, released, 1, "released … times in all")
	})
}

func TestWorkersGoHomeWhenThereIsNothingToDo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, Config{Transport: slow{after: time.Second}})
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() { c.Do(t.Context(), late()) })
		}
		all.Wait()
		time.Sleep(2 * workerIdle)
		synctest.Wait()
		done := make(chan struct{})
		go func() { c.running.Wait(); close(done) }() // with the client still open
		synctest.Wait()
		select {
		case <-done:
		default:
			t.Error("workers are still there")
		}
	})
}

// Callers, time-outs and Close at the same moment: every answer is given, nothing is left over.
func TestAStormOfEndings(t *testing.T) {
	for range 20 {
		synctest.Test(t, func(t *testing.T) {
			c := newClient(t, Config{Transport: slow{after: 2 * time.Second}, MaxLate: 5})
			var all sync.WaitGroup
			for i := range 60 {
				all.Go(func() {
					ctx, cancel := context.WithTimeout(context.Background(), time.Duration(1+i%4)*time.Second)
					defer cancel()
					r := late()
					r.Timeout = time.Duration(1+i%3) * time.Second
					r.Late = time.Duration(i%5) * time.Second
					released := make(chan struct{})
					r.Release = func() { close(released) }
					a := c.Do(ctx, r)
					if a.Outcome == "" || a.Outcome != retry.Delivered && a.Err == nil {
						t.Errorf("%+v", a)
					}
					if a.Late != nil {
						<-a.Late
					}
					<-released
				})
			}
			all.Go(func() { time.Sleep(3 * time.Second); c.Close() })
			all.Wait()
		})
	}
}
