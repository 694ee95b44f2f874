package connect

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// What servers have to be.
const (
	minMajor, minMinor = 2, 15
	minPayload         = 4 << 20
	advisedPayload     = 8 << 20
)

// ErrUnfit: the servers do not keep what a yard promises.
var ErrUnfit = errors.New("the NATS servers are not set up for a yard")

// Server is what was found out about one server.
type Server struct {
	Name, Version string
	// MaxPayload is the largest message that it takes; zero: not known.
	MaxPayload int64
	// Sync: it syncs what it acknowledges. SyncKnown: that was found out.
	Sync, SyncKnown bool
}

// Report is what was found out about the servers.
type Report struct {
	// Servers are those that were asked; there may be more.
	Servers []Server
	// NoJetStream is why there is no JetStream; empty where there is.
	NoJetStream string
	// NoReplicas is why a stream cannot have the replicas that were asked for; empty where it can.
	NoReplicas string
	// Skew is that of this node's clock.
	Skew Skew
	// Problems are sentences: what has to be another before a yard starts, with the line to write.
	// Warnings are for each start.
	Problems, Warnings []string
	// Local: all servers are on this machine's loopback.
	Local bool

	// known is how many servers there are at least, asked or not.
	known int
}

// problem is a setting that has to be another. Without the risky ones a yard works, and may lose what
// it has acknowledged.
type problem struct {
	text  string
	risky bool
}

// judge says what has to be another, and what should be.
func (r Report) judge(want Settings) (problems []problem, warnings []string) {
	if r.NoJetStream != "" {
		return []problem{{text: fmt.Sprintf("JetStream is not enabled for this account (%s): add to the servers' configuration: jetstream { store_dir: /var/lib/nats, sync_interval: always }", r.NoJetStream)}}, nil
	}
	answered := 0 // of whom it is known whether they sync
	for _, s := range r.Servers {
		switch {
		case s.Version == "":
		case !newEnough(s.Version):
			problems = append(problems, problem{fmt.Sprintf("server %s has version %s, and %d.%d or later is needed: upgrade it", s.Name, s.Version, minMajor, minMinor), true})
		}
		switch {
		case s.MaxPayload == 0:
		case s.MaxPayload < minPayload:
			problems = append(problems, problem{text: fmt.Sprintf("server %s takes messages of at most %d bytes: add to its configuration: max_payload: 8MB", s.Name, s.MaxPayload)})
		case s.MaxPayload < advisedPayload:
			warnings = append(warnings, fmt.Sprintf("server %s takes messages of at most %d bytes; better is: max_payload: 8MB", s.Name, s.MaxPayload))
		}
		if s.SyncKnown {
			answered++
			if !s.Sync {
				problems = append(problems, problem{fmt.Sprintf("server %s acknowledges before it syncs, so that a power cut loses events: set in its configuration: jetstream { sync_interval: always }", s.Name), true})
			}
		}
	}
	if r.NoReplicas != "" {
		problems = append(problems, problem{text: fmt.Sprintf("%d replicas cannot be kept (%s): start that many servers as one cluster, or use replicas=1", want.Replicas, r.NoReplicas)})
	}
	switch {
	case r.Skew.beyond(maxSkew) != 0:
		problems = append(problems, problem{text: r.Skew.String() + ": have all machines follow the same time, as with chrony or systemd-timesyncd"})
	case r.Skew.Held():
		warnings = append(warnings, r.Skew.String()+": times of events are corrected to a second, and retries, expiry and tokens are not")
	}
	if text := unasked(answered, max(r.known, len(r.Servers))); text != "" {
		warnings = append(warnings, text)
	}
	if want.Replicas == 1 {
		warnings = append(warnings, "with replicas=1 a lost server loses what it holds")
	}
	return problems, warnings
}

// unasked warns where fewer servers have answered whether they sync than there are; empty: all have.
func unasked(answered, known int) string {
	const find = "see that each has jetstream { sync_interval: always } in its configuration, and to have it checked give monitor=http://HOST:8222 for each, " +
		"or a user of the system account by system=USER:PASSWORD or systemcreds=FILE"
	switch silent := known - answered; {
	case silent <= 0:
		return ""
	case answered == 0:
		return "it could not be found out whether the NATS servers sync before they acknowledge: " + find
	default:
		return fmt.Sprintf("%d of %d NATS servers could not be asked whether they sync before they acknowledge: start those that are away, %s", silent, known, find)
	}
}

// newEnough reads MAJOR.MINOR of a version.
func newEnough(version string) bool {
	major, rest, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	x, err := strconv.Atoi(major)
	y, err2 := strconv.Atoi(minor)
	return err == nil && err2 == nil && (x > minMajor || x == minMajor && y >= minMinor)
}

// verdict gives what has to be another as sentences. With unsafe the risky ones are warnings.
func verdict(problems []problem, unsafe bool) (refused, warnings []string) {
	for _, p := range problems {
		if p.risky && unsafe {
			warnings = append(warnings, p.text)
			continue
		}
		text := p.text
		if p.risky {
			text += ", or start with --nats-unsafe where losing events does no harm"
		}
		refused = append(refused, text)
	}
	return refused, warnings
}
