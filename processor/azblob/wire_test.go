package azblob_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	storagelease "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/lease"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/processor"
	"github.com/eventyard/eventyard/processor/azblob"
)

// wire is the way to the service, on which a test does something to requests.
type wire struct {
	mu sync.Mutex
	do func(r *http.Request, send func() (*http.Response, error)) (*http.Response, error)
	// sent counts the requests by method and the blob's kind, such as "PUT ownership".
	sent map[string]int
}

func (w *wire) Do(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	do := w.do
	w.sent[kindOf(r)]++
	w.mu.Unlock()
	send := func() (*http.Response, error) { return http.DefaultClient.Do(r) }
	if do == nil {
		return send()
	}
	return do(r, send)
}

func kindOf(r *http.Request) string {
	for _, kind := range []string{"ownership", "checkpoint", "epoch", "fact"} {
		if strings.Contains(r.URL.Path, "/"+kind+"/") {
			return r.Method + " " + kind
		}
	}
	return r.Method
}

// count gives how often such a request was sent since the last call.
func (w *wire) count(kind string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.sent[kind]
	delete(w.sent, kind)
	return n
}

// first lets something happen to the first request of a kind.
func (w *wire) first(kind string, do func(send func() (*http.Response, error)) (*http.Response, error)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.sent)
	var once sync.Once
	w.do = func(r *http.Request, send func() (*http.Response, error)) (answer *http.Response, err error) {
		hit := false
		if kindOf(r) == kind {
			once.Do(func() { hit = true; answer, err = do(send) })
		}
		if !hit {
			return send()
		}
		return answer, err
	}
}

// always answers every request of a kind itself.
func (w *wire) always(kind string, answer func() *http.Response) {
	w.mu.Lock()
	defer w.mu.Unlock()
	clear(w.sent)
	w.do = func(r *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
		if kindOf(r) == kind {
			a := answer()
			a.Request = r
			return a, nil
		}
		return send()
	}
}

var errCut = errors.New("the connection was cut")

// answerLost sends a request and loses the answer.
func answerLost(send func() (*http.Response, error)) (*http.Response, error) {
	if answer, err := send(); err == nil {
		answer.Body.Close()
	}
	return nil, errCut
}

// busy is the service's answer to a client that asks too much.
func busy(status int) *http.Response {
	return &http.Response{
		StatusCode: status, Status: http.StatusText(status), Body: io.NopCloser(strings.NewReader("")),
		Header: http.Header{"X-Ms-Error-Code": {"ServerBusy"}, "Retry-After-Ms": {"1"}},
	}
}

// wired is a store on a wire, and another beside it.
func wired(t *testing.T) (*wire, processor.Store, processor.Store, *container.Client) {
	t.Helper()
	w := &wire{sent: map[string]int{}}
	options := &container.ClientOptions{}
	options.Transport = w
	service := azurite(t)
	c := newContainer(t, service, options)
	name := c.URL()[strings.LastIndexByte(c.URL(), '/')+1:]
	beside, err := azblob.FromConnectionString(service.Connection(), name, azblob.Config{})
	testkit.Must(t, err)
	return w, azblob.New(c, azblob.Config{}), beside, c
}

// A client that sent the write again would be told that its condition fails, by its own first try.
func TestAWriteWhoseAnswerIsLostIsNotSentAgain(t *testing.T) { // P3
	w, s, beside, _ := wired(t)
	w.first("PUT ownership", answerLost)
	l := processor.Lease{Partition: "0", Owner: "a", Epoch: 1}
	won, err := s.Claim(t.Context(), group, []processor.Lease{l})
	if !errors.Is(err, errCut) || len(won) != 0 {
		t.Fatalf("claim gave %+v, %v", won, err)
	}
	testkit.Equal(t, w.count("PUT ownership"), 1, "the write was sent")
	found := lease(t, beside, "0")
	if found.Owner != "a" || found.Epoch != 1 {
		t.Errorf("the lease is %+v", found)
	}
	claim(t, s, found) // reading again, the owner finds that it has it, and renews
}

func TestASaveWhoseAnswerIsLostIsNeitherAConflictNorSentAgain(t *testing.T) { // P7
	w, s, _, _ := wired(t)
	l, c := saved(t, s, processor.Lease{Partition: "0", Owner: "a", Epoch: 1}, 1)
	w.first("PUT checkpoint", answerLost)
	c.Sequence = 2
	testkit.ErrorIs(t, testkit.Err(s.Save(t.Context(), group, l, c)), errCut, "save")
	testkit.Equal(t, w.count("PUT checkpoint"), 1, "the write was sent")
	if c = begin(t, s, l); c.Sequence != 2 {
		t.Errorf("the checkpoint is %+v", c)
	}
}

func TestAThrottledWriteIsSentAgain(t *testing.T) { // P3
	for _, status := range []int{http.StatusServiceUnavailable, http.StatusTooManyRequests} {
		w, s, _, _ := wired(t)
		w.first("PUT ownership", func(func() (*http.Response, error)) (*http.Response, error) { return busy(status), nil })
		claim(t, s, processor.Lease{Partition: "0", Owner: "a", Epoch: 1})
		testkit.Equal(t, w.count("PUT ownership"), 2, "after %d the write was sent", status)
	}
}

func TestThrottlingWithoutEndIsAnErrorAndNoConflict(t *testing.T) { // P3
	w, s, _, _ := wired(t)
	l := claim(t, s, processor.Lease{Partition: "0", Owner: "a", Epoch: 1})
	w.always("PUT ownership", func() *http.Response { return busy(http.StatusServiceUnavailable) })
	if won, err := s.Claim(t.Context(), group, []processor.Lease{l}); !bloberror.HasCode(err, bloberror.ServerBusy) || len(won) != 0 {
		t.Errorf("claim gave %+v, %v", won, err)
	}
	w.always("PUT checkpoint", func() *http.Response { return busy(http.StatusTooManyRequests) })
	_, err := s.Save(t.Context(), group, l, processor.Checkpoint{Partition: "0", Sequence: 1})
	if !bloberror.HasCode(err, bloberror.ServerBusy) || errors.Is(err, processor.ErrConflict) || errors.Is(err, processor.ErrFenced) {
		t.Errorf("save: %v", err)
	}
}

func TestAReadIsSentAgain(t *testing.T) { // P3
	w, s, _, _ := wired(t)
	l := claim(t, s, processor.Lease{Partition: "0", Owner: "a", Epoch: 1})
	w.first("HEAD checkpoint", func(func() (*http.Response, error)) (*http.Response, error) {
		return busy(http.StatusInternalServerError), nil
	})
	begin(t, s, l)
	testkit.Equal(t, w.count("HEAD checkpoint"), 2, "the read was sent")
}

// A storage lease also answers 412, but says nothing about versions.
func TestABlobUnderAStorageLeaseIsAnErrorAndNoConflict(t *testing.T) { // P7
	_, s, _, c := wired(t)
	l, cp := saved(t, s, processor.Lease{Partition: "0", Owner: "a", Epoch: 1}, 1)
	name := strings.ToLower(group.Namespace+"/"+group.Hub+"/"+group.Group) + "/checkpoint/0"
	held, err := storagelease.NewBlobClient(c.NewBlobClient(name), nil)
	testkit.Must(t, err)
	testkit.Must(t, testkit.Err(held.AcquireLease(t.Context(), 60, nil)))
	_, err = s.Save(t.Context(), group, l, cp)
	if !bloberror.HasCode(err, bloberror.LeaseIDMissing) || errors.Is(err, processor.ErrConflict) {
		t.Errorf("save: %v", err)
	}
}

func TestAContainerThatDoesNotExistIsAnError(t *testing.T) { // P3
	service := azurite(t)
	s, err := azblob.FromConnectionString(service.Connection(), newName(), azblob.Config{})
	testkit.Must(t, err)
	if got, err := s.Leases(t.Context(), group); !bloberror.HasCode(err, bloberror.ContainerNotFound) {
		t.Errorf("leases gave %+v, %v", got, err)
	}
	if got, err := s.Checkpoints(t.Context(), group); !bloberror.HasCode(err, bloberror.ContainerNotFound) {
		t.Errorf("checkpoints gave %+v, %v", got, err)
	}
	lease := []processor.Lease{{Partition: "0", Owner: "a", Epoch: 1}}
	if got, err := s.Claim(t.Context(), group, lease); !bloberror.HasCode(err, bloberror.ContainerNotFound) {
		t.Errorf("claim gave %+v, %v", got, err)
	}
}

func TestTheServicesAPIVersionIsChosen(t *testing.T) { // P8
	service := azurite(t)
	target, err := url.Parse(service.URL)
	testkit.Must(t, err)
	var mu sync.Mutex
	versions := map[string]int{}
	proxy := httptest.NewServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		mu.Lock()
		versions[strings.Join(r.In.Header.Values("x-ms-version"), ",")]++
		mu.Unlock()
		r.SetURL(target)
	}})
	defer proxy.Close()

	c := newContainer(t, service, nil)
	name := c.URL()[strings.LastIndexByte(c.URL(), '/')+1:]
	connection := strings.ReplaceAll(service.Connection(), service.URL, proxy.URL)
	s, err := azblob.FromConnectionString(connection, name, azblob.Config{APIVersion: "2021-12-02"})
	testkit.Must(t, err)
	l := claim(t, s, processor.Lease{Partition: "0", Owner: "a", Epoch: 1}) // the service checks the signature
	save(t, s, l, begin(t, s, l))
	lease(t, s, "0")
	mu.Lock()
	defer mu.Unlock()
	if len(versions) != 1 || versions["2021-12-02"] == 0 {
		t.Errorf("requests were sent in versions %v", versions)
	}
}
