package admin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

// tails plays a yard whose tails are a script: each request gets the next one.
type tails struct {
	script []func(w http.ResponseWriter, r *http.Request)

	mu    sync.Mutex
	asked []string // guarded by mu; the from of each request
}

func (s *tails) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	n := len(s.asked)
	s.asked = append(s.asked, r.URL.Query().Get("from")+" "+r.URL.Query().Get("count"))
	s.mu.Unlock()
	if n >= len(s.script) {
		http.Error(w, "the script is over", http.StatusTeapot)
		return
	}
	s.script[n](w, r)
}

func events(numbers ...int) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		for _, n := range numbers {
			fmt.Fprintf(w, ": a comment\n\nid: 0:%d\nevent: event\ndata: {\"sequence\":%d}\n\n", n+1, n)
		}
		_ = http.NewResponseController(w).Flush()
	}
}

// begin is what a tail sends first: where it begins, without an event.
func begin(id string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "id: %s\n\n", id)
		_ = http.NewResponseController(w).Flush()
	}
}

func end(reason, resume string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintf(w, "event: end\ndata: {\"reason\":%q,\"detail\":\"it was %s\",\"resume\":%q}\n\n", reason, reason, resume)
	}
}

func cut(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }

func refuse(status int) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"title":"refused","detail":"status %d"}`, status)
	}
}

func then(steps ...func(http.ResponseWriter, *http.Request)) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, r *http.Request) {
		for _, step := range steps {
			step(w, r)
		}
	}
}

// H4: whoever follows misses nothing and sees nothing twice.
func TestFollowComesBack(t *testing.T) {
	type step = func(http.ResponseWriter, *http.Request)
	for name, test := range map[string]struct {
		query   Query
		script  []step
		events  int
		asked   []string
		notices []string
		err     string
	}{
		"the connection breaks": {
			script:  []step{then(events(0, 1), cut), then(events(2), end("count", ""))},
			events:  3,
			asked:   []string{" ", "0:2 "},
			notices: []string{"lost", "back"},
		},
		"it breaks before the first event": {
			query:   Query{From: "latest"},
			script:  []step{then(begin("0:7,1:0"), cut), then(begin("0:7,1:0"), cut), then(events(7), end("count", ""))},
			events:  1,
			asked:   []string{"latest ", "0:7,1:0 ", "0:7,1:0 "},
			notices: []string{"lost", "back", "lost", "back"},
		},
		"it breaks before it says where it begins": {
			query:  Query{From: "latest"},
			script: []step{then(events(), cut)},
			asked:  []string{"latest "}, err: "EOF",
		},
		"half an event does not count": {
			script: []step{
				then(events(0), func(w http.ResponseWriter, _ *http.Request) {
					fmt.Fprint(w, "id: 0:2\nevent: event\ndata: {\"sequence\":1}\n")
				}, cut),
				then(events(1), end("count", "")),
			},
			events:  2,
			asked:   []string{" ", "0:1 "},
			notices: []string{"lost", "back"},
		},
		"the yard stops and says where to resume": {
			script:  []step{then(events(0), end("stopping", "0:1,1:0")), then(events(1), end("count", ""))},
			events:  2,
			asked:   []string{" ", "0:1,1:0 "},
			notices: []string{"lost", "back"},
		},
		"the token expires, which is no loss": {
			script: []step{then(events(0), end("expired", "0:1,1:0")), then(events(1), end("count", ""))},
			events: 2,
			asked:  []string{" ", "0:1,1:0 "},
		},
		"the yard is not ready at once": {
			script:  []step{then(events(0), cut), refuse(503), cut, then(events(1), end("count", ""))},
			events:  2,
			asked:   []string{" ", "0:1 ", "0:1 ", "0:1 "},
			notices: []string{"lost", "back"},
		},
		"a tail that ends without a word is lost": {
			script:  []step{events(0), then(events(1), end("count", ""))},
			events:  2,
			asked:   []string{" ", "0:1 "},
			notices: []string{"lost", "back"},
		},
		"damage is told and passed": {
			script:  []step{then(events(0), end("damaged", "0:9")), then(events(9), end("count", ""))},
			events:  2,
			asked:   []string{" ", "0:9 "},
			notices: []string{"skipped"},
		},
		"damage with nothing behind it": {
			script: []step{then(begin("0:0"), events(0), end("damaged", "0:1"))},
			events: 1, asked: []string{" "}, err: "nothing behind can be read",
		},
		"the hub is deleted": {
			script: []step{then(events(0), end("deleted", "0:1"))},
			events: 1, asked: []string{" "}, err: `hub "h" was deleted`,
		},
		"the position no longer fits": {
			script: []step{then(events(0), cut), refuse(416)},
			events: 1, asked: []string{" ", "0:1 "}, notices: []string{"lost"}, err: "status 416",
		},
		"the first attempt fails": {
			script: []step{refuse(503)},
			asked:  []string{" "}, err: "status 503",
		},
		"the count goes on counting": {
			query:   Query{Count: 3},
			script:  []step{then(events(0, 1), cut), then(events(2, 3))},
			events:  3,
			asked:   []string{" 3", "0:2 1"},
			notices: []string{"lost", "back"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			yard := &tails{script: test.script}
			client := dial(t, yard.ServeHTTP)
			var notices []string
			test.query.Hub = "h"
			got, err := collect(client.Follow(t.Context(), test.query, func(n Notice) {
				switch {
				case n.Skipped:
					notices = append(notices, "skipped")
				case n.Lost != nil:
					notices = append(notices, "lost")
				default:
					notices = append(notices, "back")
				}
			}))
			testkit.Equal(t, len(got), test.events, "events: %q", got)
			testkit.Diff(t, test.asked, yard.asked)
			testkit.Diff(t, test.notices, notices)
			if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("error is %v, want %q", err, test.err)
			}
		})
	}
}

func TestFollowEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	yard := &tails{script: []func(http.ResponseWriter, *http.Request){
		then(events(0), func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }),
	}}
	client := dial(t, yard.ServeHTTP)
	n := 0
	for _, err := range client.Follow(ctx, Query{Hub: "h"}, nil) {
		if err != nil {
			testkit.ErrorIs(t, err, context.Canceled)
			break
		}
		n++
		cancel()
	}
	testkit.Equal(t, n, 1, "events")
}

func TestASilentTailCountsAsLost(t *testing.T) {
	yard := &tails{script: []func(http.ResponseWriter, *http.Request){
		then(events(0), func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }),
		then(events(1), end("count", "")),
	}}
	client := dial(t, yard.ServeHTTP)
	client.cfg.Silence = 50 * time.Millisecond
	var lost error
	got, err := collect(client.Follow(t.Context(), Query{Hub: "h"}, func(n Notice) {
		if n.Lost != nil {
			lost = n.Lost
		}
	}))
	if err != nil || len(got) != 2 || !errors.Is(lost, errSilent) {
		t.Errorf("got %q, %v; lost by %v", got, err, lost)
	}
}

func TestWhoStopsRangingStopsTheTail(t *testing.T) {
	gone := make(chan struct{})
	yard := &tails{script: []func(http.ResponseWriter, *http.Request){
		then(events(0), func(_ http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			close(gone)
		}),
	}}
	for range dial(t, yard.ServeHTTP).Follow(t.Context(), Query{Hub: "h"}, nil) {
		break
	}
	<-gone
}
