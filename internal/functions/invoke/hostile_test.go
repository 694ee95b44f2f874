package invoke

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"time"
	"unicode/utf16"
)

// zipped is what a server makes of an answer that compresses everything, whether that was asked for
// or not.
func zipped(text string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	io.WriteString(w, text)
	w.Close()
	return b.Bytes()
}

// F2: an answer that cannot be read may say that everything failed.
func TestAnAnswerThatIsPackedIsNotTakenForDone(t *testing.T) {
	for _, given := range []*http.Client{nil, {Transport: &http.Transport{DisableCompression: true}}} {
		asked := make(chan string, 1)
		s := serve(t, func(w http.ResponseWriter, r *http.Request) {
			asked <- r.Header.Get("Accept-Encoding")
			w.Header().Set("Content-Encoding", "gzip")
			w.Write(zipped(`{"status":"failed","error":"no money"}`))
		})
		a := does(t, caller(t, Config{URL: s.URL, Client: given}), threeEvents())
		wantFailed(t, a, 200, `"gzip"`, "nothing of the batch counts as done")
		if got := <-asked; got != "identity" {
			t.Errorf("it was asked for %q", got)
		}
	}
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Encoding", "identity") })
	if a := does(t, caller(t, Config{URL: s.URL}), threeEvents()); a.Verdict != Done {
		t.Errorf("what is not packed is %+v", a)
	}
	s = serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.WriteHeader(http.StatusNoContent)
	})
	if a := does(t, caller(t, Config{URL: s.URL}), threeEvents()); a.Verdict != Done {
		t.Errorf("nothing, packed, is %+v", a)
	}
}

func wide(text string) string {
	var b []byte
	for _, unit := range utf16.Encode([]rune("\ufeff" + text)) {
		b = append(b, byte(unit), byte(unit>>8))
	}
	return string(b)
}

// F2: where the length of an answer is not told, one that was cut short ends like any other.
func TestASuccessThatBreaksOffIsNone(t *testing.T) {
	for name, body := range map[string]string{
		"in the first name":     `{"resu`,
		"at the first brace":    `{`,
		"in a list":             `[{"index":0,`,
		"in something else":     `{"orders":[1,2`,
		"in another alphabet":   wide(`{"results":[{"index":1,"status":"failed"}]}`),
		"in a text of two lots": "{\"orders\":3}\n{\"batchItem",
	} {
		t.Run(name, func(t *testing.T) {
			wantFailed(t, readAs(http.StatusOK, nil, body), 200, "cannot be understood", "nothing of the batch counts as done")
		})
	}
}

// F2: what says that it failed has failed, in whatever words.
func TestASuccessWithAnErrorInItsBodyIsAFailure(t *testing.T) {
	for body, want := range map[string]string{
		`{"error":"no money"}`:                                  "no money",
		`{"error":{"code":5,"message":"no money"}}`:             "no money",
		`{"errorMessage":"no money","errorType":"ValueError"}`:  "no money",
		`{"orders":3,"error":true}`:                             "true",
		`{"error":"no money","results":null,"retryAfter":null}`: "no money",
		`{"error":"no money","results":[ ]}`:                    "no money",
		`{"status":"failed","error":"no money","results":[]}`:   "no money",
	} {
		wantFailed(t, readAs(http.StatusOK, nil, body), 200, want)
	}
	if a := readAs(http.StatusOK, nil, `{"error":"no money","retryAfter":5}`); a.Verdict != Later || a.Wait != 5*time.Second {
		t.Errorf("with a wish it is %+v", a)
	}
	for _, body := range []string{
		`{"error":null}`, `{"error":""}`, `{"error":false}`, `{"error":0}`, `{"error":{}}`, `{"error":[]}`, `{"status":"ok","error":"none"}`,
		`{"error":[],"results":[]}`, `{"message":"stored 3"}`,
	} {
		if a := readAs(http.StatusOK, nil, body); a.Verdict != Done || a.Each != nil {
			t.Errorf("%s is %+v", body, a)
		}
	}
}

// F2: a program that wants to speak of something else gives no answer, and must not keep the call
// for ever.
func TestSwitchingProtocolsIsAFailure(t *testing.T) {
	url := listener(t, func(conn net.Conn) {
		takeRequest(conn)
		io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: chat\r\n\r\n")
		io.Copy(io.Discard, conn) // until the other side hangs up
	})
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	done := make(chan Answer, 1)
	go func() {
		a, err := caller(t, Config{URL: url}).Do(ctx, threeEvents())
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		done <- a
	}()
	select {
	case a := <-done:
		wantFailed(t, a, 101, "answered 101 Switching Protocols")
	case <-time.After(10 * time.Second):
		t.Fatal("it waits beyond its deadline")
	}
}

func TestARedirectDoesNotShowSecrets(t *testing.T) {
	for location, want := range map[string]string{
		"https://user:secret@x/y?secret#secret": "https://x/y", "/login?secret": "/login", "https://x/%zz?secret": "", "": "",
	} {
		a := readAs(http.StatusFound, http.Header{"Location": {location}}, "")
		text := "answered 302 Found to " + want + ": redirects are not followed"
		if want == "" {
			text = "answered 302 Found: redirects are not followed"
		}
		wantFailed(t, a, 302, text)
	}
}
