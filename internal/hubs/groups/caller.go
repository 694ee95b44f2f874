package groups

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"time"
)

// How a change of a caller that is no operator is refused.
var (
	// ErrForbidden: the record is another instance's, or the change an operator's.
	ErrForbidden = errors.New("this takes the right to manage")
	// ErrBehind: this node has not read yet what the caller has seen, and so cannot tell whose it
	// is. Nothing was written.
	ErrBehind = errors.New("the record is newer than what this node has read, try again")
)

// Caller is who asks for a change over the network. An instance of a processor makes a secret when
// it starts and sends it with each request; the hash of it stands in what the instance writes,
// and who does not know the secret cannot change that while the instance lives. So it holds
// whatever connection, or node, the instance comes by.
type Caller struct {
	// Operator: it has the right to manage. It may change what others hold, and what it says of
	// versions is taken at its word.
	Operator bool
	// Hash is HashOf the secret; empty: a client that is older than secrets sent none. What that
	// writes is anybody's who may listen.
	Hash string
	// Lasts is for how long what it writes counts as an instance's that lives, unless it is
	// written again; 0 means AliveWithin.
	Lasts time.Duration
	// yard: it is this process itself.
	yard bool
}

// maxLasts bounds Caller.Lasts: what nobody writes any more is not to be kept from others for long.
const maxLasts = 10 * time.Minute

// HashOf is what is kept of an instance's secret. It is random and long, so that a plain hash
// gives nothing away.
func HashOf(secret string) string {
	if secret == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// itself is the yard's own process, of which clients know no secret.
func itself() Caller { return Caller{Operator: true, Hash: HashOf(rand.Text()), yard: true} }

// bond is what a record has of who wrote it.
type bond struct {
	// Hash is the writer's; empty: the writer had no secret.
	Hash string `json:"hash,omitempty"`
	// Lasts is in milliseconds; 0 means AliveWithin.
	Lasts int64 `json:"lasts,omitempty"`
}

// noBond is that of a record which is anybody's.
var noBond bond

func (c Caller) bond() bond {
	if c.Hash == "" {
		return noBond
	}
	return bond{Hash: c.Hash, Lasts: min(max(c.Lasts, 0), maxLasts).Milliseconds()}
}

// over reports whether a record that was last written then has not been for too long. Nobody could
// write before the yard was up; and what was written long from now was so before the clock was set
// back, which is no reason to keep it until then.
func (b bond) over(written, up, now time.Time) bool {
	lasts := AliveWithin
	if b.Lasts > 0 {
		lasts = min(time.Duration(b.Lasts)*time.Millisecond, maxLasts)
	}
	if written.Before(up) {
		written = up
	}
	age := now.Sub(written)
	return age >= lasts || age <= -lasts
}
