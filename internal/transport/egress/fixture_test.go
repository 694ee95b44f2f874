package egress

import (
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"

	"go.uber.org/goleak"

	"github.com/eventyard/eventyard/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// newClient gives one that is closed with the test.
func newClient(t testing.TB, cfg Config) *Client {
	t.Helper()
	c := testkit.Value(New(cfg))(t)
	t.Cleanup(c.Close)
	return c
}

// serve runs a server on 127.0.0.1.
func serve(t testing.TB, f http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(f)
	t.Cleanup(s.Close)
	return s.URL
}

// quiet is for servers whose clients are refused on purpose.
var quiet = log.New(io.Discard, "", 0)
