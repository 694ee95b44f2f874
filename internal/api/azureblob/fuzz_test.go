package azureblob

import (
	"bytes"
	"encoding/xml"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/eventyard/eventyard/internal/hubs/blob"
	"github.com/eventyard/eventyard/internal/testkit"
)

// FuzzPath: what is taken apart is what it was put together of.
func FuzzPath(f *testing.F) {
	for _, seed := range []string{"/blob/eventyard", "/blob/eventyard/", "/blob/a/b/c", "/blob/a/b/c%2Fd//e", "/blob//x", "/blob/a//x", "/blob/%zz", "/x", "/blob/a%2Fb/c"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		at, level, err := parsePath(path)
		if err != nil {
			return
		}
		if level == atBlob != (at.Blob != "") || at.Blob != "" && at.Container == "" || !utf8.ValidString(at.String()) {
			t.Fatalf("%q is %+v", path, at)
		}
		if level != atBlob {
			return
		}
		again, _, err := parsePath(Prefix + url.PathEscape(at.Account) + "/" + url.PathEscape(at.Container) + "/" + url.PathEscape(at.Blob))
		if err != nil || again != at {
			t.Fatalf("%+v came back as %+v, %v", at, again, err)
		}
	})
}

// FuzzRange: a range that is read lies within the body.
func FuzzRange(f *testing.F) {
	for _, seed := range []string{"bytes=0-", "bytes=0-0", "bytes=5-9", "bytes=-5", "bytes=9-5", "bytes=0-18446744073709551615", "bytes=0-,5-", "items=0-1", "bytes=+1-2"} {
		f.Add(seed, int64(10))
	}
	f.Fuzz(func(t *testing.T, text string, size int64) {
		if size < 0 {
			return
		}
		s, ok := parseRange(text)
		if !ok {
			return
		}
		offset, length, err := s.within(size)
		if err == nil && (offset < 0 || length <= 0 || offset+length > size || offset != s.first) {
			t.Fatalf("%q of %d bytes is %d bytes at %d", text, size, length, offset)
		}
		if err != nil && s.first < size {
			t.Fatalf("%q of %d bytes: %v", text, size, err)
		}
	})
}

// FuzzBlockList: a list that is read has ids that are good, and comes back when it is
// written again.
func FuzzBlockList(f *testing.F) {
	for _, seed := range []string{
		`<BlockList><Latest>MQ==</Latest><Committed>Mg==</Committed><Uncommitted>Mw==</Uncommitted></BlockList>`,
		`<?xml version="1.0" encoding="utf-8"?><BlockList/>`, `<BlockList>`, `<BlockList></BlockList></BlockList>`, `<X/>`, ``, `<BlockList><Latest><a/></Latest></BlockList>`,
		`<!DOCTYPE a [<!ENTITY b "c">]><BlockList><Latest>&b;</Latest></BlockList>`,
	} {
		f.Add([]byte(seed))
	}
	names := map[blob.BlockSource]string{blob.Latest: "Latest", blob.Committed: "Committed", blob.Uncommitted: "Uncommitted"}
	f.Fuzz(func(t *testing.T, text []byte) {
		list, err := parseBlockList(text)
		if err != nil {
			return
		}
		var b strings.Builder
		b.WriteString(xml.Header + "<BlockList>")
		for _, n := range list {
			if !isBlockID(n.ID) {
				t.Fatalf("%q is no id", n.ID)
			}
			b.WriteString("<" + names[n.Source] + ">" + n.ID + "</" + names[n.Source] + ">")
		}
		b.WriteString("</BlockList>")
		again, err := parseBlockList([]byte(b.String()))
		if err != nil || len(again) != len(list) {
			t.Fatalf("%d blocks came back as %d, %v", len(list), len(again), err)
		}
		for i := range list {
			if again[i] != list[i] {
				t.Fatalf("block %d is %v, was %v", i, again[i], list[i])
			}
		}
	})
}

// FuzzRequest sends any request at all through the whole listener without a good signature: it
// is refused, with a code, and nothing panics.
func FuzzRequest(f *testing.F) {
	y := newYard(f)
	_, err := y.blobs.CreateContainer(f.Context(), blob.Path{Account: Account, Container: "box"}, nil)
	testkit.Must(f, err)
	f.Add("GET", "/blob/eventyard/box/b", "comp=list&restype=container", "SharedKey eventyard:AAAA", "x-ms-meta-A", "v", "body")
	f.Add("PUT", "/blob/eventyard/box/b", "comp=block&blockid=MQ==", "SharedKeyLite eventyard:AAAA", "x-ms-lease-id", "v", "")
	f.Add("PUT", "/blob/eventyard/box/b", "sv=2022-11-02&sr=b&sp=rw&se=2099-01-01&sig=AAAA", "", "x-ms-range", "bytes=0-", "")
	f.Add("GET", "/blob/eventyard/box", "sv=2022-11-02&ss=b&srt=sco&sp=rwdl&se=2099-01-01T00:00:00Z&st=2000-01-01&sip=1.1.1.1-2.2.2.2&spr=https&sig=AAAA", "", "", "", "")
	f.Add("GET", "/blob/devstoreaccount1", "a=1&A=2&%zz", "Basic x", "Host", "v", "")
	f.Fuzz(func(t *testing.T, method, path, query, authorization, name, value, body string) {
		if strings.HasPrefix(strings.ToLower(authorization), "bearer") {
			return // any is good here
		}
		r := httptest.NewRequest("GET", "/", strings.NewReader(body))
		r.Method, r.URL = method, &url.URL{Path: path, RawQuery: query}
		r.RequestURI = path + "?" + query
		r.Host = "127.0.0.1"
		r.Header = http.Header{"X-Ms-Date": {time.Now().UTC().Format(http.TimeFormat)}, "Authorization": {authorization}, http.CanonicalHeaderKey(name): {value}}
		w := httptest.NewRecorder()
		y.frame.ServeHTTP(w, r)
		if w.Code < 400 || w.Header().Get("x-ms-error-code") == "" {
			t.Fatalf("answered %d %v", w.Code, w.Header())
		}
		all, _ := io.ReadAll(w.Body)
		if method != "HEAD" && !bytes.Contains(all, []byte("<Code>")) {
			t.Fatalf("answered %q", all)
		}
	})
}

// FuzzSharedKey: what one side signs the other finds good, and not when anything of it was
// changed on the way.
func FuzzSharedKey(f *testing.F) {
	f.Add("GET", "/blob/eventyard/box/a%2Fb", "comp=metadata&x=a&Y=b", "x-ms-meta-a_b", "v", "x-ms-meta-ab")
	f.Add("GET", "/", "", "0", "", "'0")
	f.Add("PUT", "/blob/eventyard/b", "prefix=%20a%2B&%3A", "x-ms-", "", "X-MS-META-Z")
	key := []byte("key")
	f.Fuzz(func(t *testing.T, method, path, query, name, value, other string) {
		request := func() *http.Request {
			r := &http.Request{Method: method, RequestURI: "/" + path + "?" + query, URL: &url.URL{Path: path, RawQuery: query}, Header: http.Header{}}
			r.Header.Set("x-ms-"+name, value)
			r.Header.Set("x-ms-"+other, "other")
			return r
		}
		parameters, err := parseQuery(query)
		if err != nil || strings.ContainsFunc(name+other, func(r rune) bool { return r > '~' }) { // no header has such a name
			t.Skip()
		}
		for _, text := range stringsToSign(request(), parameters, "eventyard") {
			if !signedBy([][]byte{[]byte("wrong"), key}, sum(t, "a2V5", text), stringsToSign(request(), parameters, "eventyard")...) {
				t.Fatal("its own signature is not good")
			}
			changed := request()
			changed.Header.Set("If-Match", "changed")
			if signedBy([][]byte{key}, sum(t, "a2V5", text), stringsToSign(changed, parameters, "eventyard")...) {
				t.Fatal("the signature of another request is good")
			}
		}
		testkit.MustEqual(t, compareByWeight(name, other), -compareByWeight(other, name), "%q and %q have no order", name, other)
		testkit.MustEqual(t, (name == other), (compareByWeight(name, other) == 0), "%q and %q have no order", name, other)
	})
}
