package admin

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/eventyard/eventyard/internal/testkit"
)

// yard plays a yard that has events. An answer that reaches the place in breaks, which
// are counted over all answers, is cut there.
type yard struct {
	last   []int64            // of each partition; all begin at 0
	damage map[position]int64 // where events cannot be read, and where they can again; 0: nowhere
	breaks []int              // after so many lines
	grows  bool               // each answer finds one event more in every partition
	half   bool               // a break leaves half a line

	asked []string
	lines int
}

func (y *yard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/partitions") {
		y.listPartitions(w)
		return
	}
	q := r.URL.Query()
	y.asked = append(y.asked, fmt.Sprintf("%s from %q count %q", q.Get("partition"), q.Get("from"), q.Get("count")))
	if y.grows {
		for i := range y.last {
			y.last[i]++
		}
	}
	damages := 0
	for i, last := range y.last {
		id := strconv.Itoa(i)
		if ids := q.Get("partition"); ids != "" && !slices.Contains(strings.Split(ids, ","), id) {
			continue
		}
		for n := begins(q.Get("from"), id); n <= last; n++ {
			next, damaged := y.damage[position{id, n}]
			if !damaged {
				y.line(w, fmt.Sprintf(`{"partition":%q,"sequence":%d}`, id, n))
				continue
			}
			damages++
			if next == 0 {
				y.line(w, fmt.Sprintf(`{"problem":{"type":"urn:eventyard:problem:damaged-events","detail":"%s/%d","lostFirst":%d},"partition":%q}`, id, n, n, id))
				break
			}
			y.line(w, fmt.Sprintf(`{"problem":{"type":"urn:eventyard:problem:damaged-events","detail":"%s/%d","lostFirst":%d,"resume":%d},"partition":%q}`, id, n, n, next, id))
			n = next - 1
		}
	}
	if damages > 0 {
		y.line(w, `{"problem":{"type":"urn:eventyard:problem:damaged-events","detail":"not all"}}`)
		cutOff(w)
	}
}

func (y *yard) listPartitions(w http.ResponseWriter) {
	var all []Partition
	for i, last := range y.last {
		all = append(all, Partition{ID: strconv.Itoa(i), Last: last})
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"partitions": all})
}

func begins(from, id string) int64 {
	for part := range strings.SplitSeq(from, ",") {
		if its, number, ok := strings.Cut(part, ":"); ok && its == id {
			from = number
		}
	}
	n, _ := strconv.ParseInt(from, 10, 64) // other positions: the beginning
	return n
}

func (y *yard) line(w http.ResponseWriter, text string) {
	if len(y.breaks) > 0 && y.lines == y.breaks[0] {
		y.breaks = y.breaks[1:]
		if y.half {
			fmt.Fprint(w, text[:len(text)/2])
		}
		cutOff(w)
	}
	y.lines++
	fmt.Fprintln(w, text)
}

func cutOff(w http.ResponseWriter) {
	_ = http.NewResponseController(w).Flush()
	panic(http.ErrAbortHandler)
}

// H4: each event that was there comes once, in order, however often the answer breaks.
func TestReadGoesOnWhereItBrokeOff(t *testing.T) {
	all := []string{"0/0", "0/1", "0/2", "1/0", "2/0", "2/1"}
	for name, test := range map[string]struct {
		yard    yard
		query   Query
		want    []string
		asked   []string
		notices []string
		err     string
	}{
		"nothing breaks": {
			query: Query{From: "earliest", Partitions: []string{"0", "2"}, Count: 4},
			want:  []string{"0/0", "0/1", "0/2", "2/0"},
			asked: []string{`0,2 from "earliest" count "4"`},
		},
		"in the middle of a partition": {
			yard: yard{breaks: []int{2}}, want: all,
			asked: []string{` from "" count ""`, `0 from "2" count ""`, `1,2 from "" count ""`},
		},
		"in the middle of a line": {
			yard: yard{breaks: []int{2}, half: true}, want: all,
			asked: []string{` from "" count ""`, `0 from "2" count ""`, `1,2 from "" count ""`},
		},
		"between two partitions": {
			yard: yard{breaks: []int{3}}, want: all,
			asked: []string{` from "" count ""`, `1,2 from "" count ""`},
		},
		"again and again": {
			yard: yard{breaks: []int{1, 2, 4, 5}}, want: all,
			asked: []string{
				` from "" count ""`, `0 from "1" count ""`, `0 from "2" count ""`, `1,2 from "" count ""`,
				`2 from "" count ""`, `2 from "1" count ""`,
			},
		},
		"what came meanwhile is not part of it": {
			yard: yard{breaks: []int{5}, grows: true}, want: []string{"0/0", "0/1", "0/2", "0/3", "1/0", "2/0", "2/1"},
			asked: []string{` from "" count ""`, `2 from "" count ""`},
		},
		"a time holds for what is left": {
			yard: yard{breaks: []int{4}}, query: Query{From: "2026-01-31T12:00:00Z"}, want: all,
			asked: []string{` from "2026-01-31T12:00:00Z" count ""`, `2 from "2026-01-31T12:00:00Z" count ""`},
		},
		"each partition at its own number": {
			yard: yard{breaks: []int{1}}, query: Query{From: "0:1,2:1"}, want: []string{"0/1", "0/2", "1/0", "2/1"},
			asked: []string{` from "0:1,2:1" count ""`, `0 from "2" count ""`, `1,2 from "2:1" count ""`},
		},
		"a packed position is asked for again": {
			yard: yard{breaks: []int{4}}, query: Query{From: "p1.AAAA"}, want: all,
			asked: []string{` from "p1.AAAA" count ""`, ` from "p1.AAAA" count ""`},
		},
		"the count goes on counting": {
			yard: yard{breaks: []int{2}}, query: Query{Count: 4}, want: all[:4],
			asked: []string{` from "" count "4"`, `0 from "2" count ""`, `1,2 from "" count ""`},
		},
		"without an event in between it is over": {
			yard: yard{breaks: []int{2, 2}}, want: all[:2],
			asked: []string{` from "" count ""`, `0 from "2" count ""`}, err: "broke off",
		},
		"damage is told and passed": {
			yard:  yard{damage: map[position]int64{{"0", 1}: 2, {"2", 0}: 0}},
			want:  []string{"0/0", "0/2", "1/0"},
			asked: []string{` from "" count ""`}, notices: []string{"0/1", "2/0"}, err: "2 stretches of events are damaged",
		},
		"damage is told once": {
			yard:    yard{damage: map[position]int64{{"0", 1}: 2}, breaks: []int{2}},
			want:    []string{"0/0", "0/2", "1/0", "2/0", "2/1"},
			asked:   []string{` from "" count ""`, `0 from "2" count ""`, `1,2 from "" count ""`},
			notices: []string{"0/1"}, err: "1 stretch of events is damaged",
		},
		"damage is told once where all comes again": {
			yard: yard{damage: map[position]int64{{"0", 1}: 2}, breaks: []int{4}}, query: Query{From: "p1.AAAA"},
			want:    []string{"0/0", "0/2", "1/0", "2/0", "2/1"},
			asked:   []string{` from "p1.AAAA" count ""`, ` from "p1.AAAA" count ""`},
			notices: []string{"0/1"}, err: "1 stretch of events is damaged",
		},
		"what is behind damage in a later answer comes too": {
			yard:    yard{damage: map[position]int64{{"0", 2}: 0}, breaks: []int{2}},
			want:    []string{"0/0", "0/1", "1/0", "2/0", "2/1"},
			asked:   []string{` from "" count ""`, `0 from "2" count ""`, `1,2 from "" count ""`},
			notices: []string{"0/2"}, err: "1 stretch of events is damaged",
		},
	} {
		t.Run(name, func(t *testing.T) {
			test.yard.last, test.query.Hub = []int64{2, 0, 1}, "h"
			client := dial(t, test.yard.ServeHTTP)
			var notices []string
			got, err := collect(client.Read(t.Context(), test.query, func(n Notice) {
				if !n.Skipped {
					t.Errorf("notice %+v", n)
				}
				notices = append(notices, n.Lost.Error())
			}))
			if (err == nil) != (test.err == "") || err != nil && !strings.Contains(err.Error(), test.err) {
				t.Errorf("error is %v, want %q", err, test.err)
			}
			for i, event := range got {
				at, _ := positionOf([]byte(event))
				got[i] = fmt.Sprintf("%s/%d", at.partition, at.next)
			}
			for what, diff := range map[string]string{
				"events": cmp.Diff(test.want, got), "asked": cmp.Diff(test.asked, test.yard.asked), "notices": cmp.Diff(test.notices, notices),
			} {
				if diff != "" {
					t.Error(what, diff)
				}
			}
		})
	}
}

// lists answers all requests but that for the partitions, of which there is one.
func lists(answer http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/partitions") {
			fmt.Fprint(w, `{"partitions":[{"id":"0","last":9}]}`)
			return
		}
		answer(w, r)
	}
}

func TestAProblemEndsTheReading(t *testing.T) {
	client := dial(t, lists(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprintln(w, `{"partition":"0","sequence":0}`)
		fmt.Fprintln(w, `{"problem":{"type":"urn:eventyard:problem:stopping","title":"T","detail":"D"}}`)
		cutOff(w)
	}))
	got, err := collect(client.Read(t.Context(), Query{Hub: "h"}, nil))
	var p *Problem
	if len(got) != 1 || !errors.As(err, &p) || p.Kind() != "stopping" {
		t.Errorf("got %q and error %v", got, err)
	}
}

func TestWhoStopsRangingIsLeftAlone(t *testing.T) {
	client := dial(t, (&yard{last: []int64{3}, damage: map[position]int64{{"0", 0}: 1}}).ServeHTTP)
	n := 0
	for range client.Read(t.Context(), Query{Hub: "h"}, nil) {
		n++
		break
	}
	testkit.Equal(t, n, 1, "events")
}

func TestLongLinesAreRead(t *testing.T) {
	long := `{"body":"` + strings.Repeat("x", 1<<20) + `"}`
	client := dial(t, lists(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, long) }))
	got, err := collect(client.Read(t.Context(), Query{Hub: "h"}, nil))
	if err != nil || len(got) != 1 || got[0] != long {
		t.Errorf("%d events, %v", len(got), err)
	}
}
