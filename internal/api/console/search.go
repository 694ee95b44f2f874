package console

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/parallel"
)

// searchWindow is how many events one search of a page looks at, about: the API looks at as many in one call.
const searchWindow = 10_000

// foundPage is how many events one call of the API finds at most.
const foundPage = 1000

// each is how many of the newest events of each of so many partitions are wanted.
func (e eventsView) each(partitions int) int64 {
	switch {
	case e.Find != "":
		return max(searchWindow/int64(partitions), 1)
	case partitions > 8:
		return eventsShown/8 + 1
	}
	return eventsShown
}

// find searches for as long as the page has time. A stream does it once, and shows what it has found by then.
func (v eventsVisit) find(q admin.Query, view *eventsView) error {
	ctx, cancel := soon(v.visit)
	defer cancel()
	found, err := remembered(v.visit, "found", lookedGood, func() (eventsView, error) {
		found := *view
		err := v.search(ctx, q, &found)
		if v.sight != nil && tooLate(ctx, err) {
			err = nil
		}
		return found, err
	})
	if tooLate(ctx, err) {
		view.Looking = waiting(v.visit)
		return nil
	}
	found.Hub = view.Hub // as it is by now
	*view = found
	return err
}

// search looks for a text, or by a condition, where the list begins: through the newest events of all partitions
// at once, or from a place on, partition after partition, until there are enough.
func (v eventsVisit) search(ctx context.Context, q admin.Query, view *eventsView) error {
	s := &searching{v: v.visit, ctx: ctx, view: view}
	if view.Begin == "newest" {
		if q.From == "" {
			return nil // nothing was stored yet
		}
		positions := strings.Split(q.From, ",")
		calls := 1 + view.each(len(positions))/foundPage // of much that is found the newest comes last
		parallel.Each(len(positions), askedAtOnce, func(i int) {
			partition, from, _ := strings.Cut(positions[i], ":")
			for range calls {
				page := s.in(partition, from, true)
				if page.End || page.Looked == 0 {
					return
				}
				from = strconv.FormatInt(page.Next, 10)
			}
		})
		view.After = "" // it is of those from a place on
		view.Older = with(at("hubs", view.Name, "events"), "begin", "oldest", "partition", view.Partition, "find", view.Find)
		slices.SortStableFunc(view.Events, func(a, b storedEvent) int {
			return cmp.Or(b.Enqueued.Compare(a.Enqueued), cmp.Compare(b.Sequence, a.Sequence))
		})
		view.Events = view.Events[:min(len(view.Events), eventsShown)]
	} else {
		s.on(q)
	}
	view.Found = fmt.Sprintf("%s of %s looked at.", plural(s.found, "event", "events"), number(s.looked))
	if s.found > len(view.Events) {
		which := "first"
		if view.Begin == "newest" {
			which = "newest"
		}
		view.Found = fmt.Sprintf("%s of %s looked at; the %s %d are here.", plural(s.found, "event", "events"), number(s.looked), which, len(view.Events))
	}
	return s.err
}

// searching is one search of a page.
type searching struct {
	v    *visit
	ctx  context.Context
	view *eventsView

	mu     sync.Mutex
	looked int64 // guarded by mu, as all that follows, and the view's events
	found  int
	err    error
}

// in looks through a partition from a place on, by one call of the API, and takes the last that it finds, or the
// first: as many as a list has.
func (s *searching) in(partition, from string, last bool) admin.FoundPage {
	page, err := s.v.api.Find(s.ctx, s.view.Name, partition, "", from, s.view.Find)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.err = err
		return page
	}
	s.looked, s.found = s.looked+page.Looked, s.found+len(page.Events)
	taken := page.Events[:min(len(page.Events), eventsShown)]
	if last {
		taken = page.Events[len(page.Events)-len(taken):]
	}
	for _, line := range taken {
		var e storedEvent
		if err := json.Unmarshal(line, &e); err != nil {
			s.err = err
			return page
		}
		if e.Partition == "" {
			e.Partition = partition
		}
		s.view.Events = append(s.view.Events, e)
	}
	return page
}

// on looks from where the list begins on, until the window is looked through or the list is full, and says where
// to go on: in the same partition, or in the next.
func (s *searching) on(q admin.Query) {
	ids := s.view.PartitionIDs
	if len(q.Partitions) > 0 {
		ids = q.Partitions
	}
	partition, from := ids[0], q.From
	if s.view.After != "" { // of an earlier search
		partition, from, _ = strings.Cut(s.view.After, ":")
	}
	for at := max(slices.Index(ids, partition), 0); at < len(ids) && s.err == nil; at++ {
		page := s.in(ids[at], from, false)
		switch {
		case s.err != nil:
			s.view.Next = s.view.here("after", ids[at]+":"+from)
			return
		case len(s.view.Events) >= eventsShown || s.looked >= searchWindow || !page.End:
			next := ids[at] + ":" + strconv.FormatInt(s.next(page), 10)
			if s.view.Events = s.view.Events[:min(len(s.view.Events), eventsShown)]; page.End && len(page.Events) <= eventsShown {
				if at++; at == len(ids) {
					return
				}
				next = ids[at] + ":" + q.From
			}
			s.view.Next = s.view.here("after", next)
			return
		}
		from = q.From
	}
}

// next is where to go on in a partition: behind the last event that is shown, if there were more.
func (s *searching) next(page admin.FoundPage) int64 {
	if len(page.Events) > eventsShown && len(s.view.Events) > 0 {
		return s.view.Events[len(s.view.Events)-1].Sequence + 1
	}
	return page.Next
}

// beforeMatch is how much of a text is shown before what was looked for.
const beforeMatch = 24

// divide divides a text at the first place where it has what was looked for, in any case; without it the text is
// what comes after.
func divide(text, find string) (before, match, after string) {
	at := strings.Index(asciiLower(text), asciiLower(find))
	if at < 0 {
		return "", "", text
	}
	before, match, after = text[:at], text[at:at+len(find)], text[at+len(find):]
	if len(before) > beforeMatch {
		cut := len(before) - beforeMatch
		for !utf8.RuneStart(before[cut]) {
			cut++
		}
		before = "…" + before[cut:]
	}
	return before, match, after
}

// asciiLower is a text in the case in which the API compares, byte for byte as long as it was.
func asciiLower(text string) string {
	return strings.Map(func(r rune) rune {
		if 'A' <= r && r <= 'Z' {
			return r + 'a' - 'A'
		}
		return r
	}, text)
}
