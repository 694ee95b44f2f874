package console

import (
	"html/template"
	"strings"
	"time"
)

// feed is a list that grows at its head, the newest first. Of one that is on a page a browser is sent the rows
// that came since, at most feedFrame at a time, and how many there were besides: however fast they come, a
// browser has as much to do as a reader.
type feed struct {
	rows []fedRow
	// total is how many there ever were, also those that are not among the rows.
	total int64
}

// fedRow is one row, and what of it the script writes, in the order of the row's places.
type fedRow struct {
	id    string
	html  template.HTML
	texts []string
}

// feedFrame is how many rows one frame has at most.
const feedFrame = 10

// news is what came since an older state of the list, and what is said of what was left out in so long a time.
func (f feed) news(old feed, lasted time.Duration) (rows [][]string, said string) {
	known := map[string]bool{}
	for _, r := range old.rows {
		known[r.id] = true
	}
	for _, r := range f.rows {
		if known[r.id] || len(rows) == feedFrame {
			break
		}
		rows = append(rows, r.texts)
	}
	left := f.total - old.total - int64(len(rows))
	if left <= 0 || lasted <= 0 {
		return rows, ""
	}
	return rows, rate(float64(left)/lasted.Seconds()) + " more/s not shown"
}

// Feed puts the rows of a list into a page, and takes note of them for its stream.
func (c *cells) Feed(id string, f feed) template.HTML {
	if c.feeds != nil {
		c.feeds[id] = f
	}
	if c.bare {
		return ""
	}
	var all strings.Builder
	for _, r := range f.rows {
		all.WriteString(string(r.html))
	}
	return template.HTML(all.String())
}

// fed is what a browser has of a feed.
type fed struct {
	feed
	at   time.Time // when there was last something new
	left bool      // it was said that some were left out
}

// feed sends the rows that lists have got, and takes back what it said of others when no more come.
func (s *stream) feed(part renderedPart) {
	for _, id := range sorted(part.feeds) {
		has, f := s.feeds[id], part.feeds[id]
		if f.total == has.total && !has.left {
			continue
		}
		rows, said := f.news(has.feed, time.Since(has.at))
		s.event("rows", map[string]any{"id": id, "rows": rows, "more": said})
		s.feeds[id] = fed{f, time.Now(), said != ""}
	}
}

// feedWhole takes note of lists that were sent with their part.
func (s *stream) feedWhole(part renderedPart) {
	for id, f := range part.feeds {
		s.feeds[id] = fed{f, time.Now(), false}
	}
}
