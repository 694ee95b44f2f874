package azureblob

import (
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/blob"
	"github.com/eventyard/eventyard/internal/quota"
)

// defaultVersion is for clients that do not say which version of the API they speak. All versions
// are alike in what is offered here.
const defaultVersion = "2021-12-02"

// call is one request to the API.
type call struct {
	*frame.Call
	handler *Handler
	// emulator: the path begins with the account.
	emulator bool

	query url.Values
	at    blob.Path
	level level

	operation operation
	grant     grant
}

// level is what a path names.
type level byte

const (
	atService   level = 's'
	atContainer level = 'c'
	atBlob      level = 'o'
)

func (d *Handler) newCall(fc *frame.Call) *call {
	c := &call{Call: fc, handler: d}
	c.ID = frame.NewID()
	h := c.Header()
	h.Set("x-ms-request-id", c.ID)
	h.Set("x-ms-version", defaultVersion)
	if v := c.R.Header.Get("x-ms-version"); versionForm.MatchString(v) {
		h.Set("x-ms-version", v)
	}
	h.Set("Server", "Eventyard-Blob/1.0")
	h.Set("Content-Security-Policy", "sandbox") // what users store is no page of the yard's
	if own := c.R.Header.Get("x-ms-client-request-id"); own != "" && len(own) <= 1024 {
		h.Set("x-ms-client-request-id", own)
	}
	return c
}

// Ended counts the call.
func (c *call) Ended(took time.Duration) { c.handler.metrics.Observe(c.Call, took) }

var versionForm = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}$`)

// locate reads the path and the query.
func (c *call) locate() (err error) {
	if c.query, err = parseQuery(c.R.URL.RawQuery); err != nil {
		return err
	}
	path := rawPath(c.R)
	if account, ok := accountOfHost(c.R.Host); ok {
		path = Prefix + account + path
	} else if c.emulator {
		path = Prefix + strings.TrimPrefix(path, "/")
	} else if path, err = withAccount(path); err != nil {
		return err
	}
	if c.at, c.level, err = parsePath(path); err != nil {
		return err
	}
	if c.at.Account != Account && !(c.at.Account == DevelopmentAccount && c.handler.cfg.Access.Development()) {
		return refusal(http.StatusNotFound, "ResourceNotFound", fmt.Sprintf("there is no account %.64q: use %s", c.at.Account, Account))
	}
	return nil
}

// parseQuery gives each parameter, by its name in small letters, the one value that it may
// have. A signature hardly tells apart what is refused here: capitals from small letters, a
// comma from the same name again, a line's end from the next name.
func parseQuery(text string) (url.Values, error) {
	all, err := url.ParseQuery(text)
	if err != nil {
		return nil, refusal(http.StatusBadRequest, "InvalidUri", "the query is not well formed")
	}
	query := make(url.Values, len(all))
	for name, values := range all {
		lower := strings.ToLower(name)
		if len(values) > 1 || query.Has(lower) {
			return nil, refusal(http.StatusBadRequest, "InvalidQueryParameterValue", fmt.Sprintf("query parameter %.64q comes twice", lower))
		}
		if strings.Contains(name+values[0], "\n") && lower != "prefix" && lower != "delimiter" {
			return nil, invalidQuery(lower, values[0])
		}
		query[lower] = values
	}
	return query, nil
}

// accountOfHost gives the account that a host's name begins with, as in Azure: ACCOUNT.blob.DOMAIN.
func accountOfHost(host string) (string, bool) {
	account, rest, _ := strings.Cut(auth.Fold(host), ".")
	known := account == Account || account == DevelopmentAccount
	return account, known && strings.HasPrefix(rest, "blob.")
}

// withAccount names the account in a path that has none. Some libraries take the first
// segment of a path for the account, whatever they were told, and the second for the
// container, which they replace by theirs: of /blob/eventyard they make /blob/CONTAINER.
// Hence no container may have the name of an account.
func withAccount(path string) (string, error) {
	rest, ok := strings.CutPrefix(path, Prefix)
	if path == strings.TrimSuffix(Prefix, "/") {
		return Prefix + Account, nil
	}
	if !ok {
		return "", refusal(http.StatusBadRequest, "InvalidUri", "the path does not begin with "+Prefix)
	}
	first, _, _ := strings.Cut(rest, "/")
	if first == Account || first == DevelopmentAccount {
		return path, nil
	}
	return Prefix + Account + "/" + rest, nil
}

// rawPath is the path as the client wrote and signed it.
func rawPath(r *http.Request) string {
	path, _, _ := strings.Cut(r.RequestURI, "?")
	if !strings.HasPrefix(path, "/") { // a proxy's form, or no server's request
		return r.URL.EscapedPath()
	}
	return path
}

// parsePath takes /blob/ACCOUNT/CONTAINER/BLOB apart. A blob's name is all that is left,
// whether its slashes are escaped or not.
func parsePath(path string) (blob.Path, level, error) {
	parts := strings.SplitN(strings.TrimPrefix(path, Prefix), "/", 3)
	for i, part := range parts {
		plain, err := url.PathUnescape(part)
		if err != nil || !utf8.ValidString(plain) {
			return blob.Path{}, 0, refusal(http.StatusBadRequest, "InvalidUri", "the path is not well formed")
		}
		parts[i] = plain
	}
	at := blob.Path{Account: parts[0]}
	if len(parts) > 1 {
		at.Container = parts[1]
	}
	if len(parts) > 2 {
		at.Blob = parts[2]
	}
	switch {
	case at.Container == "" && at.Blob != "":
		return blob.Path{}, 0, refusal(http.StatusBadRequest, "InvalidUri", "the path names a blob without its container")
	case strings.Contains(at.Container, "/") || strings.Contains(at.Account, "/"):
		return blob.Path{}, 0, refusal(http.StatusBadRequest, "InvalidResourceName", "a container's name has no slash")
	case at.Blob != "":
		return at, atBlob, nil
	case at.Container != "":
		return at, atContainer, nil
	}
	return at, atService, nil
}

// Serve refuses first what a request asks for and this listener does not have, rather than do half
// of it. The quota is charged with the request; an upload charges it with the bytes that come.
func (c *call) Serve() error {
	if err := quota.Take(1, 0, time.Now(), c.handler.cfg.Access.AccountQuota()); err != nil {
		return err
	}
	for _, name := range []string{"snapshot", "versionid", "prevsnapshot"} {
		if c.query.Get(name) != "" {
			return refusal(http.StatusBadRequest, "UnsupportedQueryParameter", "blobs have neither snapshots nor versions here: leave out "+name)
		}
	}
	if c.R.Method != http.MethodPut {
		return c.operation.serve(c)
	}
	if c.R.Header.Get("x-ms-copy-source") != "" {
		return notOffered("to copy from a URL")
	}
	for name := range c.R.Header {
		lower := strings.ToLower(name)
		for _, prefix := range []string{"x-ms-access-tier", "x-ms-tags", "x-ms-encryption-", "x-ms-default-encryption-", "x-ms-immutability-policy-",
			"x-ms-legal-hold", "x-ms-structured-", "x-ms-expiry-", "x-ms-source-"} {
			if strings.HasPrefix(lower, prefix) {
				return refusal(http.StatusBadRequest, "UnsupportedHeader", "this yard has no use for the header "+lower+": leave it out")
			}
		}
	}
	return c.operation.serve(c)
}

// reply ends a call that has no body to give.
func (c *call) reply(status int) error {
	c.WriteHeader(status)
	return nil
}

// replyXML ends a call with a document.
func (c *call) replyXML(status int, document any) error {
	text, err := xml.Marshal(document)
	if err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	h := c.Header()
	h.Set("Content-Type", "application/xml")
	h.Set("Content-Length", fmt.Sprint(len(xml.Header)+len(text)))
	_ = c.reply(status)
	if c.R.Method != http.MethodHead {
		_, _ = io.WriteString(c, xml.Header)
		_, _ = c.Write(text)
	}
	return nil
}

// Refuse writes a refusal as the service does.
func (c *call) Refuse(said frame.Refusal) {
	c.Drain()
	h := c.Header()
	for _, name := range []string{"ETag", "Last-Modified", "Content-Length", "Content-Encoding", "Content-MD5"} {
		h.Del(name)
	}
	h.Set("x-ms-error-code", said.Code)
	if said.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="eventyard"`)
	}
	if said.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(said.RetryAfter.Seconds())))
	}
	if said.Status == http.StatusNotModified {
		_ = c.reply(said.Status)
		return
	}
	_ = c.replyXML(said.Status, errorDocument{
		Code:    said.Code,
		Message: fmt.Sprintf("%s\nRequestId:%s\nTime:%s", said.Detail, c.ID, time.Now().UTC().Format("2006-01-02T15:04:05.0000000Z")),
	})
}

type errorDocument struct {
	XMLName xml.Name `xml:"Error"`
	Code    string
	Message string
}
