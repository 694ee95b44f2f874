package azureblob

import (
	"io"
	"net/http"
	"net/http/httptest"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/access"
	"github.com/eventyard/eventyard/internal/testkit"
)

// An upload may pause, and may be slow, and may not be both for long: who sends a byte now
// and then would keep everybody else's place.
func TestHowLongAnUploadMayTake(t *testing.T) {
	const patience = 30 * time.Second
	began := time.Now()
	for _, test := range []struct {
		name     string
		at       time.Duration // since it began
		received int64
		want     time.Duration // until then the next bytes have to be there
	}{
		{"at first", 0, 0, patience},
		{"a byte now and then", 20 * time.Second, 10, patience},
		{"a byte now and then for a while", 29 * time.Second, 20, patience},
		{"a slow client that keeps on", 10 * time.Minute, 11 * 60 * minUploadRate, 10*time.Minute + patience},
		{"a slow client that has become slower", 10 * time.Minute, 595 * minUploadRate, 595*time.Second + patience},
		{"a fast one that pauses", time.Minute, 100 << 20, time.Minute + patience},
	} {
		t.Run(test.name, func(t *testing.T) {
			testkit.Equal(t, uploadDue(began, began.Add(test.at), test.received, patience).Sub(began), test.want, "it is due after")
		})
	}
}

// An upload that stops coming is refused, gives its place back, and leaves nothing.
func TestAnUploadThatStops(t *testing.T) {
	y := newYard(t, func(c *Config, _ *access.Config) { c.MaxUploads, c.Patience = 1, 100*time.Millisecond })
	y.container("box")
	body, writer := io.Pipe()
	defer writer.Close()
	go func() { _, _ = writer.Write(make([]byte, 5000)) }()
	r, err := http.NewRequestWithContext(t.Context(), "PUT", y.url()+"/box/b", body)
	testkit.Must(t, err)
	r.ContentLength = 100_000
	r.Header.Set("x-ms-blob-type", "BlockBlob")
	r.Header.Set("x-ms-date", time.Now().UTC().Format(http.TimeFormat))
	y.own()(r)
	got, err := y.server.Client().Do(r)
	testkit.Must(t, err)
	testkit.Must(t, got.Body.Close())
	testkit.Equal(t, got.StatusCode, http.StatusRequestTimeout, "got %d %s", got.StatusCode, got.Header.Get("x-ms-error-code"))
	testkit.Equal(t, got.Header.Get("x-ms-error-code"), "OperationTimedOut", "got %d %s", got.StatusCode, got.Header.Get("x-ms-error-code"))
	if again := y.ask("PUT", "/blob/eventyard/box/b", make([]byte, 10_000), map[string]string{"x-ms-blob-type": "BlockBlob"}, y.own()); again.StatusCode != 201 {
		t.Errorf("another upload: %d", again.StatusCode)
	}
	if y.shared != nil {
		return // where what an upload leaves may stay for a while
	}
	if entries, err := y.fs.List("."); err != nil || len(entries) != 1 {
		t.Errorf("there are %d files, %v", len(entries), err)
	}
}

// deadlines is a connection that notes until when it may be read from.
type deadlines struct {
	*httptest.ResponseRecorder
	read time.Time
}

func (d *deadlines) SetReadDeadline(t time.Time) error { d.read = t; return nil }

// When all of a body is there its sender has nothing more to do in time: else a slow disk
// would count as a client that has gone.
func TestTheDiskMayBeSlow(t *testing.T) {
	y := newYard(t)
	y.container("box")
	r := httptest.NewRequest("PUT", "/blob/eventyard/box/b", strings.NewReader(strings.Repeat("x", 10_000)))
	r.Host = "127.0.0.1"
	r.Header.Set("x-ms-blob-type", "BlockBlob")
	r.Header.Set("x-ms-date", time.Now().UTC().Format(http.TimeFormat))
	y.own()(r)
	w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	began := time.Now()
	y.frame.ServeHTTP(w, r)
	if w.Code != 201 || w.read.Before(began.Add(diskTime)) {
		t.Errorf("status %d, the client is given up after %v", w.Code, w.read.Sub(began))
	}
}

// R1: a blob whose body is not there any more is an error that a client can understand.
func TestABodyThatIsGone(t *testing.T) {
	y := newYard(t)
	box := y.container("box")
	for name, body := range map[string]string{"gone": strings.Repeat("body", 50_000), "nothing": ""} {
		testkit.Must(t, testkit.Err(y.client().UploadBuffer(t.Context(), "box", name, []byte(body), nil)))
	}
	y.loseBodies(".")
	for _, headers := range []map[string]string{nil, {"x-ms-range": "bytes=0-0"}, {"x-ms-range": "bytes=0-0", "x-ms-range-get-content-md5": "true"}} {
		got := y.ask("GET", "/blob/eventyard/box/gone", nil, headers, y.own())
		text, _ := io.ReadAll(got.Body)
		if got.StatusCode != 500 || got.Header.Get("x-ms-error-code") != "InternalError" || !strings.Contains(string(text), "<Code>InternalError</Code>") {
			t.Errorf("got %d %v %s", got.StatusCode, got.Header, text)
		}
		for _, name := range []string{"ETag", "Content-Range", "x-ms-blob-type", "Content-Md5"} {
			testkit.Equal(t, got.Header.Get(name), "", "%s", name)
		}
	}
	testkit.Must(t, testkit.Err(box.NewBlobClient("nothing").DownloadStream(t.Context(), nil)))
}

// loseBodies removes every body, or every file in a folder.
func (y *yard) loseBodies(folder string) {
	y.t.Helper()
	if y.shared != nil {
		for _, name := range testkit.Value(y.shared.List(y.t.Context()))(y.t) {
			testkit.Must(y.t, y.shared.Remove(y.t.Context(), name))
		}
		return
	}
	entries := testkit.Value(y.fs.List(folder))(y.t)
	for _, e := range entries {
		name := path.Join(folder, e.Name)
		if e.Dir {
			y.loseBodies(name)
			continue
		}
		testkit.Must(y.t, y.fs.Remove(name))
	}
}
