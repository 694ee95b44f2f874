package console

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/eventyard/eventyard/admin"
)

// figuresTime is how long a page waits for figures that it can do without.
const figuresTime = 300 * time.Millisecond

// navCount is the figure beside a main page: how many there are or, with a tone, how many need somebody.
type navCount struct {
	Count      int
	Tone, Said string
}

// overviewGood is how long what one page has heard of the yard as a whole is good for the streams of all pages
// that the same may see.
const overviewGood = 2 * time.Second

// overview is how the yard is as a whole; nil: it is not known in time.
func (v *visit) overview() *admin.Overview {
	if v.known != nil || v.asked {
		return v.known
	}
	if v.sight != nil {
		return overviewForStream(v)
	}
	ctx, cancel := context.WithTimeout(v.ctx, v.console.figuresTime)
	defer cancel()
	o, err := v.api.Overview(ctx)
	if err != nil {
		return nil
	}
	knows(v, &o)
	return &o
}

// overviewForStream asks once for all streams, and the less often the longer it takes: what a page is about waits
// meanwhile. Where nobody answers it is as it was when that was last known. The sight's mu is held.
func overviewForStream(v *visit) *admin.Overview {
	v.asked = true
	o, known := (*admin.Overview)(nil), false
	if kept, ok := v.console.yards.find(sees(v), v.now); ok {
		o, known = kept.(*admin.Overview), true
	}
	if !known {
		began := time.Now()
		ctx, cancel := soon(v)
		defer cancel()
		if found, err := v.api.Overview(ctx); err == nil {
			o = &found
		}
		good := max(overviewGood, 5*time.Since(began))
		v.console.yards.keep(sees(v), keptAnswer{o, v.now.Add(good)}, v.now)
	}
	if o = cmp.Or(o, v.sight.known); o != nil {
		v.known, v.sight.known = o, o
		v.silent.add(o.Missing...)
	}
	return o
}

// knows takes note of how the yard is, for this page and for those that ask next.
func knows(v *visit, o *admin.Overview) {
	v.known = o
	v.silent.add(o.Missing...)
	v.console.yards.keep(sees(v), keptAnswer{o, v.now.Add(overviewGood)}, v.now)
	if v.sight != nil {
		v.sight.known = o
	}
}

// sees names what a visit may see of the yard.
func sees(v *visit) string { return fmt.Sprint(v.who.Grant.Holder, v.who.Grant.Scopes) }

// frame is what stands around a page of how the yard is: the banner of a full disk, and how much there is.
func (s *screen) frame(o *admin.Overview) {
	if o == nil {
		return
	}
	s.Counts, s.Full = countsOf(*o), strings.Join(saying(o, "disk-full"), " ")
}

// saying are the sentences of some kinds of needs.
func saying(o *admin.Overview, kinds ...string) (sentences []string) {
	if o == nil {
		return nil
	}
	for _, n := range o.Needs {
		if slices.Contains(kinds, n.Kind) {
			sentences = append(sentences, n.Sentence)
		}
	}
	return sentences
}

// countsOf are the figures of the main pages, by section.
func countsOf(o admin.Overview) map[string]*navCount {
	all := map[string]*navCount{"hubs": {Count: o.Totals.Hubs}}
	if o.Whole {
		all["topics"], all["functions"] = &navCount{Count: o.Totals.Topics}, &navCount{Count: o.Totals.Functions}
	}
	for section, kind := range map[string]string{"hubs": "group", "topics": "subscription", "functions": "function"} {
		if c := needing(o.Needs, kind); c.Count > 0 {
			all[section] = &c
		}
	}
	return all
}

// needing counts what needs somebody among things of a kind.
func needing(needs []admin.Need, kind string) navCount {
	c := navCount{Tone: "odd", Said: "need you"}
	for _, n := range needs {
		if n.Object.Kind != kind {
			continue
		}
		if c.Count++; n.Severity == admin.SeverityBroken {
			c.Tone = "bad"
		}
	}
	if c.Count == 1 {
		c.Said = "needs you"
	}
	return c
}
