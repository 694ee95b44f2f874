package invoke

import (
	"net/http"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/event"
	"github.com/eventyard/eventyard/internal/testkit"
)

// hasty is a transport that answers before it has read the body, as real ones do where the other
// side does.
type hasty struct{ requests []*http.Request }

func (h *hasty) RoundTrip(r *http.Request) (*http.Response, error) {
	h.requests = append(h.requests, r)
	return &http.Response{StatusCode: http.StatusNoContent, Body: http.NoBody, Request: r}, nil
}

// repeated is a call with a body of so many times the character.
func repeated(char string, size int) Call { return callOf(event.Text(strings.Repeat(char, size))) }

func TestNoCallSeesTheBytesOfAnother(t *testing.T) {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
	for name, size := range map[string]int{"small bodies": 10, "large bodies": smallBytes + 1} {
		t.Run(name, func(t *testing.T) {
			transport := &hasty{}
			c := caller(t, Config{URL: "http://x/", Client: &http.Client{Transport: transport}})
			for _, char := range alphabet {
				does(t, c, repeated(string(char), size))
			}
			for i, r := range transport.requests {
				if got, want := readAll(t, r.Body), written(t, CloudEvents, repeated(alphabet[i:i+1], size)); got != want {
					t.Errorf("the body of call %s is %.60s…", alphabet[i:i+1], got)
				}
				r.Body.Close()
				r.Body.Close() // as transports do
			}
		})
	}
}

func TestABodyIsGivenBackWhenNobodyReadsIt(t *testing.T) {
	transport := &hasty{}
	c := caller(t, Config{URL: "http://x/", Client: &http.Client{Transport: transport}})
	does(t, c, repeated("A", smallBytes+1))
	r := transport.requests[0]
	again, err := r.GetBody()
	if err != nil {
		t.Fatal("the first reader is open, and there is no second:", err)
	}
	r.Body.Close()
	if n, err := r.Body.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("a closed reader gave %d bytes, %v", n, err)
	}
	if got := readAll(t, again); !strings.Contains(got, "AAA") {
		t.Errorf("the second reader gave %.60s", got)
	}
	again.Close()
	testkit.Equal(t, testkit.Err(r.GetBody()), errReturned, "after all were closed it gave another")
}
