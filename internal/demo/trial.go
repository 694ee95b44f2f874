package demo

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// Mood is how a trial looks: nothing yet, well, waiting or broken.
type Mood string

const (
	moodWell   Mood = "good"
	moodWaits  Mood = "odd"
	moodBroken Mood = "bad"
)

// Trial is what became of pulling a lever.
type Trial struct {
	Lever string
	At    time.Time
	Text  string
	Mood  Mood
	Done  bool // what was to be seen was seen
}

// watch judges a trial by what the board shows. It is pure.
type watch func(b *Board) (text string, mood Mood, done bool)

// trials are the last pull of each lever. Any goroutine may use it.
type trials struct {
	mu  sync.Mutex
	all []*attempted
}

type attempted struct {
	Trial
	watch watch
}

// begin replaces the trial of a lever by a new one.
func (t *trials) begin(lever string, now time.Time, text string, w watch) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all = slices.DeleteFunc(t.all, func(a *attempted) bool { return a.Lever == lever })
	t.all = append(t.all, &attempted{Trial{Lever: lever, At: now, Text: text, Mood: moodWaits}, w})
}

// judge looks at all trials again, and gives those that have just ended.
func (t *trials) judge(b *Board) (all, ended []Trial) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, a := range t.all {
		text, mood, done := a.watch(b)
		if a.Done && mood == moodWaits { // as it was: what comes later is no news
			mood = a.Mood
		}
		if done && !a.Done {
			ended = append(ended, Trial{Lever: a.Lever, At: a.At, Text: text, Mood: mood, Done: true})
		}
		if !a.Done || a.lasts() {
			a.Text, a.Mood = text, mood
		}
		a.Done = a.Done || done
		all = append(all, a.Trial)
	}
	return all, ended
}

// lasts tells whether a trial's text goes on changing once it is done.
func (a *attempted) lasts() bool {
	return slices.Contains([]string{"co", "webhook", "poison", "circuit"}, a.Lever)
}

// settleTime is how long after a move its cost is counted: new owners have read by then what was read
// before, and the books have seen it.
const settleTime = 3 * time.Second

// settling remembers when something was first seen, and tells whether its cost is known by now.
type settling struct{ after time.Duration }

func (s *settling) known(b *Board, since time.Time) bool {
	if s.after == 0 {
		s.after = max(1, b.At.Sub(since))
	}
	return b.At.Sub(since) >= s.after+settleTime
}

// moved watches partitions until they have other owners than those that were ended.
func moved(verb string, gone, partitions []string, since time.Time, before Books) watch {
	var settled settling
	return func(b *Board) (string, Mood, bool) {
		left := slices.DeleteFunc(slices.Clone(partitions), func(p string) bool {
			return slices.ContainsFunc(b.Owners, func(o OwnerRow) bool {
				return o.Partition == p && o.Owner != "" && !slices.Contains(gone, o.Owner)
			})
		})
		what := fmt.Sprintf("%s %s %s.", clock(since), verb, listed(gone))
		switch {
		case len(partitions) == 0:
			return what + " " + nothingOwned(len(gone)), moodWell, true
		case len(left) > 0:
			return fmt.Sprintf("%s For %s nobody reads %s.", what, seconds(b.At.Sub(since)), partitionList(left)), moodWaits, false
		}
		known := settled.known(b, since)
		what = fmt.Sprintf("%s %s later %s had new owners.", what, seconds(settled.after), partitionList(partitions))
		if !known {
			return what, moodWaits, false
		}
		return what + " " + toll(b.Books, before), b.Books.mood(), true
	}
}

func nothingOwned(by int) string {
	if by == 1 {
		return "It owned nothing."
	}
	return "They owned nothing."
}

// joined watches until a new consumer has its share.
func joined(name string, since time.Time, before Books) watch {
	var settled settling
	return func(b *Board) (string, Mood, bool) {
		owned := b.ownedBy(name)
		what := fmt.Sprintf("%s added %s.", clock(since), name)
		share := max(1, sensorPartitions/max(1, b.working()))
		if len(owned) < share && settled.after == 0 {
			return fmt.Sprintf("%s It owns %d of its %d partitions.", what, len(owned), share), moodWaits, false
		}
		known := settled.known(b, since)
		what = fmt.Sprintf("%s %s later it had %s.", what, seconds(settled.after), partitionList(owned))
		if !known {
			return what, moodWaits, false
		}
		return what + " " + toll(b.Books, before), b.Books.mood(), true
	}
}

func partitionList(partitions []string) string {
	if len(partitions) == 1 {
		return "partition " + partitions[0]
	}
	return "partitions " + listed(partitions)
}

// toll is what it cost.
func toll(now, before Books) string {
	return fmt.Sprintf("%s lost, %s read twice.", thousands(now.Lost), thousands(now.ReadTwice-before.ReadTwice))
}

func (b Books) mood() Mood {
	if b.balanced() {
		return moodWell
	}
	return moodBroken
}

// carbon watches what a fifth sensor does to those who count.
func carbon(since time.Time) watch {
	return func(b *Board) (string, Mood, bool) {
		_, subscribed := b.hook(hookWithCarbon.name)
		if b.Rate.Sensors < sensorsWithCarbon || !subscribed {
			return clock(since) + " the gateway is told.", moodWaits, false
		}
		return fmt.Sprintf("Since %s %s events a second are promised, %.0f %% of that is sent. %d consumers are %s behind. %s hears of high values.",
			clock(since), thousands(int64(b.Rate.Promised)), 100*b.Rate.Reached, b.working(), seconds(b.Behind), hookWithCarbon.name), moodWell, true
	}
}

// broken watches a webhook that answers 503; probation is what is to be seen.
func broken(since time.Time) watch {
	var after time.Duration
	return func(b *Board) (string, Mood, bool) {
		h, _ := b.hook(brokenHook)
		if h.State == "probation" || h.State == "probing" {
			if after == 0 {
				after = b.At.Sub(since)
			}
			mood := moodWaits
			if h.Dead > 0 {
				mood = moodBroken
			}
			return fmt.Sprintf("Broken since %s. On probation after %s; %s, %s.", clock(since), seconds(after), waiting(h.Waiting), dead(h.Dead)), mood, true
		}
		return fmt.Sprintf("Broken since %s; %s, %s.", clock(since), waiting(h.Waiting), dead(h.Dead)), moodWaits, after > 0
	}
}

// mended watches a webhook that answers again.
func mended(since time.Time) watch {
	return func(b *Board) (string, Mood, bool) {
		h, _ := b.hook(brokenHook)
		text := fmt.Sprintf("It answers again since %s; %s, %s.", clock(since), waiting(h.Waiting), dead(h.Dead))
		if h.State != "healthy" {
			return text, moodWaits, false
		}
		return text, moodWell, true
	}
}

func waiting(n int64) string {
	switch n {
	case 0:
		return "no event waits"
	case 1:
		return "one event waits"
	}
	return thousands(n) + " events wait"
}

func dead(n int64) string {
	switch n {
	case 0:
		return "none is dead"
	case 1:
		return "one is dead"
	}
	return thousands(n) + " are dead"
}

// poisoned watches until all events that the scorer cannot take are put away, or the circuit is open. They are the
// last of a total: those of earlier pulls are put away before.
func poisoned(sent, total int, since time.Time) watch {
	var after time.Duration
	return func(b *Board) (string, Mood, bool) {
		away := min(sent, max(0, b.Scorer.Poisoned-(total-sent)))
		if after == 0 && away == sent {
			after = b.At.Sub(since)
		}
		how, mood := "so far", moodWaits
		if after > 0 {
			how, mood = "within "+seconds(after), moodWell
		}
		text := fmt.Sprintf("%d sent at %s, %d put away %s, %d innocent ones.", sent, clock(since), away, how, b.Scorer.Innocent)
		switch {
		case b.Scorer.Innocent > 0:
			return text, moodBroken, true
		case after == 0 && b.Scorer.Open():
			return text + " The circuit is open, and the rest waits until it is resumed.", moodWaits, true
		}
		return text, mood, after > 0
	}
}

// opened watches until the circuit is open, and then until somebody resumes it.
func opened(since time.Time) watch {
	var open time.Time
	return func(b *Board) (string, Mood, bool) {
		if b.Scorer.Open() {
			open = b.Scorer.Since
		}
		switch {
		case open.IsZero():
			return fmt.Sprintf("The scorer's store is away since %s; %s.", clock(since), waiting(b.Scorer.Waiting)), moodWaits, false
		case b.Scorer.State == "running":
			return fmt.Sprintf("Opened at %s and resumed since, though the store is away; %s.", clock(open), waiting(b.Scorer.Waiting)), moodWaits, true
		}
		return fmt.Sprintf("Open since %s, %s after the store went away; %s, none is put away. The notice is in the mailbox, with its link.",
			clock(open), seconds(open.Sub(since)), waiting(b.Scorer.Waiting)), moodWaits, true
	}
}

// returned watches what becomes of the circuit when the scorer's store is back.
func returned(since time.Time) watch {
	return func(b *Board) (string, Mood, bool) {
		switch {
		case b.Scorer.Open():
			return fmt.Sprintf("The store is back since %s. The circuit stays open until somebody resumes it: by the link in the mailbox, or here; %s.",
				clock(since), waiting(b.Scorer.Waiting)), moodWaits, true
		case b.Scorer.State != "running":
			return fmt.Sprintf("The store is back since %s; %s.", clock(since), waiting(b.Scorer.Waiting)), moodWaits, false
		}
		return fmt.Sprintf("The store is back since %s, and %s works; %s.", clock(since), scorer, waiting(b.Scorer.Waiting)), moodWell, true
	}
}

// resumed watches until the function works again. It may stop at once, for what it cannot take waits first.
func resumed(since time.Time) watch {
	return func(b *Board) (string, Mood, bool) {
		text := fmt.Sprintf("Resumed at %s", clock(since))
		switch {
		case b.Scorer.State == "running":
			return fmt.Sprintf("%s; %s went on from its checkpoint, %s.", text, scorer, waiting(b.Scorer.Waiting)), moodWell, true
		case b.Scorer.Open() && b.Scorer.Since.After(since):
			return fmt.Sprintf("%s; open again since %s, for there was more that it cannot take; %s.", text, clock(b.Scorer.Since), waiting(b.Scorer.Waiting)), moodWaits, true
		}
		return fmt.Sprintf("%s; %s.", text, waiting(b.Scorer.Waiting)), moodWaits, false
	}
}

// replugged watches until the yard is back, and with it those who send and those who read: something has been
// acknowledged since, and something read.
func replugged(since time.Time, before Books) watch {
	base := int64(-1) // what was acknowledged when the yard was first seen again
	var settled settling
	return func(b *Board) (string, Mood, bool) {
		what := fmt.Sprintf("Killed at %s.", clock(since))
		if !b.YardUp {
			return what + " It starts again.", moodWaits, false
		}
		if base < 0 {
			base = b.Acked
		}
		if settled.after == 0 && (b.Acked == base || b.Aggregated == 0) {
			return what + " The yard is back; its clients are coming.", moodWaits, false
		}
		known := settled.known(b, since)
		what = fmt.Sprintf("%s %s later the yard and its clients were back: all of %s acknowledged before are there.", what, seconds(settled.after), thousands(before.Acknowledged))
		if !known {
			return what, moodWaits, false
		}
		return what + " " + toll(b.Books, before), b.Books.mood(), true
	}
}
