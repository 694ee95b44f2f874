package frame

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/internal/transport/admission"
)

// holding is an exchange whose caller is whom a header names, and that reads its body whole.
type holding struct{ *exchange }

func (k *holding) Admit() error {
	k.Holder = k.R.Header.Get("Holder")
	return nil
}

func (k *holding) Serve() error {
	text, err := ReadBody(k.R.Body, k.R.ContentLength)
	if k.R.Header.Get("Wait") != "" {
		<-k.R.Context().Done()
	}
	if err == nil {
		_, err = fmt.Fprint(k, len(text))
	}
	return err
}

// keeping is a server that reads bodies within a memory.
func keeping(t *testing.T, cfg Config) *httptest.Server {
	f, x, _ := newFrame(t, cfg, func(a *API) {
		a.Begin = func(c *Call) Exchange { return &holding{&exchange{c, &test{}}} }
	})
	begin := f.apis[0].Begin
	f.apis[0].Begin = func(c *Call) Exchange {
		k := begin(c).(*holding)
		k.test.metrics = x.metrics
		return k
	}
	server := httptest.NewServer(f)
	t.Cleanup(server.Close)
	return server
}

// post sends a body whole.
func post(t *testing.T, server *httptest.Server, holder string, bytes int) (status int, said string) {
	t.Helper()
	request := testkit.Value(http.NewRequest("POST", server.URL+"/thing", strings.NewReader(strings.Repeat("x", bytes))))(t)
	request.Header.Set("Holder", holder)
	response := testkit.Value(server.Client().Do(request))(t)
	defer response.Body.Close()
	return response.StatusCode, string(testkit.Value(io.ReadAll(response.Body))(t))
}

// begin sends a part of a body, and no more.
func begin(t *testing.T, server *httptest.Server, holder string, bytes, of int) net.Conn {
	t.Helper()
	nc := testkit.Value(net.Dial("tcp", server.Listener.Addr().String()))(t)
	t.Cleanup(func() { nc.Close() })
	_, err := fmt.Fprintf(nc, "POST /thing HTTP/1.1\r\nHost: localhost\r\nHolder: %s\r\nContent-Length: %d\r\n\r\n%s", holder, of, strings.Repeat("x", bytes))
	testkit.Must(t, err)
	return nc
}

// R2: what one policy sends and does not finish takes nothing from others, and is bounded.
func TestBodiesAreCountedByHolder(t *testing.T) {
	memory := admission.NewMemory(300_000, 600_000, time.Minute)
	server := keeping(t, Config{Bodies: memory})
	begin(t, server, "least", 200_000, 250_000)
	testkit.Eventually(t, "what has come is counted", func() bool { return memory.Held("least") > 300_000-101_000 })
	status, said := post(t, server, "least", 200_000)
	testkit.Equal(t, status, http.StatusServiceUnavailable)
	testkit.Equal(t, said, "too-many-bodies")
	for range 5 { // each gives back what it took
		status, said = post(t, server, "other", 200_000)
		testkit.Equal(t, status, http.StatusOK)
		testkit.Equal(t, said, "200000")
	}
	status, _ = post(t, server, "least", 50_000) // so did the one that was refused
	testkit.Equal(t, status, http.StatusOK)
}

// R2: where there is no room in all, who has sent for the longest makes some.
func TestBodiesMakeRoom(t *testing.T) {
	server := keeping(t, Config{Bodies: admission.NewMemory(300_000, 300_000, 50*time.Millisecond)})
	hostile := begin(t, server, "least", 200_000, 250_000)
	testkit.Eventually(t, "there is room", func() bool {
		status, _ := post(t, server, "other", 200_000)
		return status == http.StatusOK
	})
	testkit.Must(t, hostile.SetReadDeadline(time.Now().Add(10*time.Second)))
	answer, err := http.ReadResponse(bufio.NewReader(hostile), nil)
	testkit.That(t, !errors.Is(err, os.ErrDeadlineExceeded), "who was in the way was not cut off")
	if err == nil {
		answer.Body.Close()
		testkit.That(t, answer.StatusCode >= 400, "who is cut off was answered %d", answer.StatusCode)
	}
}

// R2: a request that waits for its answer is not in the way: it cannot be cut off, and who can be is.
func TestWholeBodiesAreNotInTheWay(t *testing.T) {
	memory := admission.NewMemory(150_000, 150_000, time.Millisecond)
	server := keeping(t, Config{Bodies: memory})
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	const waiting = 9
	for range waiting {
		request := testkit.Value(http.NewRequestWithContext(ctx, "POST", server.URL+"/thing", strings.NewReader(strings.Repeat("x", 10_000))))(t)
		request.Header.Set("Holder", "patient")
		request.Header.Set("Wait", "yes")
		go func() {
			if response, err := server.Client().Do(request); err == nil {
				response.Body.Close()
			}
		}()
	}
	testkit.Eventually(t, "all wait", func() bool { return memory.Held("patient") >= waiting*10_000 })
	begin(t, server, "least", 50_000, 60_000) // no more than is given all the time that bodies have
	testkit.Eventually(t, "what has come is counted", func() bool { return memory.Held("least") >= 50_000 })
	// Each refusal cuts one off at most: the first has to meet who can be.
	status, _ := post(t, server, "other", 60_000)
	testkit.Equal(t, status, http.StatusServiceUnavailable)
	testkit.Eventually(t, "there is room", func() bool {
		s := memory.Share("other", nil)
		defer s.Give()
		return s.TryTake(60_000)
	})
}

// R2: requests of which little comes count for more than that.
func TestSmallBodiesCount(t *testing.T) {
	memory := admission.NewMemory(4*leastBody, 1<<20, time.Minute)
	server := keeping(t, Config{Bodies: memory})
	for range 4 {
		begin(t, server, "least", 1, 2)
	}
	testkit.Eventually(t, "they are counted", func() bool { return memory.Held("least") == 4*leastBody })
	status, _ := post(t, server, "least", 1)
	testkit.Equal(t, status, http.StatusServiceUnavailable)
}

// R2: who needs no right has an account of its own, by address.
func TestBodiesOfStrangers(t *testing.T) {
	bodies := admission.NewMemory(1, 1, time.Minute)
	server := keeping(t, Config{Bodies: bodies, OpenBodies: admission.NewMemory(100_000, 1<<20, time.Minute)})
	status, _ := post(t, server, "", 90_000)
	testkit.Equal(t, status, http.StatusOK)
	status, _ = post(t, server, "", 110_000)
	testkit.Equal(t, status, http.StatusServiceUnavailable)
}

// deadlines takes note of them.
type deadlines struct {
	http.ResponseWriter
	last time.Time
}

func (d *deadlines) SetReadDeadline(at time.Time) error { d.last = at; return nil }

// R2: a body has to come at a pace, and within a time; when it is whole its deadline is what it was.
func TestBodiesHaveAPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &deadlines{ResponseWriter: httptest.NewRecorder()}
		from, to := io.Pipe()
		r := httptest.NewRequest("POST", "http://localhost/thing", from)
		r.ContentLength = 1 << 20
		f, _, _ := newFrame(t, Config{})
		b := f.count(&Call{ResponseWriter: d, R: r, Holder: "somebody"})
		start := time.Now()
		due := func(bytes int) time.Duration {
			if bytes > 0 {
				go func() { _, _ = to.Write(make([]byte, bytes)) }()
				testkit.Must(t, testkit.Err(io.ReadFull(b, make([]byte, bytes))))
			}
			go func() { _, _ = to.Write([]byte{0}) }()
			testkit.Must(t, testkit.Err(b.Read(make([]byte, 1))))
			return d.last.Sub(start)
		}
		testkit.Equal(t, due(0), BodyPause, "until the first byte")
		time.Sleep(20 * time.Second)
		testkit.Equal(t, due(0), BodyPause, "with one byte")
		testkit.Equal(t, due(10*MinBodyRate), BodyPause, "it is not moved more often than is of use")
		time.Sleep(5 * time.Second)
		testkit.Equal(t, due(0), BodyPause+10*time.Second, "with ten seconds' worth")
		due(1 << 19)
		time.Sleep(5 * time.Second)
		testkit.Equal(t, due(0), 30*time.Second+BodyPause, "it may pause no longer")
		time.Sleep(80 * time.Second)
		testkit.Equal(t, due(0), BodyTimeout)
		to.Close()
		time.Sleep(5 * time.Second)
		testkit.ErrorIs(t, testkit.Err(b.Read(make([]byte, 1))), io.EOF)
		testkit.Equal(t, d.last.Sub(start), BodyTimeout)
		b.cut()
		testkit.Equal(t, d.last.Sub(start), BodyTimeout, "what is whole is not cut off")
	})
}

// chunks gives a text in small parts, and notes the most that was asked for at first.
type chunks struct {
	text  string
	first int
}

func (c *chunks) Read(p []byte) (int, error) {
	if c.first == 0 {
		c.first = len(p)
	}
	if c.text == "" {
		return 0, io.EOF
	}
	n := copy(p, c.text[:min(len(c.text), 1000)])
	c.text = c.text[n:]
	return n, nil
}

// R2: a body takes memory as it comes, whatever its client says of it.
func TestReadBody(t *testing.T) {
	const first = 16 << 10
	for _, size := range []int{0, 1, 511, 512, 513, 16 << 10, 100_000} {
		for _, said := range []int64{-1, int64(size), math.MaxInt64} {
			from := &chunks{text: strings.Repeat("abcdefghi", size/9+1)[:size]}
			want := from.text
			got := testkit.Value(ReadBody(from, said))(t)
			testkit.Equal(t, string(got), want, "%d bytes, %d were said", size, said)
			testkit.That(t, from.first <= first, "it takes %d bytes at first", from.first)
			testkit.That(t, cap(got) <= 2*size+1024 || said > int64(size) && cap(got) <= max(first, 3*size), "it takes %d bytes for %d", cap(got), size)
		}
	}
}
