package entries

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash/fnv"
	"regexp"
	"strings"
)

// definitions is the name of the bucket of all that people change; the buckets of state are s0, s1
// and so on.
const definitions = "d"

// byOwner are the kinds of entries that programs change all the time, and that the buckets of state
// share. The segment behind the prefix names the log, shard or subscription that an entry is of: all
// of one are in one bucket, so that a group's records have one order. Whatever is not named here is
// a definition.
//
// Which bucket an entry is in must never change: a row that is added or removed leaves the entries
// of older programs where nobody looks for them.
var byOwner = []string{
	"records/", "producers/", "places/", "poison/",
	"grid/cursors/", "grid/dead/", "grid/tiers/", "grid/shelves/", "grid/probation/",
	"kafka/groups/", "kafka/offsets/", "kafka/staged/", "kafka/transactions/",
}

// layout is how the entries of a yard are spread over buckets.
type layout struct {
	yard  string
	state int // how many buckets of state there are
}

var validYard = regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)

func (l layout) check() error {
	if !validYard.MatchString(l.yard) {
		return fmt.Errorf("yard %q: a name has 1 to 32 letters, digits, '-' and '_'", l.yard)
	}
	if l.state < 1 || l.state > 64 {
		return errors.New("there are 1 to 64 buckets of state")
	}
	return nil
}

// buckets gives the names of all, definitions first.
func (l layout) buckets() []string {
	names := []string{definitions}
	for i := range l.state {
		names = append(names, l.stateName(i))
	}
	return names
}

func (l layout) stateName(i int) string { return fmt.Sprint("s", i) }

// bucketOf gives the bucket that a key is in.
func (l layout) bucketOf(key string) string {
	for _, prefix := range byOwner {
		if rest, ok := strings.CutPrefix(key, prefix); ok {
			owner, _, _ := strings.Cut(rest, "/")
			return l.stateOf(owner)
		}
	}
	return definitions
}

func (l layout) stateOf(owner string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(owner))
	return l.stateName(int(h.Sum32() % uint32(l.state)))
}

// bucketsUnder gives the buckets that hold keys under a prefix, as meta.CheckPrefix allows it.
func (l layout) bucketsUnder(prefix string) []string {
	for _, kind := range byOwner {
		if rest, ok := strings.CutPrefix(prefix, kind); ok {
			if owner, _, whole := strings.Cut(rest, "/"); whole {
				return []string{l.stateOf(owner)}
			}
			return l.buckets()[1:]
		}
		if strings.HasPrefix(kind, prefix) {
			return l.buckets()
		}
	}
	return []string{definitions}
}

// Definitions is the name that the stream of definitions has at the servers.
func (s *Store) Definitions() string { return layout{yard: s.cfg.Yard}.stream(definitions) }

// stream is the name of the stream that holds a bucket.
func (l layout) stream(bucket string) string { return "Y_" + l.yard + "_e_" + bucket }

// DefinitionsStream is the name of the stream that a yard has as soon as it has any.
func DefinitionsStream(yard string) string { return layout{yard: yard}.stream(definitions) }

// IsStream tells whether a stream of a yard is one of its entries.
func IsStream(yard, name string) bool { return strings.HasPrefix(name, layout{yard: yard}.stream("")) }

// subjects is what the stream of a bucket takes in.
func (l layout) subjects(bucket string) string { return "y." + l.yard + ".e." + bucket + ".>" }

// subject is where the newest state of a key is.
func (l layout) subject(bucket, key string) string {
	return "y." + l.yard + ".e." + bucket + "." + tokens(key)
}

// barrier is a subject of a bucket that is no key's.
func (l layout) barrier(bucket string) string { return "y." + l.yard + ".e." + bucket + ".~barrier" }

// announcements is where nodes announce to each other what they have stored in a bucket. No stream
// keeps it.
func (l layout) announcements(bucket string) string { return "y." + l.yard + ".a." + bucket }

// announced gives the bucket of a subject of announcements.
func (l layout) announced(subject string) (bucket string) {
	return strings.TrimPrefix(subject, l.announcements(""))
}

// maxTokenBytes bounds the part of a subject that is made of a key.
const maxTokenBytes = 512

// tokens gives a key as a part of a subject: the segments, joined by dots, in which every byte is
// written as %XX that is not a letter, a digit, '-', '_', '$' or '='. A key that becomes too long is
// a '~' and its SHA-256; the message has the key in any case. No segment begins with '~' otherwise.
func tokens(key string) string {
	const hexDigits = "0123456789ABCDEF"
	var b strings.Builder
	for i := range len(key) {
		switch c := key[i]; {
		case c == '/':
			b.WriteByte('.')
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_', c == '$', c == '=':
			b.WriteByte(c)
		default:
			b.Write([]byte{'%', hexDigits[c>>4], hexDigits[c&15]})
		}
	}
	if b.Len() <= maxTokenBytes {
		return b.String()
	}
	sum := sha256.Sum256([]byte(key))
	return "~" + hex.EncodeToString(sum[:])
}
