package notify

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/mail"
	"net/smtp"
	"net/textproto"
	"os"
	"strings"
	"time"
)

// The ways of SMTP.TLS.
const (
	startTLS = "starttls"
	fullTLS  = "tls"
	plainTCP = "none"
)

const (
	// maxReplyBytes bounds what a mail server may say in one session.
	maxReplyBytes = 1 << 20
	// quitTime is how long we wait for its goodbye.
	quitTime = 2 * time.Second
)

// mailer sends mail by one server. It keeps no connection: notices are rare.
type mailer struct {
	cfg  SMTP
	host string
	from *mail.Address
	tls  *tls.Config
	// dial is net.Dialer's, except in tests. Where the server is, the operator says: it is not
	// guarded like webhooks.
	dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// newMailer checks the settings; nil without an error: there is no mail.
func newMailer(cfg SMTP) (*mailer, error) {
	if cfg.Addr == "" {
		return nil, nil
	}
	host, port, err := net.SplitHostPort(cfg.Addr)
	if err != nil || host == "" || port == "" {
		return nil, fmt.Errorf("notify.smtp.addr is %.64q: write host:port, such as smtp.example.com:587", cfg.Addr)
	}
	from, err := mail.ParseAddress(cfg.From)
	if err != nil {
		return nil, fmt.Errorf("notify.smtp.from is %.64q: write an address, such as yard@example.com: %w", cfg.From, err)
	}
	switch cfg.TLS {
	case "":
		cfg.TLS = startTLS
	case startTLS, fullTLS, plainTCP:
	default:
		return nil, fmt.Errorf("notify.smtp.tls is %.20q: use starttls, tls or none", cfg.TLS)
	}
	if cfg.TLS == plainTCP && cfg.Username != "" {
		return nil, errors.New("notify.smtp.username is not sent without TLS: set notify.smtp.tls to starttls or tls, or leave the name empty")
	}
	trust := &tls.Config{ServerName: host, MinVersion: tls.VersionTLS12}
	if cfg.CA != "" {
		trust.RootCAs = x509.NewCertPool()
		if !trust.RootCAs.AppendCertsFromPEM([]byte(cfg.CA)) {
			return nil, errors.New("notify.smtp.caFile has no certificate: give it in PEM")
		}
	}
	return &mailer{cfg: cfg, host: host, from: from, tls: trust, dial: (&net.Dialer{}).DialContext}, nil
}

// ehloName is what we call ourselves to a server: this machine's name if it is a full one, else the
// address that we come from (RFC 5321 §4.1.4). Servers that are strict refuse others, and the names
// of containers are mostly such.
func ehloName(host string, local net.Addr) string {
	odd := func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '.' || r == '-')
	}
	if strings.Contains(host, ".") && !strings.ContainsFunc(host, odd) {
		return host
	}
	tcp, ok := local.(*net.TCPAddr)
	switch {
	case !ok:
		return "localhost"
	case tcp.IP.To4() != nil:
		return "[" + tcp.IP.String() + "]"
	}
	return "[IPv6:" + tcp.IP.String() + "]"
}

// send hands a mail to the server; nil: the server has taken it.
func (m *mailer) send(ctx context.Context, to string, message []byte) error {
	ctx, cancel := context.WithTimeout(ctx, m.cfg.Timeout)
	defer cancel()
	raw, err := m.dial(ctx, "tcp", m.cfg.Addr)
	if err != nil {
		return fmt.Errorf("connect to mail server %s: %w", m.cfg.Addr, err)
	}
	defer raw.Close()
	// Whatever we wait for ends with ctx.
	defer context.AfterFunc(ctx, func() { _ = raw.SetDeadline(time.Unix(1, 0)) })()
	if err = m.converse(ctx, raw, to, message); err != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	if err != nil {
		return fmt.Errorf("mail by %s: %w", m.cfg.Addr, err)
	}
	return nil
}

// converse is a session.
func (m *mailer) converse(ctx context.Context, raw net.Conn, to string, message []byte) error {
	var conn net.Conn = &quietConn{Conn: raw, left: maxReplyBytes}
	if m.cfg.TLS == fullTLS {
		secure := tls.Client(conn, m.tls)
		if err := secure.HandshakeContext(ctx); err != nil {
			return m.explainTLS(err)
		}
		conn = secure
	}
	c, err := smtp.NewClient(conn, m.host)
	if err != nil {
		return inLine("greeting", err)
	}
	defer c.Close()
	self, _ := os.Hostname()
	if err := c.Hello(ehloName(self, raw.LocalAddr())); err != nil {
		return inLine("EHLO", err)
	}
	if m.cfg.TLS == startTLS { // a server that does not offer it, or somebody on the way who says so, gets no mail
		if ok, _ := c.Extension("STARTTLS"); !ok {
			return errors.New("the server does not offer STARTTLS, and nothing was sent: set notify.smtp.tls to tls if it speaks TLS from the " +
				"first byte (mostly port 465), or to none if it is on this machine or in a network that you trust")
		}
		if err := c.StartTLS(m.tls.Clone()); err != nil {
			return m.explainTLS(err)
		}
	}
	if err := m.authenticate(c); err != nil {
		return err
	}
	if err := m.transfer(c, to, message); err != nil {
		return err
	}
	_ = raw.SetDeadline(time.Now().Add(quitTime))
	_ = c.Quit() // it has taken the mail, whatever it says now
	return nil
}

func (m *mailer) explainTLS(err error) error {
	if _, unknown := errors.AsType[x509.UnknownAuthorityError](err); unknown {
		return fmt.Errorf("TLS with the server: %w: set notify.smtp.caFile to the authority that signed its certificate", err)
	}
	return fmt.Errorf("TLS with the server: %w", err)
}

// transfer is the mail itself. What a server refuses for good here is the address or the mail.
func (m *mailer) transfer(c *smtp.Client, to string, message []byte) error {
	if err := c.Mail(m.from.Address); err != nil {
		return refused("MAIL FROM", err)
	}
	if err := c.Rcpt(to); err != nil {
		return refused("RCPT TO", err)
	}
	data, err := c.Data()
	if err != nil {
		return refused("DATA", err)
	}
	if _, err := data.Write(message); err != nil {
		return inLine("send the mail", err)
	}
	if err := data.Close(); err != nil {
		return refused("end of the mail", err)
	}
	return nil
}

// refused tells a refusal for good from one for now.
func refused(doing string, err error) error {
	said, ok := errors.AsType[*textproto.Error](err)
	return &refusal{error: inLine(doing, err), final: ok && said.Code >= 500}
}

// lineError is what a server said, as one line.
type lineError struct {
	text string
	err  error
}

func inLine(doing string, err error) error {
	return &lineError{doing + ": " + oneLine(err.Error(), maxErrorBytes), err}
}

func (e *lineError) Error() string { return e.text }
func (e *lineError) Unwrap() error { return e.err }

// quietConn ends when the server has said too much: its lines are read whole.
type quietConn struct {
	net.Conn
	left int // used by who reads
}

func (c *quietConn) Read(p []byte) (int, error) {
	if c.left <= 0 {
		return 0, fmt.Errorf("the server says more than %d bytes: %w", maxReplyBytes, io.ErrUnexpectedEOF)
	}
	n, err := c.Conn.Read(p)
	c.left -= n
	return n, err
}
