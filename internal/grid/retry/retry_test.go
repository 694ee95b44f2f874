package retry

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/testkit"
)

// statuses are all that HTTP has.
func statuses(yield func(int) bool) {
	for status := 100; status <= 599; status++ {
		if !yield(status) {
			return
		}
	}
}

func answered(status, number int) Attempt {
	return Attempt{Number: number, Status: status, Outcome: Classify(status)}
}

// G3: only these five are success.
func TestOnlyFiveStatusesAreSuccess(t *testing.T) {
	for status := range statuses {
		want := slices.Contains([]int{200, 201, 202, 203, 204}, status)
		for _, resource := range []bool{false, true} {
			got := Judge(Policy{Resource: resource}, answered(status, 1))
			unnamed := Judge(Policy{Resource: resource}, Attempt{Number: 1, Status: status})
			if (got.Do == Done) != want || unnamed != got {
				t.Errorf("status %d, resource %v: %+v, without its outcome %+v", status, resource, got, unnamed)
			}
		}
	}
}

// G4: every status of webhooks and of resource endpoints.
func TestStatusesThatAreGivenUpAtOnce(t *testing.T) {
	for _, tt := range []struct {
		what   string
		policy Policy
		want   []int
	}{
		{"webhooks", Policy{}, []int{400, 401, 403, 404, 413}},
		{"resource endpoints", Policy{Resource: true}, []int{400, 403, 413}},
		{"a list of one's own", Policy{NoRetry: []int{410, 501}}, []int{410, 501}},
		{"an empty list", Policy{NoRetry: []int{}}, nil},
	} {
		t.Run(tt.what, func(t *testing.T) {
			var got []int
			for status := range statuses {
				if v := Judge(tt.policy, answered(status, 1)); v.Do == GiveUp {
					got = append(got, status)
					testkit.Equal(t, v.Reason, ReasonRefused, "status %d for the reason", status)
				}
			}
			testkit.Slices(t, got, tt.want, "given up")
		})
	}
}

// G4: a list that is empty on purpose is so again when it was stored.
func TestAnEmptyListIsKept(t *testing.T) {
	for _, p := range []Policy{{}, {NoRetry: []int{}}, {NoRetry: []int{418}, Floors: map[int]time.Duration{0: 1, 503: 2}}} {
		text, err := json.Marshal(p)
		testkit.Must(t, err)
		var got Policy
		testkit.Must(t, json.Unmarshal(text, &got))
		if (got.NoRetry == nil) != (p.NoRetry == nil) || !slices.Equal(got.NoRetry, p.NoRetry) || len(got.Floors) != len(p.Floors) {
			t.Errorf("stored as %s, read as %+v", text, got)
		}
	}
}

// G4, G5: what a hub answers has no status, but the same consequences.
func TestOutcomesWithoutAStatus(t *testing.T) {
	refused := Verdict{Do: GiveUp, Reason: ReasonRefused}
	again := func(d time.Duration) Verdict { return Verdict{Do: Again, Wait: d} }
	for _, tt := range []struct {
		outcome       Outcome
		webhook, hubs Verdict
	}{
		{Delivered, Verdict{}, Verdict{}},
		{BadRequest, refused, refused},
		{PayloadTooLarge, refused, refused},
		{Forbidden, refused, refused},
		{Unauthorized, refused, again(5 * time.Minute)},
		{NotFound, refused, again(5 * time.Minute)},
		{TimedOut, again(10 * time.Second), again(10 * time.Second)},
		{SocketError, again(10 * time.Second), again(10 * time.Second)},
		{ResolutionError, again(10 * time.Second), again(10 * time.Second)},
		{Busy, again(10 * time.Second), again(10 * time.Second)},
		{Full, again(10 * time.Second), again(10 * time.Second)},
		{GenericError, again(10 * time.Second), again(10 * time.Second)},
		{Canceled, again(10 * time.Second), again(10 * time.Second)},
		{Aborted, again(10 * time.Second), again(10 * time.Second)},
	} {
		t.Run(string(tt.outcome), func(t *testing.T) {
			a := Attempt{Number: 1, Outcome: tt.outcome}
			testkit.Equal(t, Judge(Policy{}, a), tt.webhook, "webhook")
			testkit.Equal(t, Judge(Policy{Resource: true}, a), tt.hubs, "hub")
		})
	}
}

// G5: the whole schedule, to the last attempt.
func TestTheSchedule(t *testing.T) {
	want := []time.Duration{
		10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 10 * time.Minute,
		30 * time.Minute, time.Hour, 3 * time.Hour, 6 * time.Hour,
	}
	for number := 1; number < 30; number++ {
		wait := 12 * time.Hour
		if number <= len(want) {
			wait = want[number-1]
		}
		testkit.Equal(t, Judge(Policy{}, answered(500, number)), (Verdict{Do: Again, Wait: wait}),
			"after attempt %d", number)
	}
	testkit.Equal(t, Judge(Policy{}, answered(500, 30)), (Verdict{Do: GiveUp, Reason: ReasonAttempts}), "after the last")
}

// G5: every status has its floor, which counts where the schedule's step is shorter.
func TestFloorsByStatus(t *testing.T) {
	steps := []time.Duration{10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 10 * time.Minute}
	floor := func(status int, resource bool) time.Duration {
		switch {
		case status == 408:
			return 2 * time.Minute
		case status == 503:
			return 30 * time.Second
		case resource && (status == 401 || status == 404):
			return 5 * time.Minute
		}
		return 10 * time.Second
	}
	for status := range statuses {
		for i, step := range steps {
			for _, resource := range []bool{false, true} {
				got := Judge(Policy{Resource: resource}, answered(status, i+1))
				if want := max(step, floor(status, resource)); got.Do == Again && got.Wait != want {
					t.Errorf("status %d, attempt %d, resource %v: %v, want %v", status, i+1, resource, got.Wait, want)
				}
			}
		}
	}
}

// G13: schedules and floors of one's own.
func TestSchedulesAndFloorsOfOnesOwn(t *testing.T) {
	fast := []time.Duration{100 * time.Millisecond, time.Second}
	for _, tt := range []struct {
		what           string
		policy         Policy
		status, number int
		want           time.Duration
	}{
		{"the first step", Policy{Schedule: fast}, 500, 1, 100 * time.Millisecond},
		{"the second", Policy{Schedule: fast}, 500, 2, time.Second},
		{"the last is repeated", Policy{Schedule: fast}, 500, 29, time.Second},
		{"it has no floor for 408", Policy{Schedule: fast}, 408, 1, 100 * time.Millisecond},
		{"nor for 503", Policy{Schedule: fast}, 503, 1, 100 * time.Millisecond},
		{"nor for 404 of a resource", Policy{Schedule: fast, Resource: true}, 404, 1, 100 * time.Millisecond},
		{"but for those given", Policy{Schedule: fast, Floors: map[int]time.Duration{503: 5 * time.Second}}, 503, 1, 5 * time.Second},
		{"which are for their status only", Policy{Schedule: fast, Floors: map[int]time.Duration{503: 5 * time.Second}}, 500, 1, 100 * time.Millisecond},
		{"status 0 is for all others", Policy{Schedule: fast, Floors: map[int]time.Duration{0: 3 * time.Second, 503: 5 * time.Second}}, 408, 1, 3 * time.Second},
		{"and not for one given", Policy{Schedule: fast, Floors: map[int]time.Duration{0: 3 * time.Second, 503: time.Second}}, 503, 1, time.Second},
		{"a floor of one's own in the default schedule", Policy{Floors: map[int]time.Duration{408: 40 * time.Second}}, 408, 1, 40 * time.Second},
		{"leaves the others", Policy{Floors: map[int]time.Duration{408: 40 * time.Second}}, 503, 1, 30 * time.Second},
		{"all others of one's own leave 503's", Policy{Floors: map[int]time.Duration{0: 20 * time.Second}}, 503, 1, 30 * time.Second},
		{"and count for 500", Policy{Floors: map[int]time.Duration{0: 20 * time.Second}}, 500, 1, 20 * time.Second},
		{"and for no answer", Policy{Floors: map[int]time.Duration{0: 20 * time.Second}}, 0, 1, 20 * time.Second},
		{"a floor of zero", Policy{Floors: map[int]time.Duration{408: 0}}, 408, 1, 10 * time.Second},
	} {
		t.Run(tt.what, func(t *testing.T) {
			if got := Judge(tt.policy, answered(tt.status, tt.number)); got != (Verdict{Do: Again, Wait: tt.want}) {
				t.Errorf("got %+v, want %v", got, tt.want)
			}
		})
	}
}

// Reference §11: Retry-After may lengthen a wait, never shorten it, and has a cap.
func TestRetryAfter(t *testing.T) {
	for _, tt := range []struct {
		what           string
		policy         Policy
		status, number int
		asked, want    time.Duration
	}{
		{"lengthens after 429", Policy{}, 429, 1, 5 * time.Minute, 5 * time.Minute},
		{"lengthens after 503", Policy{}, 503, 1, 5 * time.Minute, 5 * time.Minute},
		{"does not shorten the step", Policy{}, 429, 5, time.Second, 10 * time.Minute},
		{"does not shorten the floor", Policy{}, 503, 1, time.Second, 30 * time.Second},
		{"is nothing after 500", Policy{}, 500, 1, 5 * time.Minute, 10 * time.Second},
		{"nor after 301", Policy{}, 301, 1, 5 * time.Minute, 10 * time.Second},
		{"has a cap", Policy{}, 429, 1, 100 * time.Hour, time.Hour},
		{"the cap does not shorten the step", Policy{}, 429, 9, 100 * time.Hour, 6 * time.Hour},
		{"a cap of one's own", Policy{MaxRetryAfter: 2 * time.Hour}, 503, 1, 100 * time.Hour, 2 * time.Hour},
		{"not honoured where so said", Policy{MaxRetryAfter: -1}, 503, 1, 5 * time.Minute, 30 * time.Second},
		{"lengthens a schedule of one's own", Policy{Schedule: []time.Duration{time.Second}}, 429, 1, 7 * time.Second, 7 * time.Second},
		{"negative is nothing", Policy{}, 429, 1, -time.Hour, 10 * time.Second},
	} {
		t.Run(tt.what, func(t *testing.T) {
			a := answered(tt.status, tt.number)
			a.RetryAfter = tt.asked
			testkit.Equal(t, Judge(tt.policy, a), (Verdict{Do: Again, Wait: tt.want}),
				"got")
		})
	}
}

// G6: the last attempt is the last, whichever number is allowed.
func TestMaxAttempts(t *testing.T) {
	for most := 1; most <= 30; most++ {
		for number := 1; number <= 31; number++ {
			got := Judge(Policy{MaxAttempts: most}, answered(500, number))
			if number < most && got.Do != Again || number >= most && got != (Verdict{Do: GiveUp, Reason: ReasonAttempts}) {
				t.Errorf("attempt %d of %d: %+v", number, most, got)
			}
		}
	}
	testkit.Equal(t, Judge(Policy{MaxAttempts: 1}, answered(404, 1)).Reason, ReasonRefused, "a refused last attempt")
	testkit.Equal(t, Judge(Policy{MaxAttempts: 1}, answered(204, 1)).Do, Done, "a successful last attempt")
}

// G6: time to live, and the eleven attempts that the defaults allow within a day.
func TestExpired(t *testing.T) {
	published := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, tt := range []struct {
		what string
		ttl  time.Duration
		age  time.Duration
		want bool
	}{
		{"at once", 0, 0, false},
		{"before the day is over", 0, 24*time.Hour - 1, false},
		{"when it is over", 0, 24 * time.Hour, true},
		{"before a time of one's own", time.Minute, 59 * time.Second, false},
		{"after it", time.Minute, 61 * time.Second, true},
		{"a clock that went back", time.Minute, -time.Hour, false},
	} {
		t.Run(tt.what, func(t *testing.T) {
			testkit.Equal(t, Expired(Policy{TimeToLive: tt.ttl}, published, published.Add(tt.age)), tt.want)
		})
	}
}

// G6: how many attempts the schedule makes within a time to live (reference §12).
func TestAttemptsWithinTimeToLive(t *testing.T) {
	published := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	tests := []struct {
		ttl  time.Duration
		want int
	}{{24 * time.Hour, 11}, {30 * time.Minute, 6}, {time.Minute, 3}, {time.Second, 1}}
	for _, tt := range tests {
		t.Run(tt.ttl.String(), func(t *testing.T) {
			p := Policy{TimeToLive: tt.ttl}
			now, attempts := published, 0
			for !Expired(p, published, now) {
				attempts++
				now = now.Add(Judge(p, answered(500, attempts)).Wait)
			}
			testkit.Equal(t, attempts, tt.want, "attempts")
		})
	}
}

// G5: whoever failed more often never waits less.
func TestWaitsNeverShrink(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := Policy{Resource: rapid.Bool().Draw(t, "resource")}
		a := answered(rapid.IntRange(100, 599).Draw(t, "status"), rapid.IntRange(1, 28).Draw(t, "number"))
		a.RetryAfter = time.Duration(rapid.Int64().Draw(t, "retry after"))
		first := Judge(p, a)
		a.Number++
		second := Judge(p, a)
		testkit.MustEqual(t, first.Do, second.Do, "%+v, then %+v", first, second)
		if second.Wait < first.Wait {
			t.Fatalf("%v, then %v", first.Wait, second.Wait)
		}
		if first.Do == Again && first.Wait < 10*time.Second {
			t.Fatalf("only %v", first.Wait)
		}
	})
}

// Reference §11: the names of all statuses.
func TestClassify(t *testing.T) {
	want := map[int]Outcome{
		200: Delivered, 201: Delivered, 202: Delivered, 203: Delivered, 204: Delivered,
		400: BadRequest, 401: Unauthorized, 403: Forbidden, 404: NotFound, 410: NotFound,
		408: TimedOut, 413: PayloadTooLarge, 429: Busy, 503: Busy,
	}
	for status := range statuses {
		named, ok := want[status]
		if !ok {
			named = GenericError
		}
		testkit.Equal(t, Classify(status), named, "%d", status)
	}
}

// G7: what is a sign of illness.
func TestIll(t *testing.T) {
	tests := map[Outcome]bool{
		Delivered: false, BadRequest: false, PayloadTooLarge: false, OnProbation: false, Canceled: false, Aborted: false,
		Unauthorized: true, Forbidden: true, NotFound: true, TimedOut: true, Busy: true, GenericError: true,
		ResolutionError: true, SocketError: true, Full: true, Disabled: true,
	}
	for outcome, want := range tests {
		testkit.Equal(t, Ill(outcome), want, "%s: %v", outcome, !want)
	}
}

// R4: what was not tried is tried again, however many attempts there were and whatever is given up at
// once.
func TestWhatWasNotTried(t *testing.T) {
	p := Policy{MaxAttempts: 1, NoRetry: []int{429}}
	for number := range 3 {
		got := Judge(p, Attempt{Number: number, Status: 429, Outcome: Busy, RetryAfter: time.Minute, Untried: true})
		testkit.Equal(t, got, (Verdict{Do: Again, Wait: time.Minute}), "after %d attempts", number)
	}
}
