package invoke

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/testkit"
)

// F1: any program reached over HTTP is a function.
func TestAProgramIsCalledAndAnswers(t *testing.T) {
	type seen struct {
		header http.Header
		uri    string
		body   string
		length int64
	}
	for _, c := range []struct {
		format Format
		media  string
	}{{"", "application/cloudevents-batch+json; charset=utf-8"}, {CloudEvents, "application/cloudevents-batch+json; charset=utf-8"}, {EventHubs, "application/json; charset=utf-8"}} {
		t.Run(string(c.format), func(t *testing.T) {
			calls := make(chan seen, 1)
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				calls <- seen{r.Header, r.Method + " " + r.RequestURI, readAll(t, r.Body), r.ContentLength}
				io.WriteString(w, `{"results":[{"index":2,"status":"poison","error":"bad"}]}`)
			})
			call := threeEvents()
			a := does(t, caller(t, Config{URL: s.URL + "/bill?x=1#y", Format: c.format, Header: http.Header{"x-env": {"prod"}}}), call)
			if a.Status != 200 || a.Verdict != Done || len(a.Each) != 1 || a.Each[2] != (Result{Verdict: Poison, Error: "bad"}) {
				t.Errorf("it answered %+v", a)
			}
			got := <-calls
			if got.uri != "POST /bill?x=1" || got.length != int64(len(got.body)) {
				t.Errorf("it was called as %s with %d bytes", got.uri, got.length)
			}
			if want := written(t, c.format, call); c.format != "" && got.body != want {
				t.Errorf("it got %s\nwant   %s", got.body, want)
			}
			for name, want := range map[string]string{
				"Content-Type": c.media, "Accept": "application/json", "User-Agent": "eventyard", "X-Env": "prod", "Eventyard-Function": "billing", "Eventyard-Hub": "orders",
				"Eventyard-Group": "bills", "Eventyard-Partition": "3", "Eventyard-Attempt": "2", "Eventyard-Epoch": "5", "Eventyard-First-Sequence": "17",
				"Eventyard-Last-Sequence": "19", "Eventyard-Hops": "1", "Idempotency-Key": "billing/orders/3/17-19",
			} {
				testkit.Equal(t, got.header.Get(name), want, "header %s", name)
			}
		})
	}
}

// R7: a function whose program feeds the function's own hub does not go on for ever: what was passed
// on too often is put away, without a call and without those beside it.
func TestLoopsEnd(t *testing.T) {
	var hops []string
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) { hops = append(hops, r.Header.Get("Eventyard-Hops")) })
	c := caller(t, Config{URL: s.URL})
	passed := func(n any) event.Event { return event.Event{Properties: map[string]any{"Eventyard-Hops": n}} }
	does(t, c, Call{Events: []event.Event{passed(int32(3)), {}, passed("7")}})
	testkit.Diff(t, []string{"8"}, hops)
	a := does(t, c, Call{Events: []event.Event{{}, passed(8), passed(1)}})
	testkit.Equal(t, a.Each[0].Verdict, Untouched)
	testkit.Equal(t, a.Each[1].Verdict, Poison)
	testkit.Equal(t, a.Each[2].Verdict, Untouched)
	testkit.Equal(t, does(t, c, Call{Events: []event.Event{passed(9)}}).Verdict, Poison)
	testkit.Equal(t, len(hops), 1, "calls")
}

func TestKeysAreOfTheSameEventsOnly(t *testing.T) {
	attempt := 0
	key := func(numbers ...int64) string {
		attempt++ // which makes no difference
		call := Call{Function: "f", Hub: "h", Partition: "0", Attempt: attempt, Epoch: int64(attempt)}
		for _, n := range numbers {
			call.Events = append(call.Events, event.Event{Sequence: n})
		}
		return string(appendKey(nil, &call))
	}
	if whole, one := key(4, 5, 6), key(4); whole != "f/h/0/4-6" || one != "f/h/0/4-4" {
		t.Errorf("keys are %s and %s", whole, one)
	}
	if first, second := key(4, 9), key(4, 9); first != second {
		t.Errorf("the same events have the keys %s and %s", first, second)
	}
	of := map[string][]int64{}
	for _, numbers := range [][]int64{{1}, {1, 2}, {1, 2, 3, 4, 5}, {1, 3, 5}, {1, 2, 5}, {1, 5}, {1, 4, 5}, {2}} {
		if other, taken := of[key(numbers...)]; taken {
			t.Errorf("%v and %v have the same key", other, numbers)
		}
		of[key(numbers...)] = numbers
	}
}

func TestNamesThatCannotStandInAHeaderAreEscaped(t *testing.T) {
	names := make(chan string, 1)
	s := serve(t, func(_ http.ResponseWriter, r *http.Request) { names <- r.Header.Get("Eventyard-Group") })
	call := threeEvents()
	call.Group = "a\nb ä"
	if a := does(t, caller(t, Config{URL: s.URL}), call); a.Status != 200 {
		t.Errorf("it answered %+v", a)
	}
	if got := <-names; got != "a%0Ab%20%C3%A4" {
		t.Errorf("the group is %q", got)
	}
}

func TestConfigurationsThatMakeNoSense(t *testing.T) {
	for _, c := range []struct {
		name string
		cfg  Config
		text string
	}{
		{"nothing", Config{}, "is missing: give one like http://localhost:5000/"},
		{"no scheme", Config{URL: "localhost:5000"}, `does not begin with http:// or https://`},
		{"no scheme and an address", Config{URL: "127.0.0.1:5000/"}, `does not begin with http:// or https://`},
		{"another scheme", Config{URL: "ftp://x/"}, `the scheme "ftp"`},
		{"no host", Config{URL: "http:///x"}, "names no host"},
		{"no URL at all", Config{URL: "http://a b/?secret"}, "invalid character"},
		{"a format that is not there", Config{URL: "http://x/", Format: "xml"}, `format "xml" of a function: use cloudevents or eventhubs`},
		{"a header of ours", Config{URL: "http://x/", Header: http.Header{"eventyard-hub": {"x"}}}, "choose another name"},
		{"a header that would break out", Config{URL: "http://x/", Header: http.Header{"X": {"a\r\nB: c"}}}, "cannot be sent"},
		{"a header of the transport's", Config{URL: "http://x/", Header: http.Header{"Content-Length": {"3"}}}, "cannot be sent"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := New(c.cfg)
			if err == nil || !strings.Contains(err.Error(), c.text) || strings.Contains(err.Error(), "secret") {
				t.Errorf("it says %v, want %q", err, c.text)
			}
		})
	}
}

func TestConnectionsAreKept(t *testing.T) {
	for name, answer := range map[string]struct {
		status int
		body   string
	}{
		"a success that says nothing":   {204, ""},
		"a success with a long body":    {200, strings.Repeat("x", 100<<10)},
		"a failure with a long body":    {500, strings.Repeat("x", 100<<10)},
		"a redirect with a body":        {302, "moved"},
		"results that are hard to read": {200, `{"results":`},
	} {
		t.Run(name, func(t *testing.T) {
			var connections atomic.Int32
			s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				readAll(t, r.Body)
				w.WriteHeader(answer.status)
				io.WriteString(w, answer.body)
			}))
			s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
				if state == http.StateNew {
					connections.Add(1)
				}
			}
			s.Start()
			t.Cleanup(s.Close)
			c := caller(t, Config{URL: s.URL})
			for range 5 {
				if a := does(t, c, threeEvents()); a.Status != answer.status {
					t.Fatalf("it answered %+v", a)
				}
			}
			testkit.Equal(t, connections.Load(), 1, "connections were made for 5 calls")
		})
	}
}

func TestRedirectsAreNotFollowed(t *testing.T) {
	followed := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("it was followed") })
	for _, status := range []int{301, 302, 303, 307, 308} {
		s := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, followed.URL+"/x?secret", status) })
		for _, given := range []*http.Client{nil, s.Client()} {
			a := does(t, caller(t, Config{URL: s.URL, Client: given}), threeEvents())
			wantFailed(t, a, status, "redirects are not followed", followed.URL+"/x")
			testkit.That(t, !strings.Contains(a.Error, "secret"), "it tells %q", a.Error)
		}
		testkit.That(t, s.Client().CheckRedirect == nil, "the client that was given has been changed")
	}
}

// listener is a server of bytes: each connection is closed after what f does with it.
func listener(t *testing.T, f func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	testkit.Must(t, err)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer conn.Close()
				f(conn)
			})
		}
	})
	t.Cleanup(func() {
		l.Close()
		wg.Wait()
	})
	return "http://" + l.Addr().String() + "/path?secret"
}

// takeRequest reads a whole request.
func takeRequest(conn net.Conn) {
	if r, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
		io.Copy(io.Discard, r.Body)
	}
}

// F2, R7: no answer is a failed attempt, of which no event is guilty where there was no connection,
// and perhaps none where it broke.
func TestWhatGoesWrongOnTheWayIsAFailure(t *testing.T) {
	quiet := log.New(io.Discard, "", 0)
	tlsServer := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	tlsServer.Config.ErrorLog = quiet
	tlsServer.StartTLS()
	t.Cleanup(tlsServer.Close)
	plain := serve(t, func(http.ResponseWriter, *http.Request) {})
	closed := httptest.NewServer(nil)
	closed.Close()
	mute := listener(t, func(conn net.Conn) { _, _ = conn.Read(make([]byte, 1)) })
	answers := func(text string) string {
		return listener(t, func(conn net.Conn) {
			takeRequest(conn)
			io.WriteString(conn, text)
		})
	}
	for _, c := range []struct {
		name, url string
		want      Verdict
		status    int
		parts     []string
	}{
		{"nobody is there", closed.URL, Unreachable, 0, []string{"POST " + closed.URL + ": ", "refused", "start the program"}},
		{"no such name", "http://no-such-host.invalid:1/", Unreachable, 0, []string{"no-such-host.invalid", "correct the host's name"}},
		{"a certificate of nobody", tlsServer.URL, Unreachable, 0, []string{"certificate"}},
		{"no TLS there", "https" + strings.TrimPrefix(plain.URL, "http"), Unreachable, 0, []string{"write http://"}},
		{"it hangs up in the midst of the handshake", "https" + strings.TrimPrefix(mute, "http"), Unreachable, 0, nil},
		{"it hangs up", answers(""), Unavailable, 0, []string{"the program closed the connection without an answer"}},
		{"it talks of something else", answers("220 mail.example.com ready\r\n\r\n"), Failed, 0, []string{"it does not answer in HTTP"}},
		{"a success that is cut short", answers("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{}"), Unavailable, 200, []string{"cut short", "nothing of the batch counts as done"}},
		{"a success in pieces that is cut short", answers("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n"), Unavailable, 200, []string{"cut short"}},
		{"a failure that is cut short", answers("HTTP/1.1 500 No\r\nContent-Length: 100\r\n\r\n{}"), Unavailable, 500, []string{"cut short"}},
		{"a success that is too long", answers("HTTP/1.1 200 OK\r\nContent-Length: 2000000\r\n\r\n" + strings.Repeat(" ", 2_000_000)), Failed, 200, []string{"more than 1048576 bytes"}},
		{"a redirect to nowhere", answers("HTTP/1.1 302 Found\r\nLocation: ://\r\nContent-Length: 0\r\n\r\n"), Failed, 0, []string{"Location"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := does(t, caller(t, Config{URL: c.url}), threeEvents())
			wantAs(t, c.want, a, c.status, c.parts...)
			testkit.That(t, !strings.Contains(a.Error, "secret"), "it tells %q", a.Error)
		})
	}
}

func TestAnAnswerOfJustTheLengthIsRead(t *testing.T) {
	const body = `{"status":"skip"}`
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, body) })
	if a := does(t, caller(t, Config{URL: s.URL, MaxAnswerBytes: int64(len(body))}), threeEvents()); a.Verdict != Skip {
		t.Errorf("read %+v", a)
	}
	wantFailed(t, does(t, caller(t, Config{URL: s.URL, MaxAnswerBytes: int64(len(body)) - 1}), threeEvents()), 200, "more than 16 bytes")
}

func TestWaitsAreCapped(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "100000")
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	for most, want := range map[time.Duration]time.Duration{0: time.Hour, time.Second: time.Second} {
		if a := does(t, caller(t, Config{URL: s.URL, MaxRetryAfter: most}), threeEvents()); a.Verdict != Unavailable || a.Wait != want {
			t.Errorf("read %+v, want a wait of %v", a, want)
		}
	}
}

// F2: the end of the context is no failure, and tells its cause.
func TestAnEndedContextIsNoAnswer(t *testing.T) {
	cause := errors.New("the lease is lost")
	inCall := make(chan struct{})
	for _, c := range []struct {
		name    string
		program func(w http.ResponseWriter)
	}{
		{"before there is an answer", func(http.ResponseWriter) {}},
		{"in the midst of an answer", func(w http.ResponseWriter) {
			io.WriteString(w, `{"results":`)
			w.(http.Flusher).Flush()
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := serve(t, func(w http.ResponseWriter, r *http.Request) {
				readAll(t, r.Body)
				c.program(w)
				inCall <- struct{}{}
				<-r.Context().Done()
			})
			ctx, cancel := context.WithCancelCause(t.Context())
			go func() {
				<-inCall
				cancel(cause)
			}()
			if a, err := caller(t, Config{URL: s.URL}).Do(ctx, threeEvents()); !errors.Is(err, cause) {
				t.Errorf("it gave %+v, %v", a, err)
			}
			if a, err := caller(t, Config{URL: s.URL}).Do(ctx, threeEvents()); !errors.Is(err, cause) {
				t.Errorf("called once more it gave %+v, %v", a, err)
			}
		})
	}
	t.Run("by its deadline", func(t *testing.T) {
		s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
			readAll(t, r.Body)
			<-r.Context().Done()
		})
		late := errors.New("the call takes too long")
		ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Millisecond, late)
		defer cancel()
		if a, err := caller(t, Config{URL: s.URL}).Do(ctx, threeEvents()); !errors.Is(err, late) {
			t.Errorf("it gave %+v, %v", a, err)
		}
	})
}

// R7: where the time is up before there is a connection that is known, too.
func TestATimeOutOfTheConnectIsKnown(t *testing.T) {
	late := errors.New("the call takes too long")
	ctx, cancel := context.WithTimeoutCause(t.Context(), 20*time.Millisecond, late)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}}}
	a, err := caller(t, Config{URL: "http://program/?secret", Client: client}).Do(ctx, threeEvents())
	if !errors.Is(err, late) || !errors.Is(err, ErrNotConnected) || strings.Contains(err.Error(), "secret") {
		t.Errorf("it gave %+v, %v", a, err)
	}
}

func TestNoEventsAreNoCall(t *testing.T) {
	s := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("it was called") })
	if a := does(t, caller(t, Config{URL: s.URL}), callOf()); a.Verdict != Done || a.Each != nil || a.Status != 0 {
		t.Errorf("it gave %+v", a)
	}
}

// A connection that died meanwhile is no failure of the function.
func TestAConnectionThatDiedMeanwhileIsReplaced(t *testing.T) {
	big := make([]event.Event, 200)
	for i := range big {
		big[i] = event.Text(strings.Repeat("x", 500))
	}
	for name, call := range map[string]Call{"a small body": threeEvents(), "a large body": callOf(big...)} {
		t.Run(name, func(t *testing.T) {
			want := written(t, CloudEvents, call)
			var calls atomic.Int32
			s := serve(t, func(_ http.ResponseWriter, r *http.Request) {
				got := readAll(t, r.Body)
				if calls.Add(1) == 2 {
					panic(http.ErrAbortHandler) // the second call on the kept connection
				}
				testkit.Equal(t, got, want, "it got %d bytes, want %d", len(got), len(want))
			})
			c := caller(t, Config{URL: s.URL})
			for range 2 {
				if a := does(t, c, call); a.Status != 200 {
					t.Errorf("it answered %+v", a)
				}
			}
			testkit.Equal(t, calls.Load(), 3, "it was called")
		})
	}
}

func ExampleCaller_Do() {
	program := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"results":[{"sequence":17,"status":"failed","error":"no money"}]}`)
	}))
	defer program.Close()
	c, err := New(Config{URL: program.URL})
	if err != nil {
		panic(err)
	}
	answer, err := c.Do(context.Background(), threeEvents())
	fmt.Println(answer.Each[0].Error, err)
	// Output: no money <nil>
}
