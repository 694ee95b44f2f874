package notify

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net/smtp"
	"slices"
	"strings"
)

// authenticate shows user and password, if there are any, over TLS only.
func (m *mailer) authenticate(c *smtp.Client) error {
	if m.cfg.Username == "" {
		return nil
	}
	if _, secure := c.TLSConnectionState(); !secure {
		return errors.New("the password is not sent without TLS: set notify.smtp.tls to starttls or tls")
	}
	_, offered := c.Extension("AUTH")
	mechanisms := strings.Fields(strings.ToUpper(offered))
	auth := &passwordAuth{user: m.cfg.Username, password: m.cfg.Password}
	switch {
	case slices.Contains(mechanisms, "PLAIN"):
		auth.mechanism = "PLAIN"
	case slices.Contains(mechanisms, "LOGIN"):
		auth.mechanism = "LOGIN"
	default:
		return fmt.Errorf("the server offers neither AUTH PLAIN nor LOGIN (but %.64q): leave notify.smtp.username empty if it wants no password", offered)
	}
	if err := c.Auth(auth); err != nil {
		return m.hush(inLine("AUTH "+auth.mechanism+" as notify.smtp.username", err))
	}
	return nil
}

// hush takes the password out of what a server said: some repeat a line that they do not
// understand.
func (m *mailer) hush(err error) error {
	if m.cfg.Password == "" {
		return err
	}
	text := err.Error()
	for _, secret := range []string{m.cfg.Password, "\x00" + m.cfg.Username + "\x00" + m.cfg.Password} {
		text = strings.NewReplacer(base64.StdEncoding.EncodeToString([]byte(secret)), "…", secret, "…").Replace(text)
	}
	return &lineError{text, err}
}

// passwordAuth is PLAIN (RFC 4616) or LOGIN, which asks twice. net/smtp has no LOGIN, and tells a
// safe connection by other signs than ours.
type passwordAuth struct {
	mechanism      string
	user, password string
	asked          int
}

func (a *passwordAuth) Start(*smtp.ServerInfo) (string, []byte, error) {
	if a.mechanism == "PLAIN" {
		return a.mechanism, []byte("\x00" + a.user + "\x00" + a.password), nil
	}
	return a.mechanism, nil, nil
}

func (a *passwordAuth) Next(_ []byte, more bool) ([]byte, error) {
	if !more {
		return nil, nil
	}
	a.asked++
	switch {
	case a.mechanism == "LOGIN" && a.asked == 1:
		return []byte(a.user), nil
	case a.mechanism == "LOGIN" && a.asked == 2:
		return []byte(a.password), nil
	}
	return nil, errors.New("the server asks for more than user and password")
}
