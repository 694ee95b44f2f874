package azureblob

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/access"
	"github.com/eventyard/eventyard/internal/testkit"
)

// send gives the listener a request as it would come off the wire, headers that come twice
// included.
func (y *yard) send(method, path string, prepare func(*http.Request)) *httptest.ResponseRecorder {
	y.t.Helper()
	r := httptest.NewRequest(method, path, nil)
	r.Host = "127.0.0.1"
	r.Header.Set("x-ms-date", time.Now().UTC().Format(http.TimeFormat))
	prepare(r)
	w := httptest.NewRecorder()
	y.frame.ServeHTTP(w, r)
	return w
}

// One signature is good for one request: what is written differently, and signed alike, is
// not another operation.
func TestASignatureIsForOneRequest(t *testing.T) { // H9
	y := newYard(t)
	y.container("box")
	put := map[string]string{"x-ms-blob-type": "BlockBlob"}
	y.ask("PUT", "/blob/eventyard/box/b", []byte("body"), put, y.own())
	const text = "\ncomp:list\nprefix:a,b\nrestype:container"
	for _, test := range []struct {
		name, method, signedQuery, sent string
		status                          int
	}{
		{"a parameter in capitals is that parameter", "PUT", "\ncomp:metadata\nrestype:container", "new?restype=container&Comp=metadata", 404},
		{"in either case at once", "PUT", "\ncomp:metadata,x\nrestype:container", "new?restype=container&Comp=metadata&comp=x", 400},
		{"a parameter that comes twice", "GET", text, "box?restype=container&comp=list&prefix=a&prefix=b", 400},
		{"that one with a comma", "GET", text, "box?restype=container&comp=list&prefix=a,b", 200},
		{"a parameter in another's value", "PUT", "\na:b\ncomp:metadata\nrestype:container", "new?a=b%0Acomp:metadata&restype=container", 400},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := y.send(test.method, "/blob/eventyard/"+test.sent, func(r *http.Request) {
				text := test.method + strings.Repeat("\n", 12) + canonicalHeaders(r.Header, strings.Compare) + "/eventyard" + r.URL.EscapedPath() + test.signedQuery
				r.Header.Set("Authorization", "SharedKey eventyard:"+sum(t, y.key(), text))
			})
			if got.Code != test.status {
				t.Errorf("status %d, want %d: %s", got.Code, test.status, got.Body)
			}
		})
	}
}

// A condition that says nothing is a mistake of who depends on it, and so is one that comes
// twice: only the first one is signed.
func TestConditionsThatSayNothing(t *testing.T) { // P1
	y := newYard(t)
	y.container("box")
	y.ask("PUT", "/blob/eventyard/box/b", nil, map[string]string{"x-ms-blob-type": "BlockBlob"}, y.own())
	for name, values := range map[string][]string{"If-Match": {""}, "If-None-Match": {`"0x1"`, "*"}, "If-Unmodified-Since": {" "}} {
		got := y.send("PUT", "/blob/eventyard/box/b?comp=metadata", func(r *http.Request) {
			r.Header[name] = values
			y.own()(r)
		})
		testkit.Equal(t, got.Code, 400, "%s %q: status", name, values)
	}
}

// keyless is access whose root policy lacks a key.
type keyless struct{ Access }

func (k keyless) Policy(hub, name string) (access.Policy, error) {
	p, err := k.Access.Policy(hub, name)
	p.Secondary = ""
	return p, err
}

// A key that there is not opens nothing.
func TestAnEmptyKeyIsNone(t *testing.T) { // H9
	y := newYard(t)
	y.handler.cfg.Access = keyless{y.registry}
	for key, status := range map[string]int{"": 403, y.key(): 200} {
		if got := y.ask("GET", "/blob/eventyard?comp=list", nil, nil, y.signed(Account, key)); got.StatusCode != status {
			t.Errorf("with key %q: status %d", key, got.StatusCode)
		}
	}
}

// To commit nothing at all takes a list that says so: a body that was forgotten, or is cut
// off, deletes no blob's.
func TestACommitNeedsAList(t *testing.T) {
	y := newYard(t)
	y.container("box")
	y.ask("PUT", "/blob/eventyard/box/b", []byte("body"), map[string]string{"x-ms-blob-type": "BlockBlob"}, y.own())
	for document, status := range map[string]int{
		"": 400, " \n": 400, `<?xml version="1.0"?>`: 400, "text": 400, "<BlockList></BlockList><BlockList></BlockList>": 400, "<BlockList>": 400,
	} {
		got := y.ask("PUT", "/blob/eventyard/box/b?comp=blocklist", []byte(document), nil, y.own())
		testkit.Equal(t, got.StatusCode, status, "%q: status", document)
	}
	testkit.Equal(t, text(t, y.ask("GET", "/blob/eventyard/box/b", nil, nil, y.own())), "body", "the blob")
	if got := y.ask("PUT", "/blob/eventyard/box/b?comp=blocklist", []byte("<BlockList/>"), nil, y.own()); got.StatusCode != 201 {
		t.Errorf("an empty list: status %d", got.StatusCode)
	}
}
