package notify

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/eventyard/eventyard/processor"
)

// PathPrefix is where links lead, below the HTTP listener.
const PathPrefix = "/resume/"

// A token is base64url of a version, four texts (hub, group, function, incident), each with its
// length before it, the second when it expires, and a MAC of all that. It names one incident, so it
// is worth nothing once that is over.
const (
	tokenVersion = 1
	// maxTokenBytes bounds what is decoded; a part has at most maxPartBytes.
	maxTokenBytes = 2048
	maxPartBytes  = 300
)

var (
	// errLink: the token is none of ours, or not whole.
	errLink = errors.New("not a link of this yard")

	tokenText = base64.RawURLEncoding.Strict()
)

// grant is what a link is good for.
type grant struct {
	Group              processor.Group // without its namespace: it is this yard's
	Function, Incident string
	Expires            time.Time
}

// link gives a link and when it expires; empty where people cannot reach this yard.
func (s *sender) link(g processor.Group, function, incident string, now time.Time) (string, time.Time) {
	base := strings.TrimRight(s.cfg.Link(), "/")
	if base == "" || incident == "" {
		return "", time.Time{}
	}
	expires := now.Add(s.cfg.LinkLife).Truncate(time.Second)
	token, err := grant{g, function, incident, expires}.sign(s.secret)
	if err != nil {
		s.cfg.Log.Warn("a notice has no link", "function", function, "error", err)
		return "", time.Time{}
	}
	return base + PathPrefix + token, expires
}

// sign gives the token. It fails only for names that are longer than any we know.
func (g grant) sign(secret []byte) (string, error) {
	b := []byte{tokenVersion}
	for _, part := range []string{g.Group.Hub, g.Group.Group, g.Function, g.Incident} {
		if len(part) > maxPartBytes {
			return "", fmt.Errorf("a name of %d bytes is too long for a link: use at most %d", len(part), maxPartBytes)
		}
		b = binary.AppendUvarint(b, uint64(len(part)))
		b = append(b, part...)
	}
	b = binary.AppendUvarint(b, uint64(g.Expires.Unix()))
	return tokenText.EncodeToString(append(b, macOf(secret, b)...)), nil
}

func macOf(secret, payload []byte) []byte {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte("eventyard resume link\x00")) // the secret may come to sign other things
	mac.Write(payload)
	return mac.Sum(nil)
}

// readToken gives what a token is good for. Nothing of it is read before its MAC is found to be
// right.
func readToken(secret []byte, token string) (grant, error) {
	if len(token) > maxTokenBytes || strings.ContainsAny(token, "\r\n") { // line ends base64 would overlook
		return grant{}, errLink
	}
	b, err := tokenText.DecodeString(token)
	if err != nil || len(b) <= sha256.Size {
		return grant{}, errLink
	}
	payload, mac := b[:len(b)-sha256.Size], b[len(b)-sha256.Size:]
	if !hmac.Equal(mac, macOf(secret, payload)) {
		return grant{}, errLink
	}
	return readGrant(payload)
}

// readGrant reads what was signed.
func readGrant(b []byte) (g grant, err error) {
	if len(b) == 0 || b[0] != tokenVersion {
		return grant{}, fmt.Errorf("%w: its version is not known", errLink)
	}
	b = b[1:]
	for _, part := range []*string{&g.Group.Hub, &g.Group.Group, &g.Function, &g.Incident} {
		size, n := binary.Uvarint(b)
		if n <= 0 || size > maxPartBytes || size > uint64(len(b)-n) {
			return grant{}, errLink
		}
		*part, b = string(b[n:n+int(size)]), b[n+int(size):]
	}
	expires, n := binary.Uvarint(b)
	if n <= 0 || n != len(b) || expires > 1<<40 {
		return grant{}, errLink
	}
	g.Expires = time.Unix(int64(expires), 0)
	return g, nil
}
