package azureblob

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
	"go.uber.org/goleak"

	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/hubs/access"
	"github.com/eventyard/eventyard/internal/hubs/blob"
	"github.com/eventyard/eventyard/internal/storage/storagetest"
	"github.com/eventyard/eventyard/internal/storage/vfs"
	"github.com/eventyard/eventyard/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// yard is a real blob store and real access, in memory, behind a real HTTP server with TLS.
type yard struct {
	t        testing.TB
	fs       *vfs.Mem
	shared   blob.Bodies // in place of fs where storage is on servers; else nil
	registry *access.Registry
	blobs    *blob.Service
	handler  *Handler
	frame    *frame.Frame
	server   *httptest.Server
}

func newYard(t testing.TB, change ...func(*Config, *access.Config)) *yard {
	t.Helper()
	log := testkit.Quiet()
	store := storagetest.Entries(t)
	settings := access.Config{
		Meta: store, Hub: func(string) (time.Time, bool) { return time.Time{}, false }, Development: true, AnyBearer: true, Log: log,
	}
	cfg := Config{Log: log}
	for _, c := range change {
		c(&cfg, &settings)
	}
	y := &yard{t: t, fs: vfs.NewMem()}
	var err error
	y.registry, err = access.Open(t.Context(), settings)
	testkit.Must(t, err)
	kept := blob.Config{Meta: store, FS: y.fs, Log: log}
	if bodies := storagetest.Bodies(t); bodies != nil {
		kept.FS, kept.Bodies, y.shared = nil, bodies, bodies
	}
	y.blobs, err = blob.Open(kept)
	testkit.Must(t, err)
	cfg.Blobs, cfg.Access = y.blobs, y.registry
	y.handler = New(cfg)
	api := y.handler.API()
	api.Serves = nil // whatever is asked
	y.frame = frame.New(frame.Config{LoopbackOnly: true, Log: log}, api)
	y.server = httptest.NewUnstartedServer(y.frame)
	y.server.Config.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelDebug)
	y.server.StartTLS()
	t.Cleanup(y.server.Close)
	return y
}

func (y *yard) url() string { return y.server.URL + "/blob/eventyard" }

func (y *yard) key() string {
	return y.registry.Account().Primary
}

// options make a client that trusts the server and tries once.
func (y *yard) options() azcore.ClientOptions {
	return azcore.ClientOptions{Transport: y.server.Client(), Retry: policy.RetryOptions{MaxRetries: -1}}
}

func (y *yard) connection() string {
	return "DefaultEndpointsProtocol=https;AccountName=eventyard;AccountKey=" + y.key() + ";BlobEndpoint=" + y.url() + ";"
}

// client is the official one, with the account's key.
func (y *yard) client() *azblob.Client {
	y.t.Helper()
	c, err := azblob.NewClientFromConnectionString(y.connection(), &azblob.ClientOptions{ClientOptions: y.options()})
	testkit.Must(y.t, err)
	return c
}

func (y *yard) service() *service.Client { return y.client().ServiceClient() }

// container makes one.
func (y *yard) container(name string) *container.Client {
	y.t.Helper()
	_, err := y.client().CreateContainer(y.t.Context(), name, nil)
	testkit.Must(y.t, err)
	return y.service().NewContainerClient(name)
}

// wantCode checks what the official client makes of a refusal.
func wantCode(t testing.TB, err error, code bloberror.Code) {
	t.Helper()
	if !bloberror.HasCode(err, code) {
		t.Errorf("got %v, want code %s", err, code)
	}
}

// ask sends a request of our own making; sign gives it the account's signature.
func (y *yard) ask(method, path string, body []byte, headers map[string]string, sign ...func(*http.Request)) *http.Response {
	y.t.Helper()
	r, err := http.NewRequestWithContext(y.t.Context(), method, y.server.URL+path, bytes.NewReader(body))
	testkit.Must(y.t, err)
	if len(body) == 0 {
		r.Body, r.ContentLength = http.NoBody, 0
	}
	r.Header.Set("x-ms-version", "2024-11-04")
	r.Header.Set("x-ms-date", time.Now().UTC().Format(http.TimeFormat))
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	for _, s := range sign {
		s(r)
	}
	response, err := y.server.Client().Do(r)
	testkit.Must(y.t, err)
	text, err := io.ReadAll(response.Body)
	testkit.Must(y.t, err)
	testkit.Must(y.t, response.Body.Close())
	response.Body = io.NopCloser(bytes.NewReader(text))
	return response
}

// signed signs a request by the documented rule, written down a second time.
func (y *yard) signed(account, key string) func(*http.Request) {
	return func(r *http.Request) {
		h := r.Header
		length := ""
		if r.ContentLength > 0 {
			length = strconv.FormatInt(r.ContentLength, 10)
		}
		lines := []string{r.Method, "", "", length, h.Get("Content-MD5"), h.Get("Content-Type"), "", h.Get("If-Modified-Since"),
			h.Get("If-Match"), h.Get("If-None-Match"), h.Get("If-Unmodified-Since"), h.Get("Range")}
		text := strings.Join(lines, "\n") + "\n" + canonicalHeaders(h, strings.Compare) + "/" + account + r.URL.EscapedPath()
		q := r.URL.Query()
		for _, name := range []string{"blockid", "comp", "include", "maxresults", "restype"} { // in order; all that these tests use
			if q.Has(name) {
				text += "\n" + name + ":" + q.Get(name)
			}
		}
		h.Set("Authorization", "SharedKey "+account+":"+sum(y.t, key, text))
	}
}

func sum(t testing.TB, key, text string) string {
	plain, err := base64.StdEncoding.DecodeString(key)
	testkit.Must(t, err)
	mac := hmac.New(sha256.New, plain)
	mac.Write([]byte(text))
	return base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// own signs with the account's present key.
func (y *yard) own() func(*http.Request) { return y.signed(Account, y.key()) }

func text(t testing.TB, r *http.Response) string {
	t.Helper()
	all, err := io.ReadAll(r.Body)
	testkit.Must(t, err)
	return string(all)
}

// anyToken is a credential that everybody has.
type anyToken struct{}

func (anyToken) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: "any", ExpiresOn: time.Now().Add(time.Hour)}, nil
}
