package admin

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// reading is one Read under way, in the goroutine of whoever ranges over it.
//
// The yard cuts a reader who takes nothing for half a minute, which a pager does as soon as its
// screen is full, and one whose token expires. So a reading goes on in a new answer: first with the
// rest of the partition it was in, then with those behind it as they were asked for at first. What
// came into the hub since the beginning is not part of it.
type reading struct {
	client *Client
	query  Query
	yield  func(json.RawMessage, error) bool
	notice func(Notice)

	// ids are the partitions in the order in which they are given, and ends the number
	// of the last event that each had at the start.
	ids  []string
	ends map[string]int64

	left    int      // events until the count is reached, where there is one
	at      position // what comes next, unless last says more
	last    []byte   // the event given last; nil where at is exact
	moved   int      // events and damages given
	damages int
}

// position is the next event of the partition that is being read.
type position struct {
	partition string
	next      int64
}

// How an answer may end that is nobody's failure.
var (
	errLeft = errors.New("the consumer has left")
	errOver = errors.New("nothing more comes in this answer")
)

func (r *reading) run(ctx context.Context) error {
	if err := r.pinEnds(ctx); err != nil {
		return err
	}
	asks, again := []Query{r.query}, false
	for len(asks) > 0 {
		before := r.moved
		err := r.answer(ctx, asks[0], again)
		switch {
		case err == nil || errors.Is(err, errOver):
			asks = asks[1:]
		case errors.Is(err, errDone):
			asks = nil
		case !errors.Is(err, ErrBrokeOff) || ctx.Err() != nil || r.moved == before || !r.locate():
			return err
		default:
			asks, again = r.rest(), true
		}
	}
	return r.incomplete()
}

func (r *reading) pinEnds(ctx context.Context) error {
	partitions, err := r.partitions(ctx)
	if err != nil {
		return err
	}
	r.ends = make(map[string]int64, len(partitions))
	for _, p := range partitions {
		r.ids = append(r.ids, p.ID)
		r.ends[p.ID] = p.Last
	}
	if len(r.query.Partitions) > 0 {
		r.ids = r.query.Partitions
	}
	return nil
}

// partitions are those of the hub, or the one that is wanted.
func (r *reading) partitions(ctx context.Context) ([]Partition, error) {
	if len(r.query.Partitions) != 1 {
		return r.client.Partitions(ctx, r.query.Hub)
	}
	p, err := r.client.Partition(ctx, r.query.Hub, r.query.Partitions[0])
	return []Partition{p}, err
}

// answer gives what one answer holds; nil is its regular end.
func (r *reading) answer(ctx context.Context, q Query, again bool) error {
	response, err := r.client.do(ctx, request{
		method: http.MethodGet, path: []string{"hubs", q.Hub, "events"}, query: q.values(),
		header: http.Header{"Accept": {"application/x-ndjson"}},
	})
	if err != nil {
		return err
	}
	defer response.Body.Close()
	lines := bufio.NewReaderSize(response.Body, 64<<10)
	for {
		line, err := readLine(lines)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, errLineTooLong):
			return err
		case err != nil:
			return r.client.unreachable(fmt.Errorf("%w: %w", ErrBrokeOff, err))
		}
		if err := r.take(line, again); err != nil {
			return err
		}
	}
}

func (r *reading) take(line []byte, again bool) error {
	var l ProblemLine
	if !bytes.HasPrefix(line, []byte(`{"problem":`)) || json.Unmarshal(line, &l) != nil || l.Problem == nil {
		return r.give(line, again)
	}
	switch {
	case l.Partition != "":
		r.skip(l, again)
		return nil
	case r.damages > 0 && l.Problem.Kind() == damagedEvents:
		return errOver // it sums up what was told, and incomplete will do so for all
	case isExpired(l.Problem): // the rest comes with a new token
		r.client.signer.renew()
		return r.client.unreachable(fmt.Errorf("%w: %w", ErrBrokeOff, l.Problem))
	default:
		return l.Problem
	}
}

func (r *reading) give(event []byte, again bool) error {
	if again { // the first answer begins and ends where it should
		at, ok := positionOf(event)
		if ok && !r.wants(at) {
			return nil
		}
	}
	r.last = event
	r.moved++
	if !r.yield(event, nil) {
		return errLeft
	}
	if r.left--; r.left == 0 {
		return errDone
	}
	return nil
}

// skip tells of damage and goes behind it.
func (r *reading) skip(l ProblemLine, again bool) {
	lost := position{partition: l.Partition}
	if l.Problem.LostFirst != nil {
		lost.next = *l.Problem.LostFirst
	}
	if again && r.locate() && !r.wants(lost) {
		return
	}
	r.at = position{l.Partition, r.ends[l.Partition] + 1}
	if l.Problem.Resume != nil {
		r.at.next = *l.Problem.Resume
	}
	r.last = nil
	r.moved++
	r.damages++
	r.notice(Notice{Lost: l.Problem, Skipped: true})
}

// wants tells whether an event belongs to this reading and was not given yet. While
// answers are whole nobody asks, so that events need not be looked into.
func (r *reading) wants(event position) bool {
	if end, known := r.ends[event.partition]; known && event.next > end {
		return false
	}
	now, its := slices.Index(r.ids, r.at.partition), slices.Index(r.ids, event.partition)
	return its > now || its == now && event.next >= r.at.next
}

// locate finds out where the reading is. It is false where the yard does not say.
func (r *reading) locate() bool {
	if r.last == nil {
		return true
	}
	given, ok := positionOf(r.last)
	if ok {
		r.at, r.last = position{given.partition, given.next + 1}, nil
	}
	return ok && slices.Contains(r.ids, r.at.partition)
}

func positionOf(event []byte) (position, bool) {
	var e struct {
		Partition string `json:"partition"`
		Sequence  *int64 `json:"sequence"`
	}
	if err := json.Unmarshal(event, &e); err != nil || e.Sequence == nil {
		return position{}, false
	}
	return position{e.Partition, *e.Sequence}, true
}

// rest is what is still to be asked for. It has no count: an answer may hold events
// that are not wanted.
func (r *reading) rest() []Query {
	q := r.query
	q.Count = 0
	if strings.HasPrefix(q.From, packedPositions) {
		return []Query{q} // it cannot be divided, so all of it comes again
	}
	var asks []Query
	if r.at.next <= r.ends[r.at.partition] {
		first := q
		first.Partitions, first.From = []string{r.at.partition}, strconv.FormatInt(r.at.next, 10)
		asks = append(asks, first)
	}
	if behind := r.ids[slices.Index(r.ids, r.at.partition)+1:]; len(behind) > 0 {
		q.Partitions, q.From = behind, narrow(q.From, behind)
		asks = append(asks, q)
	}
	return asks
}

// packedPositions begins a position of many partitions, which is the yard's secret.
const packedPositions = "p1."

// narrow takes from a position of several partitions, 0:17,1:4, those that are not
// asked for, which the yard would refuse. Other positions hold for any partition.
func narrow(from string, ids []string) string {
	var kept []string
	for part := range strings.SplitSeq(from, ",") {
		id, _, _ := strings.Cut(part, ":")
		if _, err := strconv.ParseUint(id, 10, 16); err != nil || id == from {
			return from
		}
		if slices.Contains(ids, id) {
			kept = append(kept, part)
		}
	}
	return strings.Join(kept, ",")
}

// damagedEvents is the kind of problem that an answer with gaps ends with.
const damagedEvents = "damaged-events"

func (r *reading) incomplete() error {
	if r.damages == 0 {
		return nil
	}
	what := "1 stretch of events is damaged and was"
	if r.damages > 1 {
		what = fmt.Sprintf("%d stretches of events are damaged and were", r.damages)
	}
	return &Problem{
		Type: problemPrefix + damagedEvents, Title: "Stored events are damaged", Status: http.StatusInternalServerError,
		Detail: what + " left out; all others were given",
	}
}
