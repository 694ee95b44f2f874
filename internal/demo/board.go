package demo

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// Board is everything that the views show, at one moment. It is made once a second and never changed.
type Board struct {
	At      time.Time
	Started time.Time
	Console string // URL of the yard's console
	Levers  string // URL of the demo's own pages
	YardUp  bool

	Rate       Rate
	Acked      int64   // of all that was sent; the books have it only as often as they are looked at
	Aggregated float64 // events a second that consumers have read
	Behind     time.Duration
	ToPage     time.Duration // from a sensor to a resident's page, for half of the readings
	Machine    float64       // share of the processors in use; negative: not known

	Consumers []ConsumerRow
	Owners    []OwnerRow // by partition
	Hooks     []HookRow
	Scorer    ScorerRow
	Books     Books
	Trials    []Trial
	Journal   []Entry // the newest first
	Trend     Trend
}

// Trend is the last minutes of some figures, the oldest first.
type Trend struct{ Sent, Aggregated, InBlobs, ToPage, Machine []float64 }

// trendLength is how many seconds a trend has.
const trendLength = 120

// with gives the trend with one more second.
func (t Trend) with(b *Board) Trend {
	add := func(to []float64, v float64) []float64 {
		return append(slices.Clone(to[max(0, len(to)-trendLength+1):]), v)
	}
	return Trend{
		add(t.Sent, b.Rate.Sent), add(t.Aggregated, b.Aggregated), add(t.InBlobs, float64(b.Books.InBlobs)), add(t.ToPage, b.ToPage.Seconds()), add(t.Machine, b.Machine),
	}
}

// Server is the yard's address, for commands.
func (b *Board) Server() string { return strings.TrimSuffix(b.Console, "/console/") }

// Rate is what the gateway sends.
type Rate struct {
	Homes, Sensors int
	Promised, Sent float64 // events a second
	Reached        float64 // share of what was promised
	Alarms, Odd    int64
}

// ConsumerRow is a consumer.
type ConsumerRow struct {
	Name       string
	Process    int
	Fate       string // such as "killed 22:06:32"; empty while it works
	Started    time.Time
	Partitions []string
	Rate       float64
	Behind     time.Duration
}

// Gone tells whether the consumer has ended.
func (r ConsumerRow) Gone() bool { return r.Fate != "" }

// OwnerRow is who has a partition, and who has asked for it.
type OwnerRow struct{ Partition, Owner, Next string }

// HookRow is a webhook.
type HookRow struct {
	Name      string
	State     string // of the endpoint
	Until     time.Time
	Delivered int64
	Waiting   int64
	Dead      int64
}

// ScorerRow is the function score-anomaly.
type ScorerRow struct {
	State    string
	Since    time.Time
	Waiting  int64
	Poisoned int // events that it cannot take, put away
	Innocent int // others that were put away
	Notices  []Notice
}

// Open tells whether the circuit is open.
func (s ScorerRow) Open() bool { return s.State == "open" || s.State == "half-open" }

// Notice is a message in the demo's mailbox.
type Notice struct {
	At         time.Time
	Text, Link string
}

// Entry is a line of the journal.
type Entry struct {
	At   time.Time
	Text string
}

// working is how many consumers there are.
func (b *Board) working() (n int) {
	for _, c := range b.Consumers {
		if !c.Gone() {
			n++
		}
	}
	return n
}

// ownedBy gives the partitions of a consumer, in order.
func (b *Board) ownedBy(name string) []string {
	var owned []string
	for _, o := range b.Owners {
		if o.Owner == name {
			owned = append(owned, o.Partition)
		}
	}
	slices.SortFunc(owned, byNumber)
	return owned
}

// hook gives a webhook by its name.
func (b *Board) hook(name string) (HookRow, bool) {
	i := slices.IndexFunc(b.Hooks, func(h HookRow) bool { return h.Name == name })
	if i < 0 {
		return HookRow{}, false
	}
	return b.Hooks[i], true
}

// trial gives how a lever's last pull went.
func (b *Board) trial(lever string) (Trial, bool) {
	i := slices.IndexFunc(b.Trials, func(t Trial) bool { return t.Lever == lever })
	if i < 0 {
		return Trial{}, false
	}
	return b.Trials[i], true
}

// byNumber orders partitions.
func byNumber(a, b string) int { return number(a) - number(b) }

func number(partition string) int {
	n, _ := strconv.Atoi(partition)
	return n
}
