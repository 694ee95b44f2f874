// Package admin manages a yard: hubs and groups, topics and subscriptions, functions, policies, and
// what could not be delivered or handled. It is what the command line uses. A Client speaks the
// HTTP API under /api/v1; the types here are that API's JSON, and the server itself reads and
// writes them.
//
//	client, err := admin.New(admin.Config{}) // a yard on this machine
//	_, err = client.CreateHub(ctx, admin.HubRequest{Name: "orders"})
//	one, err := admin.Event{Body: []byte("hello")}.Encode()
//	sent, err := client.Send(ctx, "orders", admin.Batch{Events: []json.RawMessage{one}, Key: "customer-42"})
//	for ev, err := range client.Read(ctx, admin.Query{Hub: "orders"}, nil) {
//		… // ev is JSON: partition, sequence, body, …
//	}
//
// It sends and reads for tools and tests; programs that handle events use package hub or processor.
//
// Errors that the yard answers with are *Problems, with what to try next.
package admin

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// DefaultServer is where a yard listens when nobody said otherwise.
const DefaultServer = "http://127.0.0.1:8080"

// Config says where the yard is. The zero value works.
type Config struct {
	// Server is the URL of the yard's HTTP listener; empty means DefaultServer.
	Server string
	// ConnectionString gives the policy and key that requests are signed with, or a
	// ready token, and limits them to its hub if it names one. Its endpoint is not
	// looked at: it leads to another listener.
	ConnectionString string
	// Policy and Key do the same for the whole namespace. With neither, nor a connection
	// string, the key is used that is valid for a yard on loopback.
	Policy, Key string
	// RootCAs are the authorities to trust at https; nil means the system's.
	RootCAs *x509.CertPool
	// Transport makes the requests; nil means over the network, and RootCAs is for that alone.
	Transport http.RoundTripper
	// Timeout bounds every call but reading; zero means 60 s.
	Timeout time.Duration
	// Pause is how long to wait before a lost tail is asked for again. Zero means
	// 100 ms at first, and twice as long each time up to 3 s.
	Pause time.Duration
	// Silence is how long a tail may send nothing, not even its heartbeat, before it
	// counts as lost; zero means 45 s, which is three heartbeats.
	Silence time.Duration
}

// Client speaks to one yard. All methods may be called by many goroutines at once.
type Client struct {
	cfg    Config
	base   *url.URL
	http   *http.Client
	signer *signer
}

// New makes a client; it does not connect.
func New(cfg Config) (*Client, error) {
	cfg.Server = cmp.Or(cfg.Server, DefaultServer)
	cfg.Timeout = cmp.Or(cfg.Timeout, time.Minute)
	cfg.Silence = cmp.Or(cfg.Silence, 45*time.Second)
	if isHostPort(cfg.Server) {
		cfg.Server = "http://" + cfg.Server
	}
	base, err := url.Parse(cfg.Server)
	if err != nil || base.Scheme != "http" && base.Scheme != "https" || base.Host == "" || !isPort(base.Port()) {
		return nil, fmt.Errorf("%q is no server: write it like %s", cfg.Server, DefaultServer)
	}
	signer, err := newSigner(cfg, base)
	if err != nil {
		return nil, err
	}
	if cfg.Transport == nil {
		cfg.Transport = overNetwork(cfg.RootCAs)
	}
	return &Client{
		cfg: cfg, base: base.JoinPath("api", "v1"), signer: signer,
		http: &http.Client{Transport: cfg.Transport},
	}, nil
}

func overNetwork(authorities *x509.CertPool) http.RoundTripper {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	if authorities != nil {
		transport.TLSClientConfig = &tls.Config{RootCAs: authorities}
	}
	return transport
}

// isHostPort tells an address as serve takes it from a URL.
func isHostPort(server string) bool {
	host, port, err := net.SplitHostPort(server)
	if err != nil || host == "" {
		return false
	}
	return port != "" && isPort(port)
}

// isPort tells whether somebody can listen at a port; one that is not given is the scheme's.
func isPort(port string) bool {
	_, err := strconv.ParseUint(port, 10, 16)
	return err == nil || port == ""
}

// Server is the URL that the client asks.
func (c *Client) Server() string { return c.cfg.Server }

// Close frees idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Info is what a yard says of itself.
type Info struct {
	Name      string            `json:"name"`
	Version   string            `json:"version"`
	Namespace string            `json:"namespace"`
	Engine    string            `json:"engine"`
	Listeners map[string]string `json:"doors,omitempty"`
	// OpenAPI is the path of the API's description.
	OpenAPI string `json:"openapi"`
}

// Info asks the yard who it is.
func (c *Client) Info(ctx context.Context) (Info, error) {
	var info Info
	err := c.call(ctx, http.MethodGet, nil, nil, &info)
	if err == nil && info.Name != "eventyard" {
		return Info{}, &StrangerError{Server: c.cfg.Server}
	}
	return info, err
}

// call makes one request with a JSON body and reads a JSON answer; either may be nil.
func (c *Client) call(ctx context.Context, method string, path []string, body, answer any) error {
	return c.ask(ctx, request{method: method, path: path, body: body}, answer)
}

// one makes a request that is answered with one value.
func one[T any](ctx context.Context, c *Client, r request) (answer T, err error) {
	err = c.ask(ctx, r, &answer)
	return answer, err
}

// list makes a request that is answered with a list, the only member of the answer.
func list[T any](ctx context.Context, c *Client, name string, r request) ([]T, error) {
	answer, err := one[map[string][]T](ctx, c, r)
	return answer[name], err
}

// ask makes a request and reads its JSON answer, which may be nil.
func (c *Client) ask(ctx context.Context, r request, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, c.cfg.Timeout)
	defer cancel()
	response, err := c.do(ctx, r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if answer == nil {
		return nil
	}
	if err := json.NewDecoder(response.Body).Decode(answer); err != nil {
		if ctx.Err() != nil || IsCut(err) {
			return c.unreachable(err)
		}
		return &StrangerError{Server: c.cfg.Server}
	}
	return nil
}

type request struct {
	method string
	path   []string // segments behind /api/v1, not yet escaped
	query  url.Values
	header http.Header
	body   any // to be encoded, unless it is a json.RawMessage
}

func (r request) reader() (io.Reader, error) {
	if r.body == nil {
		return nil, nil
	}
	encoded, done := r.body.(json.RawMessage)
	if !done {
		var err error
		if encoded, err = json.Marshal(r.body); err != nil {
			return nil, err
		}
	}
	return bytes.NewReader(encoded), nil
}

// do sends a request and gives the answer if it is a success. The caller closes it. A
// token that the yard calls expired is replaced once: such a request was not carried out.
func (c *Client) do(ctx context.Context, r request) (*http.Response, error) {
	response, err := c.doOnce(ctx, r)
	if isExpired(err) && c.signer.renew() {
		return c.doOnce(ctx, r)
	}
	return response, err
}

func (c *Client) doOnce(ctx context.Context, r request) (*http.Response, error) {
	if slices.Contains(r.path, "") {
		return nil, &Problem{ // which a path cannot say
			Type: problemPrefix + "not-found", Title: "It does not exist", Status: http.StatusNotFound,
			Detail: "nothing has an empty name", Next: "name the hub, the group or the partition",
		}
	}
	body, err := r.reader()
	if err != nil {
		return nil, fmt.Errorf("encode request: %w", err)
	}
	hr, err := http.NewRequestWithContext(ctx, r.method, c.url(r), body)
	if err != nil {
		return nil, fmt.Errorf("make request: %w", err)
	}
	for name, values := range r.header {
		hr.Header[name] = values
	}
	hr.Header.Set("Authorization", c.signer.authorization(time.Now()))
	if r.body != nil {
		hr.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(hr)
	if err != nil {
		return nil, c.unreachable(err)
	}
	if response.StatusCode/100 != 2 {
		defer response.Body.Close()
		return nil, c.problem(response)
	}
	return response, nil
}

func (c *Client) url(r request) string {
	u := *c.base
	var raw strings.Builder
	raw.WriteString(u.EscapedPath())
	for _, segment := range r.path {
		raw.WriteString("/" + escape(segment))
	}
	u.RawPath = raw.String()
	u.Path, _ = url.PathUnescape(u.RawPath) // what was escaped here
	u.RawQuery = r.query.Encode()
	return u.String()
}

// escape writes a segment so that it stays one: whoever handles a path takes "." and ".."
// for steps in it, and a group of that name for the hub above.
func escape(segment string) string {
	if segment == "." || segment == ".." {
		return strings.ReplaceAll(segment, ".", "%2E")
	}
	return url.PathEscape(segment)
}

func (c *Client) unreachable(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err // without the method and URL, which the message has in its own way
	}
	return &UnreachableError{Server: c.cfg.Server, Err: err}
}

// maxProblemBytes is far more than any problem measures.
const maxProblemBytes = 64 << 10

// problem reads what the yard says went wrong.
func (c *Client) problem(response *http.Response) error {
	body, err := io.ReadAll(io.LimitReader(response.Body, maxProblemBytes))
	if err != nil {
		return c.unreachable(err)
	}
	var p Problem
	if err := json.Unmarshal(body, &p); err != nil || p.Title == "" {
		return &StrangerError{Server: c.cfg.Server, Status: response.Status}
	}
	p.Status = response.StatusCode
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil {
		p.RetryAfter = time.Duration(seconds) * time.Second
	}
	return &p
}
