package notify

import (
	"errors"
	"fmt"
	"net/mail"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/eventyard/eventyard/internal/transport/egress"
)

// maxTargetBytes bounds a target: it is stored with every notice that waits for it.
const maxTargetBytes = 1024

// CheckTarget says what is wrong with a target: not mailto: or http(s):, no address, mail without
// an SMTP server. It is the configuration's, so that the runner can be given it before the service
// is opened over its circuits.
func (c Config) CheckTarget(target string) error {
	if len(target) > maxTargetBytes {
		return fmt.Errorf("target of notices has %d bytes: use at most %d", len(target), maxTargetBytes)
	}
	scheme, _, found := strings.Cut(target, ":")
	if !found {
		scheme = ""
	}
	switch strings.ToLower(scheme) {
	case "mailto":
		if _, err := mailAddress(target); err != nil {
			return err
		}
		if c.SMTP.Addr == "" {
			return fmt.Errorf("target %s needs a mail server: set notify.smtp.addr and notify.smtp.from in eventyard.yaml", showTarget(target))
		}
		return nil
	case "http", "https":
		if c.Client == nil {
			return fmt.Errorf("target %s cannot be reached: this yard sends no webhooks", showTarget(target))
		}
		if i := strings.IndexFunc(target, notInURL); i >= 0 {
			_, size := utf8.DecodeRuneInString(target[i:])
			return fmt.Errorf("target %s has a character that no URL has: write %s for it", showTarget(target), url.PathEscape(target[i:i+size]))
		}
		if err := c.Client.Check(egress.Endpoint{URL: target}); err != nil {
			return fmt.Errorf("target %s: %w", showTarget(target), err)
		}
		return nil
	}
	return fmt.Errorf("target %.40q is neither mail nor a webhook: write mailto:ops@example.com or https://host/path", target)
}

// mediumOf tells how a target that was checked is reached.
func mediumOf(target string) medium {
	if len(target) >= 7 && strings.EqualFold(target[:7], "mailto:") {
		return byMail
	}
	return byWebhook
}

// mailAddress reads mailto:ADDRESS. Of RFC 6068 that is all: who has several targets names several.
func mailAddress(target string) (string, error) {
	text, err := url.PathUnescape(target[len("mailto:"):])
	if err != nil {
		return "", fmt.Errorf("target %s cannot be read: %w: write it like mailto:ops@example.com", showTarget(target), err)
	}
	a, err := mail.ParseAddress(text)
	switch {
	case text == "":
		return "", errors.New("target mailto: has no address: write it like mailto:ops@example.com")
	case err != nil:
		return "", fmt.Errorf("target %s is no address: write it like mailto:ops@example.com, one for each target", showTarget(target))
	case a.Address != text || strings.ContainsFunc(text, notInAddress):
		return "", fmt.Errorf("target %s is more than an address: write it like mailto:ops@example.com", showTarget(target))
	}
	return a.Address, nil
}

// notInAddress tells characters that are rarely meant in an address, and often mean something in
// the protocols it goes through.
func notInAddress(r rune) bool {
	return r <= ' ' || r == 0x7f || strings.ContainsRune(`<>()[]\,;:"?`, r)
}

// notInURL tells characters that RFC 3986 has no place for; a ledger would need several times the
// room for some of them.
func notInURL(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' }

// showTarget is a target for logs and errors. Those of webhooks are secrets beyond the host.
func showTarget(target string) string {
	if mediumOf(target) == byMail {
		return oneLine(target, maxNameBytes)
	}
	u, err := url.Parse(target)
	if err != nil || u.Host == "" {
		return "(a URL that cannot be read)"
	}
	return oneLine(u.Scheme+"://"+u.Host+"/…", maxNameBytes)
}
