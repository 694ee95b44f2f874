package caller

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/auth"
)

// Bounds of what one node tells another of a caller.
const (
	// MaxBytes is the most that it measures, and MaxScopes how many scopes it has.
	MaxBytes  = 16 << 10
	MaxScopes = 16
	// maxHolder is how much of a holder's name is told: it is for messages only.
	maxHolder = 128
)

// message is a caller on the way between nodes. What a node does not know in it may be what narrows a
// right, so it refuses the whole.
type message struct {
	Holder  string     `json:"holder,omitempty"`
	Expires *time.Time `json:"expires,omitempty"`
	Scopes  []scope    `json:"scopes,omitempty"`
	Topic   *topicKey  `json:"topic,omitempty"`
}

type scope struct {
	Path   string   `json:"path,omitempty"`
	Rights []string `json:"rights"`
	Hub    int64    `json:"hub,omitempty"`
	Policy string   `json:"policy,omitempty"`
	Made   int64    `json:"made,omitempty"`
	Key    string   `json:"key,omitempty"` // hexadecimal; empty: none was needed
}

type topicKey struct {
	Topic        string `json:"topic"`
	Subscription string `json:"subscription"`
	Key          string `json:"key"`
}

// Encode gives the form in which another node is told of the caller: of the grant, only what reaches
// the entity that it is asked about. nil: it cannot be told.
func (c Caller) Encode(about auth.Entity) []byte {
	c.Grant = c.Grant.Reaching(about)
	return c.EncodeWhole()
}

// EncodeWhole is Encode for who keeps the caller, and does not know yet what it will ask about.
func (c Caller) EncodeWhole() []byte {
	var t message
	if c.Topic != nil {
		t.Topic = &topicKey{c.Topic.Topic, c.Topic.Subscription, hex.EncodeToString(c.Topic.Key[:])}
		t.Expires = timeIfAny(c.Topic.Expires)
	} else {
		t.Holder, t.Expires = shorten(c.Grant.Holder), timeIfAny(c.Grant.Expires)
		for _, s := range c.Grant.Scopes {
			t.Scopes = append(t.Scopes, encodeScope(s))
		}
	}
	text, err := json.Marshal(t)
	if err != nil || len(text) > MaxBytes || len(t.Scopes) > MaxScopes {
		return nil
	}
	return text
}

func timeIfAny(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

func shorten(holder string) string {
	return strings.ToValidUTF8(holder[:min(len(holder), maxHolder)], "")
}

func encodeScope(s auth.Scope) scope {
	t := scope{Path: s.Path, Rights: s.Rights.Names(), Hub: s.Basis.Hub, Policy: s.Basis.Policy, Made: s.Basis.Made}
	if s.Basis.Key != ([sha256.Size]byte{}) {
		t.Key = hex.EncodeToString(s.Basis.Key[:])
	}
	return t
}

// Decode reads what another node tells. What it gives is what that node says: a grant that allows
// nothing until it has a view of what it stands on. Errors: ErrNone, auth.ErrMalformed.
func Decode(text []byte) (Caller, error) {
	switch {
	case len(text) == 0 || string(text) == "null":
		return Caller{}, ErrNone
	case len(text) > MaxBytes:
		return Caller{}, fmt.Errorf("%w: it has %d bytes, at most %d are allowed", auth.ErrMalformed, len(text), MaxBytes)
	}
	var t message
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&t); err != nil {
		return Caller{}, fmt.Errorf("%w: %w", auth.ErrMalformed, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Caller{}, fmt.Errorf("%w: something follows it", auth.ErrMalformed)
	}
	c, err := t.caller()
	if err != nil {
		return Caller{}, fmt.Errorf("%w: %w", auth.ErrMalformed, err)
	}
	return c, nil
}

func (t message) caller() (c Caller, err error) {
	var expires time.Time
	if t.Expires != nil {
		expires = *t.Expires
	}
	switch {
	case t.Topic != nil && (t.Scopes != nil || t.Holder != ""):
		return Caller{}, errors.New("it has both a grant and a topic's key")
	case t.Topic != nil:
		digest, err := parseDigest(t.Topic.Key)
		c.Topic = &TopicKey{Topic: t.Topic.Topic, Subscription: t.Topic.Subscription, Key: digest, Expires: expires}
		return c, err
	case len(t.Scopes) > MaxScopes:
		return Caller{}, fmt.Errorf("it has %d scopes, at most %d are allowed", len(t.Scopes), MaxScopes)
	}
	c.Grant = auth.Grant{Holder: shorten(t.Holder), Expires: expires}
	for _, s := range t.Scopes {
		heard, err := s.scope()
		if err != nil {
			return Caller{}, err
		}
		c.Grant.Scopes = append(c.Grant.Scopes, heard)
	}
	return c, nil
}

func (s scope) scope() (auth.Scope, error) {
	rights, err := auth.ParseRights(s.Rights)
	if err != nil {
		return auth.Scope{}, err
	}
	heard := auth.Scope{Path: s.Path, Rights: rights, Basis: auth.Basis{Hub: s.Hub, Policy: s.Policy, Made: s.Made}}
	if s.Key != "" {
		heard.Basis.Key, err = parseDigest(s.Key)
	}
	return heard, err
}

func parseDigest(text string) (digest [sha256.Size]byte, err error) {
	if len(text) != hex.EncodedLen(len(digest)) {
		return digest, errors.New("a key's digest has another length")
	}
	_, err = hex.Decode(digest[:], []byte(text))
	return digest, err
}
