package topics

import (
	"strings"

	"github.com/eventyard/eventyard/internal/hubs/auth"
)

// Bounds of delivery properties (reference §16).
const (
	maxHeaders          = 10
	maxHeaderNameBytes  = 256
	maxHeaderValueBytes = 4096
)

// ownHeaders are written by the yard, or belong to the connection and not to the request.
var ownHeaders = map[string]bool{
	"connection": true, "keep-alive": true, "proxy-authenticate": true, "proxy-authorization": true,
	"proxy-connection": true, "te": true, "trailer": true, "transfer-encoding": true, "upgrade": true,
	"content-type": true, "content-length": true, "content-encoding": true, "host": true, "expect": true,
}

// ownBeginnings are those of names that the yard writes: Event Grid's, and those of Standard
// Webhooks and of CloudEvents' webhooks.
var ownBeginnings = []string{"aeg-", "webhook-"}

func (s Settings) checkHeaders() error {
	if len(s.Headers) > maxHeaders {
		return invalid("%d headers: give at most %d", len(s.Headers), maxHeaders)
	}
	seen := make(map[string]bool, len(s.Headers))
	for _, h := range s.Headers {
		folded := auth.Fold(h.Name)
		if seen[folded] {
			return invalid("header %q: it is given twice", h.Name)
		}
		seen[folded] = true
		if err := s.checkHeaderName(h.Name, folded); err != nil {
			return err
		}
		if err := h.checkValue(); err != nil {
			return err
		}
	}
	return nil
}

func (s Settings) checkHeaderName(name, folded string) error {
	// RFC 9110's rule for names of fields.
	unfit := func(r rune) bool {
		return (r|0x20 < 'a' || r|0x20 > 'z') && !strings.ContainsRune("0123456789!#$%&'*+-.^_`|~", r)
	}
	if name == "" || len(name) > maxHeaderNameBytes || strings.ContainsFunc(name, unfit) {
		return invalid("header %.80q: give a name of letters, digits and '-'", name)
	}
	if ownHeaders[folded] || s.Binary && strings.HasPrefix(folded, "ce-") {
		return invalid("header %q: the yard writes it itself, choose another name", name)
	}
	for _, beginning := range ownBeginnings {
		if strings.HasPrefix(folded, beginning) {
			return invalid("header %q: names that begin with %s are the yard's own, choose another", name, beginning)
		}
	}
	if folded == "authorization" && s.Webhook != nil && s.Webhook.OAuth != nil {
		return invalid("header %q: the webhook's OAuth writes it, leave out one of them", name)
	}
	return nil
}

// checkValue never repeats a value, which may be a secret.
func (h Header) checkValue() error {
	if (h.Value == "") == (h.Field == "") {
		return invalid("header %q: give either a value, or the field of the event that has it", h.Name)
	}
	if h.Field != "" {
		return checkPath("header "+h.Name, h.Field)
	}
	if len(h.Value) > maxHeaderValueBytes {
		return invalid("header %q: its value has %d bytes, give at most %d", h.Name, len(h.Value), maxHeaderValueBytes)
	}
	control := func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }
	if strings.ContainsFunc(h.Value, control) || strings.TrimSpace(h.Value) != h.Value {
		return invalid("header %q: its value has a line break, another control character, or blanks at its ends", h.Name)
	}
	return nil
}
