package azureblob

import (
	"crypto/md5"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/eventyard/eventyard/internal/hubs/access"
	"github.com/eventyard/eventyard/internal/testkit"
)

// Every answer, good or bad, has the headers that libraries look for.
func TestHeadersOfEveryAnswer(t *testing.T) {
	y := newYard(t)
	y.container("box")
	for _, path := range []string{"/blob/eventyard?comp=list", "/blob/eventyard/box/none", "/blob/eventyard/box?restype=container", "/blob/eventyard/nope?restype=container&comp=list"} {
		for _, sign := range []func(*http.Request){y.own(), func(*http.Request) {}} {
			got := y.ask("GET", path, nil, map[string]string{"x-ms-client-request-id": "mine", "x-ms-version": "2099-01-02"}, sign)
			if got.Header.Get("x-ms-request-id") == "" || got.Header.Get("x-ms-version") != "2099-01-02" || got.Header.Get("Date") == "" ||
				got.Header.Get("x-ms-client-request-id") != "mine" {
				t.Errorf("%s: headers are %v", path, got.Header)
			}
			if got.StatusCode < 300 {
				continue
			}
			var reported errorDocument
			testkit.Must(t, xml.Unmarshal([]byte(text(t, got)), &reported))
			if code := got.Header.Get("x-ms-error-code"); code == "" || reported.Code != code || !strings.Contains(reported.Message, got.Header.Get("x-ms-request-id")) {
				t.Errorf("%s: told %+v with code %s", path, reported, code)
			}
		}
	}
}

// A HEAD of what is not there has its code in a header, and no body.
func TestHead(t *testing.T) {
	y := newYard(t)
	y.container("box")
	got := y.ask("HEAD", "/blob/eventyard/box/none", nil, nil, y.own())
	if got.StatusCode != 404 || got.Header.Get("x-ms-error-code") != "BlobNotFound" || text(t, got) != "" {
		t.Errorf("got %d %v", got.StatusCode, got.Header)
	}
	if got := y.ask("HEAD", "/blob/eventyard/box?restype=container", nil, nil, y.own()); got.StatusCode != 200 || got.Header.Get("ETag") == "" {
		t.Errorf("got %d %v", got.StatusCode, got.Header)
	}
}

// What is not offered says so, in the words of the service, and does nothing.
func TestWhatIsNotOffered(t *testing.T) {
	y := newYard(t)
	y.container("box")
	put := map[string]string{"x-ms-blob-type": "BlockBlob"}
	with := func(more ...string) map[string]string {
		all := map[string]string{"x-ms-blob-type": "BlockBlob"}
		for i := 0; i < len(more); i += 2 {
			all[more[i]] = more[i+1]
		}
		return all
	}
	if got := y.ask("PUT", "/blob/eventyard/box/b", nil, put, y.own()); got.StatusCode != 201 {
		t.Fatalf("status %d: %s", got.StatusCode, text(t, got))
	}
	for _, test := range []struct {
		name, method, path string
		headers            map[string]string
		status             int
		code               string
	}{
		{"an append blob", "PUT", "box/a", with("x-ms-blob-type", "AppendBlob"), 501, "NotImplemented"},
		{"a page blob", "PUT", "box/a", with("x-ms-blob-type", "PageBlob"), 501, "NotImplemented"},
		{"a type that there is not", "PUT", "box/a", with("x-ms-blob-type", "Blob"), 400, "InvalidHeaderValue"},
		{"no type", "PUT", "box/a", nil, 400, "MissingRequiredHeader"},
		{"to append", "PUT", "box/b?comp=appendblock", nil, 409, "InvalidBlobType"},
		{"to append to nothing", "PUT", "box/a?comp=appendblock", nil, 404, "BlobNotFound"},
		{"a copy", "PUT", "box/a", map[string]string{"x-ms-copy-source": "http://127.0.0.1/x"}, 501, "NotImplemented"},
		{"a snapshot", "PUT", "box/b?comp=snapshot", nil, 501, "NotImplemented"},
		{"a tier", "PUT", "box/b?comp=tier", nil, 501, "NotImplemented"},
		{"a tier on writing", "PUT", "box/a", with("x-ms-access-tier", "Hot"), 400, "UnsupportedHeader"},
		{"tags on writing", "PUT", "box/a", with("x-ms-tags", "a=b"), 400, "UnsupportedHeader"},
		{"a public container", "PUT", "pub?restype=container", map[string]string{"x-ms-blob-public-access": "blob"}, 409, "PublicAccessNotPermitted"},
		{"a container with the name of an account", "PUT", "eventyard?restype=container", nil, 400, "InvalidResourceName"},
		{"a stored policy", "PUT", "box?restype=container&comp=acl", nil, 501, "NotImplemented"},
		{"something unknown", "GET", "box/b?comp=nonsense", nil, 400, "InvalidQueryParameterValue"},
		{"a method that there is not", "POST", "box/b", nil, 405, "UnsupportedHttpVerb"},
		{"a container without its restype", "PUT", "abc", nil, 400, "InvalidUri"},
		{"metadata that is no identifier", "PUT", "box/a", with("x-ms-meta-a-b", "c"), 400, "InvalidMetadata"},
		{"metadata without a name", "PUT", "box/a", with("x-ms-meta-", "c"), 400, "EmptyMetadataKey"},
		{"a lease that is no id", "PUT", "box/a", with("x-ms-lease-id", "c"), 400, "InvalidHeaderValue"},
		{"a date that is none", "PUT", "box/a", with("If-Modified-Since", "c"), 400, "InvalidHeaderValue"},
		{"a list of pages of nothing", "GET", "box?restype=container&comp=list&maxresults=0", nil, 400, "OutOfRangeQueryParameterValue"},
		{"a block without an id", "PUT", "box/a?comp=block", nil, 400, "InvalidQueryParameterValue"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := y.ask(test.method, "/blob/eventyard/"+test.path, nil, test.headers, y.own())
			if got.StatusCode != test.status || got.Header.Get("x-ms-error-code") != test.code {
				t.Errorf("got %d %s, want %d %s: %s", got.StatusCode, got.Header.Get("x-ms-error-code"), test.status, test.code, text(t, got))
			}
		})
	}
	if got := y.ask("GET", "/blob/eventyard/box?restype=container&comp=list", nil, nil, y.own()); strings.Count(text(t, got), "<Blob>") != 1 {
		t.Error("something was done all the same")
	}
}

// A body that is not the one announced is not stored.
func TestChecksums(t *testing.T) {
	y := newYard(t)
	y.container("box")
	sum := md5.Sum([]byte("right"))
	for _, test := range []struct {
		name    string
		headers map[string]string
		body    string
		status  int
		code    string
	}{
		{"the right MD5", map[string]string{"Content-MD5": base64.StdEncoding.EncodeToString(sum[:])}, "right", 201, ""},
		{"a wrong MD5", map[string]string{"Content-MD5": base64.StdEncoding.EncodeToString(sum[:])}, "wrong", 400, "Md5Mismatch"},
		{"no MD5", map[string]string{"Content-MD5": "abc"}, "right", 400, "InvalidMd5"},
		{"a wrong CRC64", map[string]string{"x-ms-content-crc64": "AAAAAAAAAAA="}, "right", 400, "Crc64Mismatch"},
		{"a wrong MD5 of a large body", map[string]string{"Content-MD5": base64.StdEncoding.EncodeToString(sum[:])}, strings.Repeat("x", 100_000), 400, "Md5Mismatch"},
	} {
		t.Run(test.name, func(t *testing.T) {
			path := "/blob/eventyard/box/" + strings.ReplaceAll(test.name, " ", "-")
			test.headers["x-ms-blob-type"] = "BlockBlob"
			got := y.ask("PUT", path, []byte(test.body), test.headers, y.own())
			if got.StatusCode != test.status || got.Header.Get("x-ms-error-code") != test.code {
				t.Errorf("got %d %s: %s", got.StatusCode, got.Header.Get("x-ms-error-code"), text(t, got))
			}
			there := y.ask("HEAD", path, nil, nil, y.own()).StatusCode == 200
			testkit.Equal(t, there, (test.status == 201), "it is there")
		})
	}
	if entries, err := y.fs.List("."); err != nil || len(entries) != 0 {
		t.Errorf("files are left: %v, %v", entries, err)
	}
}

// A body without a length, or with too much of one, is refused before it is read.
func TestBodiesHaveALength(t *testing.T) {
	y := newYard(t)
	y.container("box")
	for length, code := range map[int64]string{-1: "MissingContentLengthHeader", 257 << 20: "RequestBodyTooLarge"} {
		r := httptest.NewRequest("PUT", "/blob/eventyard/box/b", strings.NewReader("x"))
		r.Host, r.ContentLength = "127.0.0.1", length
		r.Header.Set("x-ms-blob-type", "BlockBlob")
		r.Header.Set("x-ms-date", time.Now().UTC().Format(http.TimeFormat))
		y.own()(r)
		w := httptest.NewRecorder()
		y.frame.ServeHTTP(w, r)
		testkit.Equal(t, w.Header().Get("x-ms-error-code"), code,
			"a length of %d: %d %s", length, w.Code, w.Body)
	}
}

// More uploads than are allowed wait, and are refused when that takes too long.
func TestUploadsAreBounded(t *testing.T) {
	y := newYard(t, func(c *Config, _ *access.Config) { c.MaxUploads, c.Patience = 1, 50*time.Millisecond })
	y.container("box")
	y.handler.uploads <- struct{}{} // somebody else's
	put := func(size int) *http.Response {
		return y.ask("PUT", "/blob/eventyard/box/b", make([]byte, size), map[string]string{"x-ms-blob-type": "BlockBlob"}, y.own())
	}
	if got := put(10_000); got.StatusCode != 503 || got.Header.Get("x-ms-error-code") != "ServerBusy" {
		t.Errorf("got %d", got.StatusCode)
	}
	testkit.Equal(t, put(10).StatusCode, 201, "a small one")
	<-y.handler.uploads
	testkit.Equal(t, put(10_000).StatusCode, 201, "with a place")
}

// A list costs memory by what there is to list, so that only some are made at once.
func TestListsAreBounded(t *testing.T) {
	y := newYard(t, func(c *Config, _ *access.Config) { c.Patience = 50 * time.Millisecond })
	y.container("box")
	for range maxLists { // somebody else's
		y.handler.lists <- struct{}{}
	}
	for _, path := range []string{"/blob/eventyard/box?restype=container&comp=list", "/blob/eventyard?comp=list"} {
		if got := y.ask("GET", path, nil, nil, y.own()); got.StatusCode != 503 || got.Header.Get("x-ms-error-code") != "ServerBusy" {
			t.Errorf("%s: got %d", path, got.StatusCode)
		}
	}
	<-y.handler.lists
	for range 3 { // each gives its place back
		if got := y.ask("GET", "/blob/eventyard/box?restype=container&comp=list", nil, nil, y.own()); got.StatusCode != 200 {
			t.Errorf("with a place: %d", got.StatusCode)
		}
	}
}

// Requests are counted by operation and status, and no client makes labels of its own.
func TestMetrics(t *testing.T) {
	registry := prometheus.NewRegistry()
	y := newYard(t, func(c *Config, _ *access.Config) { c.Metrics = registry })
	y.container("box")
	y.ask("GET", "/blob/eventyard/box/none", nil, nil, y.own())
	y.ask("GET", "/blob/eventyard/box/none?comp=nonsense", nil, nil, y.own())
	families, err := registry.Gather()
	testkit.Must(t, err)
	var got []string
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == "eventyard_blob_requests_total" {
				got = append(got, fmt.Sprint(m.GetLabel()[0].GetValue(), " ", m.GetLabel()[1].GetValue(), " ", m.GetCounter().GetValue()))
			}
		}
	}
	testkit.Slices(t, got, []string{"CreateContainer 201 1", "GetBlob 404 1", "none 400 1"}, "counted")
}
