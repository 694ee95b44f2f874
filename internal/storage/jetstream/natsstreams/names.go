package natsstreams

import (
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/eventyard/eventyard/internal/storage/jetstream/streams"
)

// names says what things are called at the servers. Buckets of entries, which package entries names,
// have an "e" where logs have an "l"; no yard and no stream has a '=' in its name, so that no two of
// different yards meet.
type names struct{ yard string }

var (
	validYard   = regexp.MustCompile(`^[A-Za-z0-9_-]{1,32}$`)
	validStream = regexp.MustCompile(`^[A-Za-z0-9_-]{1,200}$`)
)

func (n names) check() error {
	if !validYard.MatchString(n.yard) {
		return fmt.Errorf("yard %q: a name has 1 to 32 letters, digits, '-' and '_'", n.yard)
	}
	return nil
}

// stream is the name of a stream at the servers.
func (n names) stream(stream string) string { return "Y_" + n.yard + "_l=" + stream }

// Named gives the name of a stream at the servers, and Ours the reverse; false: it is another's.
func (s *Storage) Named(stream string) string                { return s.names.stream(stream) }
func (s *Storage) Ours(name string) (stream string, is bool) { return s.names.ours(name) }

// ours gives our name of a stream at the servers; false: it is another's.
func (n names) ours(name string) (string, bool) { return strings.CutPrefix(name, n.stream("")) }

// subjects is what a stream takes in.
func (n names) subjects(stream string) string { return n.prefix(stream) + "*" }

// all is what all streams take in.
func (n names) all() string { return "y." + n.yard + ".l.>" }

// prefix is what the subjects of a stream begin with.
func (n names) prefix(stream string) string { return "y." + n.yard + ".l." + stream + "." }

// announcements is where nodes announce things to each other. No stream keeps it.
func (n names) announcements(stream string) string { return "y." + n.yard + ".t." + stream }

func checkStream(stream string) error {
	if !validStream.MatchString(stream) {
		return fmt.Errorf("%w: %q is no name: one has 1 to 200 letters, digits, '-' and '_'", streams.ErrNoStream, stream)
	}
	return nil
}

func checkSubject(subject string) error {
	if subject == "" || len(subject) > 512 || subject[0] == '$' || strings.ContainsAny(subject, ".*> \t\r\n\x00") {
		return fmt.Errorf("%w: %q is no subject of one: a token of up to 512 bytes", streams.ErrNoStream, subject)
	}
	return nil
}

// subjects remembers the whole subjects of messages, which are made of names for each of them
// otherwise.
type subjects struct {
	names names

	mu    sync.Mutex
	known map[subjectKey]string
}

type subjectKey struct{ stream, subject string }

// maxSubjects bounds what is remembered: a yard of many partitions uses some ten thousand.
const maxSubjects = 1 << 16

// of gives the subject of a message.
func (s *subjects) of(stream, subject string) (string, error) {
	key := subjectKey{stream, subject}
	s.mu.Lock()
	defer s.mu.Unlock()
	if whole, ok := s.known[key]; ok {
		return whole, nil
	}
	if err := checkStream(stream); err != nil {
		return "", err
	}
	if err := checkSubject(subject); err != nil {
		return "", err
	}
	if s.known == nil || len(s.known) >= maxSubjects {
		s.known = make(map[subjectKey]string)
	}
	whole := s.names.prefix(stream) + subject
	s.known[key] = whole
	return whole, nil
}
