// Package signature signs what is delivered, the way Standard Webhooks says: an id, a
// timestamp and the body, by HMAC-SHA256 or ed25519. During a rotation several signatures
// stand side by side. It is pure.
package signature

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The headers of Standard Webhooks, as net/http writes them.
const (
	headerID        = "Webhook-Id"
	headerTimestamp = "Webhook-Timestamp"
	headerSignature = "Webhook-Signature"
)

// The versions of signatures.
const (
	versionHMAC    = "v1,"
	versionEd25519 = "v1a,"
)

// Signer is a checked set of keys, immutable.
type Signer struct{ keys []signing }

// signing is a key that is ready to sign. One of the two is set.
type signing struct {
	secret  []byte
	private ed25519.PrivateKey
	expires time.Time
}

// NewSigner checks keys. One without keys signs nothing, and so does a nil one.
func NewSigner(keys []Key) (*Signer, error) {
	s := &Signer{}
	for i, key := range keys {
		parsed, err := parse(key.Text)
		if err == nil && parsed.secret == nil && parsed.private == nil {
			err = fmt.Errorf("a public key signs nothing: give the private one, which begins with %s", prefixPrivate)
		}
		if err != nil {
			return nil, fmt.Errorf("signing key %d: %w", i+1, err)
		}
		s.keys = append(s.keys, signing{secret: parsed.secret, private: parsed.private, expires: key.Expires})
	}
	return s, nil
}

// Sign sets webhook-id, webhook-timestamp and webhook-signature. Keys that are expired do not
// sign; where all are, the signature is missing and a receiver that checks it refuses.
//
// An id that cannot stand in a header, or has a full stop, which is what separates the parts of
// the signed text, is replaced by its digest: the same id gives the same.
func (s *Signer) Sign(h http.Header, id string, now time.Time, body []byte) {
	if s == nil || len(s.keys) == 0 {
		return
	}
	id = headerSafe(id)
	timestamp := strconv.FormatInt(now.Unix(), 10)
	h[headerID] = []string{id}
	h[headerTimestamp] = []string{timestamp}
	delete(h, headerSignature)
	var signatures []string
	for _, key := range s.keys {
		if key.expires.IsZero() || now.Before(key.expires) {
			signatures = append(signatures, key.sign(id, timestamp, body))
		}
	}
	if len(signatures) > 0 {
		h[headerSignature] = []string{strings.Join(signatures, " ")}
	}
}

func (k signing) sign(id, timestamp string, body []byte) string {
	if k.private != nil {
		return versionEd25519 + base64.StdEncoding.EncodeToString(ed25519.Sign(k.private, content(id, timestamp, body)))
	}
	return versionHMAC + base64.StdEncoding.EncodeToString(sum(k.secret, id, timestamp, body))
}

// content is what is signed. HMAC takes it in parts, without this copy of the body.
func content(id, timestamp string, body []byte) []byte {
	text := make([]byte, 0, len(id)+len(timestamp)+len(body)+2)
	text = append(text, id...)
	text = append(text, '.')
	text = append(text, timestamp...)
	text = append(text, '.')
	return append(text, body...)
}

func sum(secret []byte, id, timestamp string, body []byte) []byte {
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	return mac.Sum(nil)
}

// maxID bounds webhook-id; longer ones are replaced as well.
const maxID = 255

func headerSafe(id string) string {
	safe := id != "" && len(id) <= maxID
	for i := 0; safe && i < len(id); i++ {
		safe = id[i] > ' ' && id[i] < 0x7f && id[i] != '.'
	}
	if safe {
		return id
	}
	digest := sha256.Sum256([]byte(id))
	return "msg_" + base64.RawURLEncoding.EncodeToString(digest[:])
}
