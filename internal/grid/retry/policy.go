package retry

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"
)

// What the zero values of a Policy stand for.
const (
	DefaultAttempts      = 30
	DefaultTimeToLive    = 24 * time.Hour
	DefaultMaxRetryAfter = time.Hour
)

// The defaults of G4 and G5.
var (
	defaultSchedule = []time.Duration{
		10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 10 * time.Minute,
		30 * time.Minute, time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour,
	}
	defaultFloors = map[int]time.Duration{
		0:   10 * time.Second,
		408: 2 * time.Minute,
		503: 30 * time.Second,
	}
	refusedByWebhooks  = []int{400, 401, 403, 404, 413}
	refusedByResources = []int{400, 403, 413}
)

// resourceFloor is the least wait after 401 and 404 of a resource endpoint: somebody has to do
// something there first.
const resourceFloor = 5 * time.Minute

// Policy is a subscription's. The zero value of each field means its default.
type Policy struct {
	// MaxAttempts is 1 to 30, default 30. TimeToLive is 1 s to 24 h, default 24 h.
	MaxAttempts int           `json:"maxAttempts,omitempty"`
	TimeToLive  time.Duration `json:"timeToLive,omitempty"`
	// Schedule is the wait after each failed attempt, the last repeated; empty: G5's. One of
	// one's own sets the floors to zero but for those given.
	Schedule []time.Duration `json:"schedule,omitempty"`
	// Floors are the least waits by status; those not given are G5's (or zero, see Schedule).
	// Status 0 stands for all others.
	Floors map[int]time.Duration `json:"floors,omitempty"`
	// NoRetry are the statuses that are given up at once; nil: G4's (400, 403, 413, and for
	// webhooks 401 and 404). An empty one is not nil, also when stored: everything is retried.
	NoRetry []int `json:"noRetry,omitzero"`
	// Resource: the endpoint is a hub, not a webhook (G4, G5).
	Resource bool `json:"-"`
	// MaxRetryAfter caps what a receiver may ask for by Retry-After; zero: 1 h; negative: it
	// is not honoured.
	MaxRetryAfter time.Duration `json:"maxRetryAfter,omitempty"`
}

// Limits are how far a policy may go; the zero value of each field means Event Grid's.
type Limits struct {
	MaxAttempts int           // zero: 30
	TimeToLive  time.Duration // zero: 24 h
}

// The bounds of what has no limit of its own in Limits.
const (
	MinTimeToLive = time.Second
	MaxWait       = 24 * time.Hour
	maxSteps      = 100
)

// Check says what is wrong with a policy, and what is allowed.
func (p Policy) Check() error { return p.CheckWithin(Limits{}) }

// CheckWithin is Check where an operator allows more, or less. Where the default is beyond the
// limits, a policy has to say something.
func (p Policy) CheckWithin(l Limits) error {
	l.MaxAttempts = cmp.Or(l.MaxAttempts, DefaultAttempts)
	l.TimeToLive = cmp.Or(l.TimeToLive, DefaultTimeToLive)
	if n := p.attempts(); n < 1 || n > l.MaxAttempts {
		return fmt.Errorf("max attempts of %d: give 1 to %d%s", n, l.MaxAttempts, orZero(DefaultAttempts, l.MaxAttempts))
	}
	if d := p.timeToLive(); d < MinTimeToLive || d > l.TimeToLive {
		return fmt.Errorf("time to live of %v: give %v to %v%s", d, MinTimeToLive, l.TimeToLive, orZero(DefaultTimeToLive, l.TimeToLive))
	}
	if p.MaxRetryAfter > MaxWait {
		return fmt.Errorf("max Retry-After of %v: give at most %v, or a negative one so that it is not honoured", p.MaxRetryAfter, MaxWait)
	}
	if len(p.Schedule) > maxSteps {
		return fmt.Errorf("a schedule of %d waits: give at most %d, the last is repeated", len(p.Schedule), maxSteps)
	}
	for i, d := range p.Schedule {
		if d <= 0 || d > MaxWait {
			return fmt.Errorf("wait %d of the schedule is %v: give more than zero and at most %v", i+1, d, MaxWait)
		}
	}
	for _, status := range slices.Sorted(maps.Keys(p.Floors)) {
		if status != 0 && !isStatus(status) {
			return fmt.Errorf("a least wait for status %d: give 100 to 599, or 0 for all others", status)
		}
		if d := p.Floors[status]; d < 0 || d > MaxWait {
			return fmt.Errorf("a least wait of %v for status %d: give 0 to %v", d, status, MaxWait)
		}
	}
	for _, status := range p.NoRetry {
		if !isStatus(status) {
			return fmt.Errorf("status %d among those not to be retried: give 100 to 599", status)
		}
		if Classify(status) == Delivered {
			return fmt.Errorf("status %d among those not to be retried means success: leave it out", status)
		}
	}
	return nil
}

// orZero adds what zero means, where that is allowed.
func orZero[T cmp.Ordered](usual, limit T) string {
	if usual > limit {
		return ""
	}
	return fmt.Sprintf(", or 0 for the default of %v", usual)
}

func isStatus(status int) bool { return status >= 100 && status <= 599 }
