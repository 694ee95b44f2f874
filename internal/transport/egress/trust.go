package egress

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"time"
)

// trust is what distinguishes connections: whom we trust, and who we say we are.
type trust struct {
	ca, cert, key, minTLS string
	skipVerify            bool
	// system trusts the system's authorities besides ca.
	system bool
}

func (e Endpoint) trust() trust {
	return trust{ca: e.CA, cert: e.Cert, key: e.Key, minTLS: e.MinTLS, skipVerify: e.SkipVerify}
}

// connect makes the transport for a trust. Proxies are not asked: they would resolve names
// where no guard stands. Nothing is unpacked: a small answer may be a large one in disguise.
func (c *Client) connect(t trust) (http.RoundTripper, error) {
	if c.cfg.Transport != nil {
		return c.cfg.Transport, nil
	}
	config, err := t.config()
	if err != nil {
		return nil, err
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	return &sharing{share: c.share, Transport: &http.Transport{
		DialContext:         c.dialer.DialContext,
		TLSClientConfig:     config,
		TLSHandshakeTimeout: handshakeTime,
		Protocols:           protocols,
		// A connection shared by many requests that has died has to be noticed: without pings
		// each of them would run into its time-out.
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: 15 * time.Second, PingTimeout: 10 * time.Second},
		MaxIdleConns:           c.share.Limit(),
		MaxIdleConnsPerHost:    max(c.share.Limit()/2, 1),
		IdleConnTimeout:        time.Minute,
		MaxResponseHeaderBytes: 256 << 10,
		DisableCompression:     true,
	}}, nil
}

// closeIdle closes the connections that nobody uses at the moment.
func closeIdle(rt http.RoundTripper) {
	if t, ok := rt.(interface{ CloseIdleConnections() }); ok {
		t.CloseIdleConnections()
	}
}

func (t trust) config() (*tls.Config, error) {
	config := &tls.Config{
		MinVersion:         tls.VersionTLS12,
		InsecureSkipVerify: t.skipVerify,
		ClientSessionCache: tls.NewLRUClientSessionCache(256),
	}
	switch t.minTLS {
	case "", "1.2":
	case "1.3":
		config.MinVersion = tls.VersionTLS13
	default:
		return nil, fmt.Errorf("least TLS version %q is not known: write 1.2 or 1.3", t.minTLS)
	}
	var err error
	if config.RootCAs, err = t.roots(); err != nil {
		return nil, err
	}
	switch {
	case t.cert == "" && t.key == "":
		return config, nil
	case t.cert == "" || t.key == "":
		return nil, errors.New("a client certificate needs both cert and key: give both, or none")
	}
	pair, err := tls.X509KeyPair([]byte(t.cert), []byte(t.key))
	if err != nil {
		return nil, fmt.Errorf("client certificate cannot be used: %w: give cert and key as PEM that belong together", err)
	}
	config.Certificates = []tls.Certificate{pair}
	return config, nil
}

// roots gives the authorities; nil: the system's.
func (t trust) roots() (*x509.CertPool, error) {
	if t.ca == "" {
		return nil, nil
	}
	pool := x509.NewCertPool()
	if t.system {
		if all, err := x509.SystemCertPool(); err == nil {
			pool = all
		}
	}
	if !pool.AppendCertsFromPEM([]byte(t.ca)) {
		return nil, errors.New("authorities (ca) hold no certificate: give them as PEM, beginning with -----BEGIN CERTIFICATE-----")
	}
	return pool, nil
}
