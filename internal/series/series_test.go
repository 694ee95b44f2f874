package series

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/eventyard/eventyard/internal/testkit"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	noon    = time.Date(2026, 11, 17, 12, 0, 0, 500_000_000, time.UTC)
	orders  = Key{Of: Published, Hub: "orders"}
	ofAll   = Key{Of: Published}
	billing = Key{Of: Lag, Hub: "orders", Group: "billing"}
)

// after is so many seconds after noon.
func after(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }

// show writes values as people would, "-" for what is unknown.
func show(values []float32) string {
	texts := make([]string, len(values))
	for i, v := range values {
		if texts[i] = "-"; !isUnknown(v) {
			texts[i] = fmt.Sprint(v)
		}
	}
	return strings.Join(texts, " ")
}

// counted gives a store the states of a counter, second after second; -1: no sample.
func counted(s *Store, key Key, from int, states ...float64) {
	for i, v := range states {
		if v >= 0 {
			s.Add(after(from+i), []Sample{{key, v}})
		}
	}
}

// R6: a rate is what a counter rises by in a second, whatever becomes of the counter.
func TestRates(t *testing.T) {
	for name, tt := range map[string]struct {
		states []float64
		want   string
	}{
		"rising":                   {[]float64{0, 10, 30, 30}, "- 10 20 0"},
		"begun before the sampler": {[]float64{1000, 1010}, "- 10"},
		"begun again":              {[]float64{0, 100, 7, 9}, "- 100 7 2"},
		"a sample that is missing": {[]float64{0, 10, -1, 30}, "- 10 10 10"},
		"two missing":              {[]float64{0, 10, -1, -1, 40, 41}, "- 10 10 10 10 1"},
	} {
		t.Run(name, func(t *testing.T) {
			s := NewStore(10)
			counted(s, orders, 0, tt.states...)
			n := len(tt.states)
			got := s.Read(orders, time.Duration(n)*time.Second, after(n))
			testkit.Equal(t, show(got.Values), tt.want, "rates")
			testkit.Equal(t, got.From(), after(0).Truncate(time.Second), "the first second")
		})
	}
}

// R6: a sampler that did not run for long leaves a gap, and no rate that never was.
func TestAGap(t *testing.T) {
	s := NewStore(10)
	counted(s, orders, 0, 0, 5)
	counted(s, orders, 20, 105, 110)
	testkit.Equal(t, show(s.Read(orders, 22*time.Second, after(22)).Values),
		"- 5 - - - - - - - - - - - - - - - - - - 5.263158 5", "with a gap of 18 seconds")
}

// R6: what is added up are rates, so that a part that goes takes nothing from the whole, and one that
// comes adds what it has counted since.
func TestTheWholeOfParts(t *testing.T) {
	s := NewStore(10)
	other := Key{Of: Published, Topic: "alarms"}
	s.Add(after(0), []Sample{{orders, 100}, {other, 50}})
	s.Add(after(1), []Sample{{orders, 110}, {other, 51}})
	s.Add(after(2), []Sample{{orders, 120}})
	s.Add(after(3), []Sample{{orders, 130}, {other, 2}})
	testkit.Equal(t, show(s.Read(ofAll, 4*time.Second, after(4)).Values), "- 11 10 12", "all")
	testkit.Equal(t, show(s.Read(other, 4*time.Second, after(4)).Values), "- 1 2 2", "the part: what is missing is filled in")
}

// R6: every series is a part of the next wider one; of lags the worst counts.
func TestParents(t *testing.T) {
	s := NewStore(50)
	shop := Key{Of: Waiting, Topic: "shop:sales", Subscription: "mailer"}
	s.Add(after(0), []Sample{
		{billing, 7}, {Key{Of: Lag, Hub: "orders", Group: "audit"}, 9}, {Key{Of: Lag, Hub: "other", Group: "audit"}, 8},
		{shop, 3}, {Key{Of: Waiting, Topic: "shop", Subscription: "mailer"}, 4}, {Key{Of: Waiting, Hub: "orders", Subscription: "copy"}, 5},
		{Key{Of: "nonsense"}, 1},
	})
	for key, want := range map[Key]float32{
		billing: 7, {Of: Lag, Hub: "orders"}: 9, {Of: Lag}: 9,
		shop: 3, {Of: Waiting, Topic: "shop:sales"}: 3, {Of: Waiting, Topic: "shop"}: 7, {Of: Waiting, Hub: "orders"}: 5, {Of: Waiting}: 12,
	} {
		testkit.Equal(t, s.Now([]Key{key}, after(1))[0], want, key)
	}
	testkit.That(t, math.IsNaN(float64(s.Now([]Key{{Of: "nonsense"}}, after(1))[0])), "it keeps what it does not know")
}

// R6: a longer span has wider steps: of a rate the mean, and of a gauge the peak.
func TestWiderSteps(t *testing.T) {
	s, gauge := NewStore(10), Key{Of: LagSeconds, Hub: "orders"}
	begin := int(noon.Truncate(time.Hour).Sub(noon).Seconds())
	for i := range 3600 {
		peak := 1.0
		if i%60 == 30 {
			peak = 40
		}
		s.Add(after(begin+i), []Sample{{orders, float64(i * (1 + i%2))}, {gauge, peak}})
	}
	now := after(begin + 3600)
	for _, tt := range []struct {
		span, step time.Duration
		count      int
	}{
		{time.Second, time.Second, 1}, {15 * time.Minute, time.Second, 900}, {15*time.Minute + 1, 10 * time.Second, 91},
		{2 * time.Hour, 10 * time.Second, 720}, {3 * time.Hour, time.Minute, 180}, {24 * time.Hour, time.Minute, 1440}, {1000 * time.Hour, time.Minute, 1440},
	} {
		p := s.Read(gauge, tt.span, now)
		testkit.Equal(t, fmt.Sprint(p.Step, len(p.Values)), fmt.Sprint(tt.step, tt.count), "steps of "+tt.span.String())
	}
	testkit.Equal(t, show(s.Read(gauge, time.Hour, now).Values[354:360]), "1 1 1 40 1 1", "peaks, by 10 seconds")
	hours := s.Read(gauge, 24*time.Hour, now).Values
	testkit.Equal(t, show(hours[1440-62:1440-58])+" "+show(hours[1438:]), "- - 40 40 40 40", "peaks, by minutes")
}

// R6: what was asked for stays, and of the rest what is silent goes first; wholes come before parts.
func TestBoundedSeries(t *testing.T) {
	s := NewStore(3)
	many := func(second int, n int) {
		var samples []Sample
		for i := range n {
			samples = append(samples, Sample{Key{Of: Waiting, Topic: fmt.Sprint("t", i)}, float64(i)})
		}
		s.Add(after(second), samples)
	}
	many(0, 8)
	testkit.Equal(t, len(s.kept), 3, "series kept")
	testkit.Equal(t, s.Now([]Key{{Of: Waiting}}, after(1))[0], 28, "the whole")
	want := []Key{{Of: Waiting, Topic: "t6"}, {Of: Waiting, Topic: "t7"}}
	s.Read(want[0], time.Minute, after(1))
	s.Read(want[1], time.Minute, after(1))
	many(1, 8)
	testkit.Equal(t, show(s.Now(want, after(2))), "6 7", "those that were asked for")
	s.Read(Key{Of: Waiting, Topic: "t1"}, time.Minute, after(2))
	many(2, 8)
	testkit.Equal(t, show(s.Now([]Key{{Of: Waiting, Topic: "t1"}, {Of: Waiting}}, after(3))), "- 28", "one more, while somebody looks at all others")
	testkit.That(t, s.Asked(Waiting, after(3)) && !s.Asked(Lag, after(3)) && !s.Asked(Waiting, after(100)), "what is asked for")
	many(3, 1)
	for i := range 2 { // zeros are noted once there is room
		many(int(MaxSpan/time.Second)+10+i, 1)
	}
	testkit.Equal(t, len(s.kept), 2, "series of which something is left")
}

// R3: where there is no room, what does nothing costs nothing, and is zero all the same to who asks.
func TestSilentSeries(t *testing.T) {
	s := NewStore(2)
	key := func(i int) Key { return Key{Of: Delivered, Topic: "orders", Subscription: fmt.Sprint("s", i)} }
	add := func(second int) {
		var samples []Sample
		for i := range 100 {
			samples = append(samples, Sample{key(i), float64(i / 99 * second)})
		}
		s.Add(after(second), samples)
	}
	add(0)
	add(1)
	add(2)
	testkit.Equal(t, len(s.counters), 1, "counters that stand at something")
	testkit.Equal(t, show(s.Now([]Key{{Of: Delivered}, key(5)}, after(3))), "1 -", "the whole, and one of which nothing is known yet")
	add(3)
	testkit.Equal(t, show(s.Now([]Key{{Of: Delivered}, key(5)}, after(4))), "1 0", "once somebody has asked for it")
}

// R6, C4: series of several nodes are added up by time, whoever lacks what.
func TestMerge(t *testing.T) {
	at := func(first int64, values ...float32) Points {
		return Points{Step: time.Second, first: first, Values: values}
	}
	sum, most := Form{}, Form{Most: true}
	one, other := at(10, 1, unknown, 3, unknown), at(11, 10, 20, unknown, 40)
	testkit.Equal(t, show(Merge(sum, one, other).Values), "1 10 23 -", "added up")
	testkit.Equal(t, show(Merge(most, one, other).Values), "1 10 20 -", "the most")
	testkit.Equal(t, show(Merge(sum, one, Points{}, empty(time.Minute, 1, 4)).Values), "1 - 3 -", "with one that has nothing, and one of other steps")
	testkit.Equal(t, len(Merge(sum).Values), 0, "values of nobody")
}

// C4: points come over the wire as they are.
func TestPointsAsJSON(t *testing.T) {
	p := Points{Step: 10 * time.Second, first: 176_000, Values: []float32{0, 1234567, 0.1234567, unknown, 2.5e9}}
	text := testkit.Value(json.Marshal(p))(t)
	testkit.Equal(t, string(text), `{"from":176000,"step":10,"values":[0,1234567,0.1235,null,2.5e+09]}`)
	var got Points
	testkit.Must(t, json.Unmarshal(text, &got))
	testkit.Equal(t, show(got.Values), "0 1.234567e+06 0.1235 - 2.5e+09", "values")
	testkit.Equal(t, got.From(), p.From(), "from")
}

// R6: the sampler takes one sample for each second, and ends with its context.
func TestSampler(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		count := 0.0
		s := &Sampler{Store: NewStore(10), Sources: []Source{func(_ context.Context, _ time.Time, add func(Key, float64)) {
			count += 5
			add(orders, count)
		}}}
		done := make(chan error)
		go func() { done <- s.Run(ctx) }()
		time.Sleep(10*time.Second + 100*time.Millisecond)
		testkit.Equal(t, show(s.Store.Read(ofAll, 10*time.Second, time.Now()).Values), "- 5 5 5 5 5 5 5 5 5", "rates")
		cancel()
		testkit.Must(t, <-done)
	})
}

func BenchmarkAdd(b *testing.B) {
	s := NewStore(MaxSeries)
	samples := make([]Sample, 2000)
	for i := range samples {
		samples[i].Key = Key{Of: Read, Hub: fmt.Sprint("hub", i%100), Group: fmt.Sprint("group", i)}
	}
	for i := 0; b.Loop(); i++ {
		s.Add(after(i), samples)
	}
}
