// Package deadletter keeps what could not be delivered: in a log for each subscription, where
// it can be listed, looked at and redriven, and from there, gathered into few large writes, in
// the target that the subscription names: a folder, a blob container or a hub. Each write is
// announced on the yard's own topic.
//
// The log is the truth: what Put has stored is listed until it is purged or too old, whatever
// becomes of its target. How far the letters have come on their way there, and which were redriven
// and purged, are entries in the meta store, which refer to letters by number (box.go, and package
// setaside).
//
// A writer, one for each subscription that has something to be written, does four things in turn:
// it reads letters, writes them, announces that, and notes how far it came. A crash in between has
// it begin anew where the last note stands: the same letters are written under the same name, and
// sent and announced with the same ids.
package deadletter

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/eventyard/eventyard/internal/grid/pending"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// ErrNotFound: there is no letter of that number.
var ErrNotFound = errors.New("no such dead letter")

// Topics is what it asks of the definitions.
type Topics interface {
	Snapshot() *topics.Snapshot
	OnChange(f func()) (stop func())
	Announce(ctx context.Context, events [][]byte) error
	// Deleted reports whether a subscription that existed does no more, whatever this node has heard
	// of it. It asks the store, and may write to it.
	Deleted(ctx context.Context, id string) (bool, error)
}

// Broker is what it asks of the broker.
type Broker interface {
	Publish(ctx context.Context, hub string, to broker.Target, events []eventlog.Event) (broker.Published, error)
}

// Config is what it works with.
type Config struct {
	Engine eventlog.Engine
	Meta   meta.Store
	Topics Topics
	Broker Broker
	// DataDir is where relative folders are, empty where several nodes share a yard; AllowDirs are
	// others that may be used.
	DataDir   string
	AllowDirs []string
	// Transport reaches blob storage; it is the guarded one. nil: blob storage cannot be used.
	Transport http.RoundTripper
	// Blobs are the yard's own, whose account is BlobAccount; nil: it has none. Accounts are others
	// that targets may name.
	Blobs       Blobs
	BlobAccount string
	Accounts    []Account
	// Delay is how long letters are gathered before they are written (zero: 5 min; negative: at
	// once), GiveUp how long a target may be out of reach (zero: 4 h), Keep how long the yard's own
	// copies are kept (zero: 30 days). MaxRedrives per event without force, zero: 3.
	Delay, GiveUp, Keep time.Duration
	MaxRedrives         int
	// Sharded: the yard has several nodes, and Serve is called for each shard that this one holds.
	Sharded bool
	Log     *slog.Logger
	Metrics prometheus.Registerer
}

// Letter is one dead letter.
type Letter struct {
	Number int64 // its sequence number in the subscription's log
	pending.Delivery
	// Died is when it was put. Written is where it went: a path, a blob's URL, hub NAME; empty: not
	// yet, or nowhere. Redriven is when it was redriven last; zero: never.
	Died     time.Time
	Written  string
	Redriven time.Time
}

// Query chooses letters; zero fields choose all.
type Query struct {
	Numbers      []int64
	EventID      string
	EventType    string
	Reason       string
	Outcome      string
	Since, Until time.Time // by Died
	// Redriven includes those that were redriven already.
	Redriven bool
	// Of is one event of the subscription's source, whatever its id; nil: any.
	Of *Origin
	// From is where to go on (a page's Next), Limit how many (zero: 100).
	From  int64
	Limit int
	// MaxBytes is about how large the letters of a page may be all together, without the last of them;
	// zero: 8 MiB.
	MaxBytes int
}

// Origin is where an event was published.
type Origin struct {
	Source    string
	Partition int
	Sequence  int64
}

// Page is some letters, which may be fewer than asked for, or none, and where to go on; Next is 0
// at the end.
type Page struct {
	Letters []Letter
	Next    int64
	// Total is how many the log holds (not all of which the query chose).
	Total int64
}

// RedriveOptions say how. Rate is how many a second, zero: 1,000; Force goes past the guard against
// loops; Dry only counts them.
type RedriveOptions struct {
	Rate  float64
	Force bool
	Dry   bool
}

// Redriven is what came of it. Next is where to go on, with Until, if that was not all; 0 at the
// end of the log.
type Redriven struct {
	Count   int
	Skipped int
	Next    int64
	Until   time.Time
}

// Counts is how much there is of a subscription.
type Counts struct {
	Kept      int64 // in the log, not purged
	Unwritten int64 // waiting to be written to their target
	// Dropped were given up since the start: their target was out of reach for too long, or they
	// cannot be written at all.
	Dropped int64
	Problem string    // why nothing can be written at present; empty: nothing is wrong
	Since   time.Time // since when the target is out of reach
}
