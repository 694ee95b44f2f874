package broker

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/eventyard/eventyard/internal/hubs/auth"
)

// MaxNameCharacters is the most that the name of a hub or group may have.
const MaxNameCharacters = 256

// nameRule ends the error for a name that is refused.
const nameRule = "use 1 to 256 of letters, digits, '-', '_', '.' and '/', beginning with a letter, a digit or '_' and ending with a letter or digit"

// ReservedNames are the first path segments that the HTTP listener keeps for itself. No
// hub has such a name, nor one that begins with it and a slash.
func ReservedNames() []string {
	return []string{"api", "topics", "blob", "console", "resume", "healthz", "readyz", "metrics"}
}

func checkHubName(name string) error {
	if !wellFormed(name) {
		return fmt.Errorf("hub %.64q: %w: %s", name, ErrInvalidName, nameRule)
	}
	first, _, _ := strings.Cut(fold(name), "/")
	if slices.Contains(ReservedNames(), first) {
		return fmt.Errorf("hub %.64q: %w: %q is a path of the server itself, choose another beginning", name, ErrReservedName, first)
	}
	if segment := auth.ReservedSegment(name); segment != "" {
		return fmt.Errorf("hub %.64q: %w: behind %q addresses name a part of a hub, choose another word there", name, ErrReservedName, "/"+segment)
	}
	return nil
}

// checkNewName refuses what other programs may read as another name, for what is not there yet.
func checkNewName(name string) error {
	if part := auth.AmbiguousPart(name); part != "" {
		return fmt.Errorf("%.64q: %w: it has %q in it, choose a name without", name, ErrInvalidName, part)
	}
	return nil
}

// checkNewGroup refuses as well what tokens and addresses name a part of another group by.
func checkNewGroup(name string) error {
	if segment := auth.ReservedSegment(name); segment != "" {
		return fmt.Errorf("%.64q: %w: behind %q addresses name a part of a group, choose another word there", name, ErrReservedName, "/"+segment)
	}
	return checkNewName(name)
}

// CheckPublisher refuses a publisher's name that other programs may read as another, or as that of
// something in it. Empty is none. The error wraps ErrInvalidName.
func CheckPublisher(name string) error {
	if strings.Contains(name, "/") {
		return fmt.Errorf("publisher %.64q: %w: it has a slash in it, choose a name without", name, ErrInvalidName)
	}
	if err := checkNewName(name); err != nil {
		return fmt.Errorf("publisher %w", err)
	}
	return nil
}

// isDefaultGroup: $Default is found whatever its case, since clients and
// configurations spell it both ways.
func isDefaultGroup(name string) bool { return fold(name) == "$default" }

// wellFormed is the pattern of the official emulator's configuration: one
// alphanumeric, or two with word characters, '-', '.' and '/' between them. The first
// may also be an underscore, as that of many a topic of Kafka's programs is (_schemas).
func wellFormed(name string) bool {
	if name == "" || len(name) > MaxNameCharacters {
		return false
	}
	if !alphanumeric(name[0]) && name[0] != '_' || !alphanumeric(name[len(name)-1]) {
		return false
	}
	for i := range len(name) {
		if !alphanumeric(name[i]) && !strings.ContainsRune("_-./", rune(name[i])) {
			return false
		}
	}
	return true
}

func alphanumeric(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9'
}

// fold gives the form in which hub names are compared. Only ASCII is folded: some
// other letters have an ASCII one as their lower case and would find a hub of
// another name. It does not allocate for a name that is in lower case already.
func fold(name string) string {
	for i := range len(name) {
		if 'A' <= name[i] && name[i] <= 'Z' {
			folded := []byte(name)
			for ; i < len(folded); i++ {
				if 'A' <= folded[i] && folded[i] <= 'Z' {
					folded[i] += 'a' - 'A'
				}
			}
			return string(folded)
		}
	}
	return name
}

// Keys of the store. A name is one segment: its slashes are escaped, and no name
// holds a '%' of its own.
const (
	hubsPrefix      = "hubs/"
	groupsPrefix    = "groups/"
	producersPrefix = "producers/"
)

// RecordsPrefix is what the prefixes of the records of all groups of all hubs begin with
// (GroupRecords).
const RecordsPrefix = "records/"

// kafkaOffsetsPrefix is what the keys of all offsets of Kafka's groups begin with.
const kafkaOffsetsPrefix = "kafka/offsets/"

// KafkaOffsetKeys is what the keys of the offsets that Kafka's groups have in a hub begin with, by its log. They
// go with the hub; see LogGone.
func KafkaOffsetKeys(log string) string { return kafkaOffsetsPrefix + log + "/" }

func hubKey(folded string) string { return hubsPrefix + segment(folded) }

func nameOfHubKey(key string) string {
	return strings.ReplaceAll(strings.TrimPrefix(key, hubsPrefix), "%2F", "/")
}

func groupKeys(log string) string { return groupsPrefix + log + "/" }

func groupKey(log, group string) string { return groupKeys(log) + segment(group) }

// recordKeys are what services keep of one group, hubRecordKeys of all groups of a hub.
func recordKeys(log, incarnation string) string { return hubRecordKeys(log) + incarnation + "/" }

func hubRecordKeys(log string) string { return RecordsPrefix + log + "/" }

func producerKeys(log string) string { return producersPrefix + log + "/" }

func producerKey(log string, partition int) string {
	return producerKeys(log) + strconv.Itoa(partition)
}

// ofProducerKey is the log and partition whose producers a key is about.
func ofProducerKey(key string) (log, partition string) {
	log, partition, _ = strings.Cut(strings.TrimPrefix(key, producersPrefix), "/")
	return log, partition
}

func segment(name string) string { return strings.ReplaceAll(name, "/", "%2F") }

// logName chooses a storage name for a new hub. The readable beginning is for those
// who look into the storage; the random end makes it new each time, so that a hub
// created again never meets the events of its predecessor.
func logName(hub string) string {
	readable := strings.NewReplacer(".", "-", "/", "-").Replace(fold(hub[:min(len(hub), maxLogPrefix)]))
	readable = cmp.Or(strings.TrimLeft(readable, "_-"), "hub") // engines want a letter or digit first
	return readable + "-" + strings.ToLower(rand.Text()[:12])
}

// maxLogPrefix keeps storage names short enough for any file system or server.
const maxLogPrefix = 48
