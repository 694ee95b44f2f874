package egress

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// Endpoint is where requests go and how they are let in there.
type Endpoint struct {
	URL string `json:"url"`
	// CA is PEM of the authorities to trust instead of the system's; SkipVerify trusts anybody.
	CA         string `json:"ca,omitempty"`
	SkipVerify bool   `json:"skipVerify,omitempty"`
	// Cert and Key are PEM of a client certificate (mTLS).
	Cert string `json:"cert,omitempty"`
	Key  string `json:"key,omitempty"`
	// OAuth gets a bearer token by client credentials; nil: none.
	OAuth *OAuth `json:"oauth,omitempty"`
	// MinTLS is 1.2 (or empty) or 1.3.
	MinTLS string `json:"minTls,omitempty"`
}

// OAuth is the client-credentials grant. Where the endpoint has a CA the token server may be
// certified by it, too, besides the system's authorities; SkipVerify does not hold for it.
type OAuth struct {
	TokenURL string `json:"tokenUrl"`
	ClientID string `json:"clientId"`
	Secret   string `json:"secret"`
	Scope    string `json:"scope,omitempty"`
	Audience string `json:"audience,omitempty"`
}

// Check says what is wrong with an endpoint: not http or https, no host, a user in the URL, PEM
// that cannot be read, an address literal that is not allowed (with the setting that allows it).
// Where a name leads is not asked: it is checked with each connection.
func (c *Client) Check(e Endpoint) error {
	if _, err := c.checkURL(e.URL); err != nil {
		return fmt.Errorf("endpoint: %w", err)
	}
	if _, err := e.trust().config(); err != nil {
		return fmt.Errorf("endpoint: %w", err)
	}
	if e.OAuth == nil {
		return nil
	}
	if e.OAuth.ClientID == "" {
		return errors.New("endpoint: OAuth has no client id: give one, or no OAuth")
	}
	if _, err := c.checkURL(e.OAuth.TokenURL); err != nil {
		return fmt.Errorf("token URL: %w", err)
	}
	return nil
}

// checkURL parses a URL and looks at it as far as that goes without asking anybody. What it
// says never holds the query: secrets are kept there.
func (c *Client) checkURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	var syntax *url.Error
	switch {
	case !strings.Contains(text, "://"):
		return nil, errors.New("URL does not begin with http:// or https://: write it like https://host/path")
	case errors.As(err, &syntax):
		return nil, fmt.Errorf("URL cannot be read: %w: write it like https://host/path", syntax.Err)
	case u.Scheme != "http" && u.Scheme != "https":
		return nil, fmt.Errorf("URL begins with %.20q: write http:// or https://", u.Scheme)
	case u.Hostname() == "":
		return nil, errors.New("URL has no host: write it like https://host/path")
	case u.User != nil:
		return nil, errors.New("URL has a user: take it out, and give a header Authorization instead")
	}
	if n, err := strconv.ParseUint(u.Port(), 10, 16); u.Port() != "" && (err != nil || n == 0) {
		return nil, fmt.Errorf("port %.20q is none: use 1 to 65535", u.Port())
	}
	return u, c.guard.checkHost(u.Hostname())
}

// Identity distinguishes endpoints for their health: the full URL and all credentials, hashed.
// more are credentials that stand elsewhere.
func (e Endpoint) Identity(more ...string) string {
	all := []string{e.URL, e.CA, strconv.FormatBool(e.SkipVerify), e.Cert, e.Key, e.MinTLS}
	if o := e.OAuth; o != nil {
		all = append(all, o.TokenURL, o.ClientID, o.Secret, o.Scope, o.Audience)
	}
	h := sha256.New()
	for _, text := range append(all, more...) {
		h.Write(binary.BigEndian.AppendUint32(nil, uint32(len(text))))
		h.Write([]byte(text))
	}
	return hex.EncodeToString(h.Sum(nil)[:16])
}

// Route is an endpoint made ready for requests: checked, parsed, with its connections. It is
// immutable, and spares each request that work.
type Route struct {
	url       *url.URL
	transport http.RoundTripper
	purse     *purse // nil: no tokens
}

// Server is the host, and the port where the URL has one: connections and seats are shared out by it.
func (r *Route) Server() string { return r.url.Host }

// Route makes one. It fails as Check does, and connects to nothing.
func (c *Client) Route(e Endpoint) (*Route, error) {
	if err := c.Check(e); err != nil {
		return nil, err
	}
	u, err := url.Parse(e.URL)
	if err != nil {
		return nil, err
	}
	r := &Route{url: u}
	if r.transport, err = c.trusts.get(e.trust()); err != nil {
		return nil, err
	}
	if e.OAuth != nil {
		r.purse, err = c.purses.get(grant{*e.OAuth, e.CA})
	}
	return r, err
}
