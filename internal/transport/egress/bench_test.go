package egress

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

// What a request costs here beside a bare http.Client, in turn on the same machine: ours has to
// cost hardly more, though its caller can leave.
func BenchmarkDo(b *testing.B) {
	url := serve(b, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
	})
	body := []byte(strings.Repeat("x", 512))
	header := func() http.Header { return http.Header{"Content-Type": {"application/json"}} }

	b.Run("bare client", func(b *testing.B) {
		client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}, Timeout: 30 * time.Second}
		defer client.CloseIdleConnections()
		b.ReportAllocs()
		for b.Loop() {
			r, _ := http.NewRequest("POST", url, bytes.NewReader(body))
			r.Header = header()
			a, err := client.Do(r)
			testkit.Must(b, err)
			io.Copy(io.Discard, a.Body)
			a.Body.Close()
		}
	})
	for name, late := range map[string]time.Duration{"stay": 0, "leave": 3 * time.Minute} {
		b.Run(name, func(b *testing.B) {
			c := newClient(b, Config{Loopback: true})
			route, err := c.Route(Endpoint{URL: url})
			testkit.Must(b, err)
			b.ReportAllocs()
			for b.Loop() {
				a := c.Do(b.Context(), Request{Route: route, Method: "POST", Header: header(), Body: body, Late: late})
				if a.Status != 200 {
					b.Fatal(a.Err)
				}
			}
		})
	}
}
