package sealed

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// A sealed value is
//
//	magic (8) | id of the key (8) | nonce (12) | AES-256-GCM of the value (+16)
//
// with the entry's key as associated data, so that a value cannot be moved to another entry. The id
// is the beginning of the key's SHA-256.
const (
	magic    = "\x00sealed1"
	idBytes  = 8
	keyBytes = 32
	head     = len(magic) + idBytes
)

// ErrUnknownKey: a value was sealed with a key that was not given.
var ErrUnknownKey = errors.New("sealed with a secret key that was not given")

// Keys seal values with the first of them and open what any of them has sealed.
type Keys struct {
	ids   []string
	aeads []cipher.AEAD
}

// NewKey makes a key, as text.
func NewKey() string {
	key := make([]byte, keyBytes)
	_, _ = rand.Read(key) // it never fails
	return base64.StdEncoding.EncodeToString(key)
}

// ParseKeys reads keys as files, variables and commands give them: one a line, the newest first.
// Empty lines and those that begin with # do not count.
func ParseKeys(text string) (*Keys, error) {
	k := &Keys{}
	for number, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		key, err := base64.StdEncoding.DecodeString(line)
		if err != nil || len(key) != keyBytes {
			return nil, fmt.Errorf("line %d is not a key: give %d random bytes as base64, as by: openssl rand -base64 %d", number+1, keyBytes, keyBytes)
		}
		block, err := aes.NewCipher(key)
		if err != nil {
			return nil, err
		}
		aead, err := cipher.NewGCM(block)
		if err != nil {
			return nil, err
		}
		sum := sha256.Sum256(key)
		k.ids, k.aeads = append(k.ids, string(sum[:idBytes])), append(k.aeads, aead)
	}
	if len(k.ids) == 0 {
		return nil, fmt.Errorf("there is no key: give %d random bytes as base64, as by: openssl rand -base64 %d", keyBytes, keyBytes)
	}
	return k, nil
}

// names are the ids of the keys as text, the newest first.
func (k *Keys) names() []string {
	names := make([]string, len(k.ids))
	for i, id := range k.ids {
		names[i] = hex.EncodeToString([]byte(id))
	}
	return names
}

// Overhead is how much longer a value is when it is sealed.
func (k *Keys) Overhead() int { return head + k.aeads[0].NonceSize() + k.aeads[0].Overhead() }

// Seal encrypts a value with the newest key. It can be opened under the same key of an entry only.
func (k *Keys) Seal(key string, value []byte) []byte {
	sealed := make([]byte, 0, k.Overhead()+len(value))
	sealed = append(append(sealed, magic...), k.ids[0]...)
	sealed = sealed[:head+k.aeads[0].NonceSize()]
	_, _ = rand.Read(sealed[head:])
	return k.aeads[0].Seal(sealed, sealed[head:], value, []byte(key))
}

// IsSealed tells whether a value is encrypted.
func IsSealed(value []byte) bool { return isSealed(value) }

func isSealed(value []byte) bool { return bytes.HasPrefix(value, []byte(magic)) }

// Open gives the value, and whether it is as the newest key seals it. One that is not sealed is
// given as it is.
func (k *Keys) Open(key string, value []byte) (_ []byte, newest bool, err error) {
	if !isSealed(value) {
		return value, false, nil
	}
	nonce := k.aeads[0].NonceSize()
	if len(value) < k.Overhead() {
		return nil, false, fmt.Errorf("%s is cut short", key)
	}
	id := string(value[len(magic):head])
	for i, aead := range k.aeads {
		if k.ids[i] == id {
			opened, err := aead.Open(nil, value[head:head+nonce], value[head+nonce:], []byte(key))
			if err != nil {
				return nil, false, fmt.Errorf("%s was changed since it was sealed: %w", key, err)
			}
			return opened, i == 0, nil
		}
	}
	return nil, false, fmt.Errorf("%s: %w: it begins with %s when hashed; give the secret keys that this data was written with, the newest first",
		key, ErrUnknownKey, hex.EncodeToString([]byte(id)))
}
