package azureblob

import (
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/eventyard/eventyard/internal/quota"
	"github.com/eventyard/eventyard/internal/testkit"
)

// announce gives the listener a request that says its body has so many bytes.
func (y *yard) announce(method, path string, length int64, body io.Reader) *httptest.ResponseRecorder {
	y.t.Helper()
	return y.send(method, path, func(r *http.Request) {
		r.Body, r.ContentLength = io.NopCloser(body), length
		r.Header.Set("x-ms-blob-type", "BlockBlob")
		y.own()(r)
	})
}

// R4: the account's quota is charged with the bytes that have come to be written, and not with those
// that somebody only announces.
func TestOnlyBytesThatComeAreCharged(t *testing.T) {
	const there = "/blob/eventyard/box/there"
	cut := func() io.Reader {
		return io.MultiReader(strings.NewReader("12345"), iotest.ErrReader(io.ErrUnexpectedEOF))
	}
	none := strings.NewReader("")
	for name, c := range map[string]struct {
		method, path string
		length       int64
		body         io.Reader
		status       int
		refused      bool // whether the quota is used up by it
	}{
		"a read that announces a body":       {"GET", there, math.MaxInt64, none, 200, false},
		"a list that announces a body":       {"GET", "/blob/eventyard?comp=list", math.MaxInt64, none, 200, false},
		"a write that takes no body":         {"PUT", there + "?comp=metadata", math.MaxInt64, none, 200, false},
		"a body that is too large":           {"PUT", there, math.MaxInt64, none, 413, false},
		"a body that is cut short":           {"PUT", there, 1_000_000, cut(), 400, false},
		"a write to a container that is not": {"PUT", "/blob/eventyard/none/b", 1_000_000, none, 404, false},
		"a body that is within the quota":    {"PUT", there, 900, strings.NewReader(strings.Repeat("x", 900)), 201, false},
		"a body that is larger":              {"PUT", there, 90_000, strings.NewReader(strings.Repeat("x", 90_000)), 201, true},
	} {
		t.Run(name, func(t *testing.T) {
			y := newYard(t)
			y.container("box")
			testkit.Equal(t, y.announce("PUT", there, 1, strings.NewReader("x")).Code, 201, "status of the first")
			testkit.Must(t, testkit.Err(y.registry.LimitAccount(t.Context(), func(l *quota.Limit) { l.Bytes = 1000 })))
			got := y.announce(c.method, c.path, c.length, c.body)
			testkit.Equal(t, got.Code, c.status, "status, with %s", got.Body)
			refused := y.registry.AccountQuota().Room(0, 1, time.Now()) != nil
			testkit.Equal(t, refused, c.refused, "whether the quota is used up")
		})
	}
}

// R4: who only reads goes on while the account makes up for what was written.
func TestReadersDoNotWaitForWriters(t *testing.T) {
	y := newYard(t)
	y.container("box")
	testkit.Must(t, testkit.Err(y.registry.LimitAccount(t.Context(), func(l *quota.Limit) { l.Bytes = 1 })))
	put := func() int {
		return y.announce("PUT", "/blob/eventyard/box/b", 9_000, strings.NewReader(strings.Repeat("x", 9_000))).Code
	}
	testkit.Equal(t, put(), 201, "status of the first")
	testkit.Equal(t, put(), 503, "status of the second")
	testkit.Equal(t, y.announce("GET", "/blob/eventyard/box/b", 0, strings.NewReader("")).Code, 200, "status of a read")
	testkit.Equal(t, y.announce("PUT", "/blob/eventyard/box/b?comp=metadata", 0, strings.NewReader("")).Code, 200, "status of a write without a body")
}
