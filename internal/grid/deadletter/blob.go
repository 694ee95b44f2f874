package deadletter

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/eventyard/eventyard/internal/grid/topics"
)

// The account that every storage emulator has, with the key that everybody knows.
const (
	emulatorAccount = "devstoreaccount1"
	emulatorKey     = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

// maxAnswerBytes is what is read of an answer: the SDK would take all that a server sends.
const maxAnswerBytes = 64 << 10

// containerTarget writes blobs.
type containerTarget struct {
	client *container.Client
	show   string // the container's URL without its signature
	query  string // that is a secret
}

// newContainer makes a client for a container. Its URL has a signature, or the target a key.
func newContainer(t topics.Target, transport http.RoundTripper) (target, error) {
	at, err := url.Parse(t.Where)
	if err != nil || at.Host == "" {
		return nil, fmt.Errorf("%w: the container's URL cannot be read", topics.ErrInvalid)
	}
	if transport == nil {
		return nil, fmt.Errorf("%w: blob storage cannot be reached from this yard", topics.ErrInvalid)
	}
	options := &container.ClientOptions{}
	options.Retry = policy.RetryOptions{MaxRetries: 2, TryTimeout: time.Minute}
	options.Transport = doer{transport}
	options.Telemetry.Disabled = true
	plain := url.URL{Scheme: at.Scheme, Host: at.Host, Path: at.Path}
	c := containerTarget{show: strings.TrimSuffix(plain.String(), "/"), query: at.RawQuery}
	if at.Query().Has("sig") {
		c.client, err = container.NewClientWithNoCredential(t.Where, options)
		return c, err
	}
	account, key := accountOf(at), t.Key
	if key == "" && account == emulatorAccount {
		key = emulatorKey
	}
	if key == "" {
		return nil, fmt.Errorf("%w: the container's URL has no signature: add one (…?sv=…&sig=…), or give the account's key with deadLetterKey (--dead-letter-key)", topics.ErrInvalid)
	}
	credential, err := container.NewSharedKeyCredential(account, key)
	if err != nil {
		return nil, fmt.Errorf("%w: the storage account's key is no base64", topics.ErrInvalid)
	}
	c.client, err = container.NewClientWithSharedKeyCredential(t.Where, credential, options)
	return c, err
}

// doer is what the SDK asks of a client. A redirect is an answer, not followed.
type doer struct{ transport http.RoundTripper }

func (d doer) Do(r *http.Request) (*http.Response, error) {
	response, err := d.transport.RoundTrip(r)
	if err == nil {
		response.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(response.Body, maxAnswerBytes), response.Body}
	}
	return response, err
}

// accountOf finds the account's name: the first label of the host, or, where the host is an address
// or one name alone, the path segment before the container's.
func accountOf(at *url.URL) string {
	segments := strings.Split(strings.Trim(at.Path, "/"), "/")
	host := at.Hostname()
	if len(segments) > 1 && (net.ParseIP(host) != nil || !strings.Contains(host, ".blob.")) {
		return segments[len(segments)-2]
	}
	account, _, _ := strings.Cut(host, ".")
	return account
}

func (c containerTarget) write(ctx context.Context, name string, l load) (put, error) {
	body := l.array()
	_, err := c.client.NewBlockBlobClient(name).UploadBuffer(ctx, body, &blockblob.UploadBufferOptions{
		HTTPHeaders: &blob.HTTPHeaders{BlobContentType: to.Ptr("application/json")},
	})
	if err != nil {
		return put{}, fmt.Errorf("write dead letters to %s: %w", c.show, c.readable(err))
	}
	container := c.show[strings.LastIndexByte(c.show, '/')+1:]
	return put{
		show: c.show + "/" + name, url: c.show + "/" + name,
		subject: "/blobServices/default/containers/" + container + "/blobs/" + name, bytes: len(body),
	}, nil
}

// readable makes a line of an error, without what is secret in the URL. What a storage answers is
// said in its status and its code; the SDK's own text has many lines.
func (c containerTarget) readable(err error) error {
	if answered, ok := errors.AsType[*azcore.ResponseError](err); ok {
		code, advice := "", ""
		if isWord(answered.ErrorCode) {
			code = " (" + answered.ErrorCode + ")" // the storage's own word for what is wrong
		}
		switch answered.StatusCode {
		case http.StatusUnauthorized, http.StatusForbidden:
			advice = ": its signature may have expired or lack the right to create and write, or its key may be another by now: give the subscription a new one"
		case http.StatusNotFound:
			advice = ": create the container, or name another target"
		}
		return fmt.Errorf("it answers %d %s%s%s", answered.StatusCode, http.StatusText(answered.StatusCode), code, advice)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return errors.New("it does not answer in time: see that it is reachable from here")
	}
	text := err.Error()
	if c.query != "" {
		text = strings.ReplaceAll(text, c.query, "…")
	}
	if strings.Contains(text, "sig=") {
		return errors.New("it cannot be reached")
	}
	return errors.New(strings.Join(strings.Fields(text), " "))
}

func isWord(code string) bool {
	strange := func(r rune) bool { return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') }
	return code != "" && len(code) <= 64 && !strings.ContainsFunc(code, strange)
}
