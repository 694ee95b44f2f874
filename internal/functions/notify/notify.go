// Package notify tells people and programs when a circuit changes: an event on the grid, mail and
// webhooks, with a signed link that resumes, once, before it expires, and only when a person
// presses the button.
//
// What has been noticed of a circuit, and what is still to be sent about it, is one record in the
// meta store (ledger.go). A change is noticed by one compare-and-set that moves the mark on and
// puts into the same record what has to be sent; only then is anything sent, and each piece leaves
// the record when its receiver has taken it. So a crash anywhere shows as a repeat with the same
// id, never as a loss, and what happened while the yard was down is found at the next start, since
// the circuit's term differs from the mark.
//
//	Circuits.Watch ──→ note ──→ ledger ──→ lane (one a receiver) ──→ claim, send, settle
//	   (watch.go)                (outbox.go)   (lane.go)               (deliver.go)
//
// Several nodes may do all this at once: who notices first wins the compare-and-set, and who sends
// claims the piece first.
//
// People are told once when an incident begins, however often it is tried and fails; once more if
// an operator holds it; and when it has ended. Who could not be told of the beginning before it
// ended is told of both at once. Incidents that follow each other for long are told now and then
// (pace.go), and no target gets more than so many, whatever there is to tell (paces.go). A held
// circuit has no link: what an operator stopped on purpose is resumed by an operator, and the
// notice says by whom it was held and which command ends that.
package notify

import (
	"context"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/eventyard/eventyard/internal/activity"
	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/transport/egress"
	"github.com/eventyard/eventyard/processor"
)

// SMTP is how mail is sent. An empty Addr: none is.
type SMTP struct {
	Addr               string // host:port
	From               string // an address, or Name <address>
	Username, Password string
	// TLS is starttls (required; also empty), tls (from the first byte), or none, which takes no
	// password and is for a server on this machine or network.
	TLS string
	// CA is PEM of authorities to trust instead of the system's.
	CA string
	// Timeout of one mail; 0: 30 s.
	Timeout time.Duration
}

// Circuits is what is watched and resumed; internal/functions/runner's Registry is one.
type Circuits interface {
	// Watch tells the present circuits of all groups and then each change, in order of each
	// circuit, until ctx ends.
	Watch(ctx context.Context, notify func(Circuit)) error
	// Circuit reads one now; false: there is none.
	Circuit(ctx context.Context, g processor.Group, function string) (Circuit, bool, error)
	// Resume closes it if it is still open (or half-open) for this incident, and gives it as it is
	// then; false: it is not.
	Resume(ctx context.Context, g processor.Group, function, incident, by string) (Circuit, bool, error)
	// Targets are where notices of this function go: mailto: and http(s): URLs.
	Targets(g processor.Group, function string) []string
	// Own reports whether the yard itself runs this function; others are programs of clients.
	Own(g processor.Group, function string) bool
	// Lag is how many events wait; -1: unknown.
	Lag(ctx context.Context, g processor.Group) int64
}

// Circuit is one, of a function of a group.
type Circuit struct {
	Group    processor.Group
	Function string
	Record   breaker.Record
}

// Publisher is the grid; changes are published to topics.YardEvents. It takes an event in the form
// of Event Grid's schema as topics stores it.
type Publisher interface {
	Announce(ctx context.Context, events [][]byte) error
}

// Config is the service's.
type Config struct {
	Circuits Circuits
	Topics   Publisher
	Meta     meta.Store // the signing secret, and which notices were sent
	Client   *egress.Client
	SMTP     SMTP
	// Link is the URL of the yard's HTTP listener as people reach it, asked for each notice; nil or
	// "": no link can be given.
	Link func() string
	// LinkLife is how long a link is good; 0: 72 h.
	LinkLife time.Duration
	// Retry delays of a notice that could not be sent, the last for good; nil: 5 s, 30 s, 2 min, 10
	// min, 30 min. It is given up after 24 h.
	Retry   []time.Duration
	Log     *slog.Logger
	Metrics prometheus.Registerer
	// Notes takes the changes of circuits, each from the node that noticed it first; nil means nobody
	// does.
	Notes activity.Notes
}
