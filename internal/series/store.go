package series

import (
	"cmp"
	"slices"
	"sync"
	"time"
)

// Store keeps the series of one node. All methods may be called by many goroutines at once, Add by one.
type Store struct {
	max int

	mu   sync.Mutex
	kept map[Key]*series // guarded by mu
	// asked is when somebody last wanted to see a series that is not kept, or a kind of series (a Key
	// with Of alone may be either). Guarded by mu.
	asked map[Key]time.Time

	// The following are Add's.

	then     time.Time       // of the last Add; zero: there was none
	counters map[Key]float64 // as they stood then
	next     map[Key]float64 // for those of now; empty between calls
	values   map[Key]float32 // of this second; empty between calls
}

// NewStore makes one that keeps at most so many series.
func NewStore(max int) *Store {
	return &Store{
		max: max, kept: make(map[Key]*series), asked: make(map[Key]time.Time),
		counters: make(map[Key]float64), next: make(map[Key]float64), values: make(map[Key]float32),
	}
}

// series is one, in three widths.
type series struct {
	gauge                bool
	fine, middle, coarse ring
	second               int64     // of the newest value
	used                 time.Time // when somebody last wanted to see it
}

func newSeries(gauge bool) *series {
	room := make([]float32, fineCount+middleCount+coarseCount)
	return &series{
		gauge:  gauge,
		fine:   newRing(fineStep, room[:fineCount]),
		middle: newRing(middleStep, room[fineCount:fineCount+middleCount]),
		coarse: newRing(coarseStep, room[fineCount+middleCount:]),
	}
}

// add takes a value that holds for every second since the last, where these are few: the sampler may
// have been late.
func (s *series) add(second int64, value float32) {
	from := second
	if late := second - s.second; s.second > 0 && late <= maxLate {
		from = s.second + 1
	}
	for ; from <= second; from++ {
		for _, r := range []*ring{&s.fine, &s.middle, &s.coarse} {
			r.add(from, value, s.gauge)
		}
	}
	s.second = max(s.second, second)
}

// maxLate is how many seconds a late sample stands for. What is later leaves a gap.
const maxLate = 10

// forget is how long after somebody asked for a series it counts as wanted.
const forget = time.Minute

// Add takes all samples of a moment. Counters begin at zero with the process or with what they count, and
// one that is less than it was has begun again. Those of parts are added up as they rise, and not as they
// stand, so that a part that goes takes nothing from the whole.
func (s *Store) Add(now time.Time, samples []Sample) {
	first, elapsed := s.then.IsZero(), max(now.Sub(s.then).Seconds(), 0.001)
	silent := s.silent(now)
	for _, sample := range samples {
		f, known := FormOf(sample.Key.Of)
		switch {
		case !known:
		case f.Gauge:
			s.rollUp(f, sample.Key, float32(sample.Value), silent)
		default:
			if sample.Value != 0 {
				s.next[sample.Key] = sample.Value
			}
			rise := sample.Value - s.counters[sample.Key]
			if rise < 0 {
				rise = sample.Value
			}
			if !first {
				s.rollUp(f, sample.Key, float32(rise/elapsed), silent)
			}
		}
	}
	s.then, s.counters, s.next = now, s.next, s.counters
	clear(s.next)
	s.keep(now)
	clear(s.values)
}

// silent says of which series a zero need not be noted: of those that are not kept, nor wanted, where
// there is no room. Of ten thousand subscriptions most do nothing at any time, and cost next to nothing so.
func (s *Store) silent(now time.Time) func(Key) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.kept) < s.max {
		return func(Key) bool { return false }
	}
	wanted := make(map[Key]bool)
	for key := range s.asked {
		wanted[key] = s.wanted(key, now)
	}
	return func(key Key) bool { return s.kept[key] == nil && !wanted[key] } // Add alone changes what is kept
}

// rollUp adds a value to its series and all that it is a part of.
func (s *Store) rollUp(f Form, key Key, value float32, silent func(Key) bool) {
	for more := true; more; key, more = key.parent() {
		if value == 0 && silent(key) {
			continue
		}
		if v, there := s.values[key]; there {
			s.values[key] = f.join(v, value)
		} else {
			s.values[key] = value
		}
	}
}

// keep puts the values of a second into their rings. While there is room all are kept, first those of
// the whole and then those of parts; then those that somebody wants to see.
func (s *Store) keep(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, one := range s.kept {
		if now.Unix()-one.second > int64(MaxSpan/time.Second) {
			delete(s.kept, key) // nothing of it is left
		}
	}
	var others []Key
	for key, value := range s.values {
		if one := s.kept[key]; one != nil {
			one.add(now.Unix(), value)
		} else if len(s.kept) < s.max || s.wanted(key, now) {
			others = append(others, key)
		}
	}
	slices.SortFunc(others, func(x, y Key) int {
		return cmp.Or(s.asked[y].Compare(s.asked[x]), cmp.Compare(x.depth(), y.depth()))
	})
	for _, key := range others {
		if len(s.kept) >= s.max && !(s.wanted(key, now) && s.makeRoom(now)) {
			break
		}
		f, _ := FormOf(key.Of)
		one := newSeries(f.Gauge)
		one.used = s.asked[key]
		one.add(now.Unix(), s.values[key])
		s.kept[key] = one
		delete(s.asked, key)
	}
}

func (s *Store) wanted(key Key, now time.Time) bool { return now.Sub(s.asked[key]) < forget }

// makeRoom removes the series that is used least: of those that nobody has looked at lately the one that
// has been silent for longest. Not ok: somebody looks at all of them.
func (s *Store) makeRoom(now time.Time) bool {
	var least Key
	var found *series
	for key, one := range s.kept {
		if now.Sub(one.used) < forget {
			continue
		}
		if found == nil || cmp.Or(one.used.Compare(found.used), cmp.Compare(one.second, found.second), cmp.Compare(least.depth(), key.depth())) < 0 {
			least, found = key, one
		}
	}
	delete(s.kept, least)
	return found != nil
}

// Asked reports whether somebody has lately wanted to see a series of that kind.
func (s *Store) Asked(of Of, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.wanted(Key{Of: of}, now)
}

// ask notes that somebody wants to see a series. One that is not kept has a better claim from then on.
func (s *Store) ask(key Key, now time.Time) *series {
	if len(s.asked) >= 2*s.max { // of what does not exist, too
		clear(s.asked)
	}
	s.asked[Key{Of: key.Of}] = now
	one := s.kept[key]
	if one != nil {
		one.used = now
	} else {
		s.asked[key] = now
	}
	return one
}

// Read gives a series over a span that ends now, by the finest ring that reaches so far. Of one that is not
// kept nothing is known; it is kept from now on, if it exists and there is anything to it.
func (s *Store) Read(key Key, span time.Duration, now time.Time) Points {
	s.mu.Lock()
	defer s.mu.Unlock()
	step, count := widthOf(span)
	one := s.ask(key, now)
	if one == nil {
		return empty(step, sampled(now)/int64(step/time.Second)-int64(count)+1, count)
	}
	return one.ringOf(step).last(sampled(now), count)
}

// sampled is the newest second whose sample is certain to be there: that of the present one may be yet to
// come.
func sampled(now time.Time) int64 { return now.Unix() - 1 }

// widthOf chooses the ring for a span, and how many of its points there are in it.
func widthOf(span time.Duration) (step time.Duration, count int) {
	step = coarseStep
	switch {
	case span <= fineCount*fineStep:
		step = fineStep
	case span <= middleCount*middleStep:
		step = middleStep
	}
	return step, max(1, int((min(span, MaxSpan)+step-1)/step))
}

func (s *series) ringOf(step time.Duration) *ring {
	switch step {
	case fineStep:
		return &s.fine
	case middleStep:
		return &s.middle
	}
	return &s.coarse
}

// meanOf is how many seconds a rate of now is the mean of: a publisher that sends once in a while has no
// rate of one second.
const meanOf = 10

// Now gives the present values of several series: of a rate the mean of the last seconds, of a gauge the
// newest. What is unknown is NaN.
func (s *Store) Now(keys []Key, now time.Time) []float32 {
	s.mu.Lock()
	defer s.mu.Unlock()
	values := make([]float32, len(keys))
	for i, key := range keys {
		values[i] = unknown
		if one := s.ask(key, now); one != nil {
			values[i] = one.now(sampled(now))
		}
	}
	return values
}

func (s *series) now(second int64) float32 {
	sum, count, newest := float32(0), float32(0), unknown
	for _, v := range s.fine.last(second, meanOf).Values {
		if !isUnknown(v) {
			sum, count, newest = sum+v, count+1, v
		}
	}
	if s.gauge || count == 0 {
		return newest
	}
	return sum / count
}
