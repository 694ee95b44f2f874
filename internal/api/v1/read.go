package v1

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
)

// What a page holds at most, and how long it may wait to hold anything.
const (
	defaultPageEvents = 100
	maxPageEvents     = 1000
	maxPageBytes      = 4 << 20
	maxPageWait       = 60 * time.Second
)

// readPage gives a page of one partition. At the end it waits as long as it was told
// to for something to come (long poll). A client goes on with from=next.
func (d *Handler) readPage(w http.ResponseWriter, r *http.Request) error {
	q, err := parsePageQuery(r)
	if q.format.namespace = d.cfg.Broker.Namespace(); err == nil {
		q.find, err = newFinder(r.URL.Query(), d.cfg.Broker.Namespace(), time.Now())
	}
	if err != nil {
		return err
	}
	cursor, err := d.cfg.Broker.Cursor(r.Context(), q.hub, q.group, q.partition, q.at)
	if err != nil {
		return err
	}
	defer cursor.Close()

	ctx, cancel, err := d.untilOver(r)
	if err != nil {
		return err
	}
	defer cancel()
	p := newPage(q, cursor)
	reading := d.newReading(w, r)
	defer reading.end()
	if err := p.fill(ctx, cursor, reading); err != nil {
		return err
	}
	if r.Context().Err() != nil {
		return r.Context().Err()
	}
	_ = cursor.Close()
	reading.share.Keep(cap(p.buf))
	d.cfg.Broker.Reads(q.hub, q.group).Add(float64(p.count))
	// The wait may have used up the server's own time-out for writing.
	if err := reading.extend(d.cfg.WriteTimeout); err != nil {
		return err
	}
	frame.Reply(pieces{w, reading}, http.StatusOK, "application/json", p.finish())
	return nil
}

type pageQuery struct {
	hub, group, partition string
	at                    eventlog.Position
	max                   int
	wait                  time.Duration
	format                eventFormat
	find                  *finder // nil: all are wanted
}

func parsePageQuery(r *http.Request) (pageQuery, error) {
	query := r.URL.Query()
	q := pageQuery{hub: r.PathValue("hub"), partition: r.PathValue("partition"), group: groupOf(query)}
	from, err := parseStart(query.Get("from"))
	if err != nil {
		return q, err
	}
	if err := from.check([]string{q.partition}); err != nil {
		return q, err
	}
	q.at = from.of(q.partition)
	if q.max, err = positive(query, "max", defaultPageEvents); err != nil {
		return q, err
	}
	q.max = min(q.max, maxPageEvents)
	if q.wait, err = parseWait(query.Get("wait")); err != nil {
		return q, err
	}
	q.format, err = parseFormat(query)
	q.format.hub = q.hub
	return q, err
}

func groupOf(query url.Values) string {
	if group := query.Get("group"); group != "" {
		return group
	}
	return broker.DefaultGroup
}

// positive reads a number of at least 1; absent means otherwise.
func positive(query url.Values, name string, otherwise int) (int, error) {
	text := query.Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 1 {
		return 0, badRequest("give a whole number of at least 1, or leave it out", "%s=%s is no number of events", name, text)
	}
	return int(n), nil
}

// parseWait reads how long to wait: a Go duration or whole seconds, cut to the most
// that is allowed.
func parseWait(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	wait, err := time.ParseDuration(text)
	if seconds, bare := strconv.ParseUint(text, 10, 31); bare == nil {
		wait, err = time.Duration(seconds)*time.Second, nil
	}
	if err != nil || wait < 0 {
		return 0, badRequest("write it like 30s or 1m; the most is 60s", "wait=%s is no duration", text)
	}
	return min(wait, maxPageWait), nil
}

func parseFormat(query url.Values) (eventFormat, error) {
	switch form := query.Get("bodies"); form {
	case "", "auto":
		return eventFormat{}, nil
	case "base64":
		return eventFormat{rawBodies: true}, nil
	case "cloudevents":
		return eventFormat{cloud: true}, nil
	default:
		return eventFormat{}, badRequest("use bodies=base64 for exact bytes, bodies=cloudevents for CloudEvents, or leave it out", "bodies=%s is no form of bodies", form)
	}
}

// page is an answer in the making. It holds encoded events only, up to a bound.
type page struct {
	query pageQuery
	buf   []byte
	count int
	next  eventlog.Sequence
}

func newPage(q pageQuery, cursor eventlog.Cursor) *page {
	return &page{query: q, buf: append(make([]byte, 0, 4<<10), `{"events":[`...), next: cursor.At()}
}

// fill takes what is there and, if that is nothing, waits for more. An error behind
// events that are already on the page is left for the next page to find.
func (p *page) fill(ctx context.Context, cursor eventlog.Cursor, reading *reading) error {
	waiting, cancel := context.WithTimeout(ctx, p.query.wait)
	defer cancel()
	for {
		if err := reading.hold(ctx, maxPageBytes+maxRunBytes); err != nil {
			return err
		}
		err := p.take(ctx, cursor)
		if err != nil || p.count > 0 || p.query.wait == 0 {
			return p.unlessFilled(err)
		}
		reading.share.Give() // who waits at the end holds nothing
		woken := make(chan struct{})
		stop := cursor.Await(func() { close(woken) })
		select {
		case <-woken:
		case <-waiting.Done():
			stop()
			return nil // time is up, the token has ended, the yard is stopping, or the client is gone
		}
	}
}

func (p *page) unlessFilled(err error) error {
	if p.count > 0 {
		return nil
	}
	return err
}

// take adds what the cursor has ready.
func (p *page) take(ctx context.Context, cursor eventlog.Cursor) error {
	for !p.full() {
		run, err := cursor.TryNext(ctx)
		if err != nil {
			return err
		}
		if len(run.Events) == 0 {
			if p.query.find != nil {
				p.query.find.end = true
			}
			return nil
		}
		p.add(run)
	}
	return nil
}

func (p *page) add(run eventlog.Run) {
	for i := range run.Events {
		if p.full() {
			return
		}
		p.next = run.First + eventlog.Sequence(i) + 1
		if f := p.query.find; f != nil && !f.finds(p.query.hub, p.query.partition, run, i) {
			continue
		}
		if p.count > 0 {
			p.buf = append(p.buf, ',')
		}
		p.buf = p.query.format.appendEvent(p.buf, p.query.partition, run, i)
		p.count++
	}
}

func (p *page) full() bool {
	return p.count >= p.query.max || len(p.buf) >= maxPageBytes || p.query.find.over()
}

func (p *page) finish() []byte {
	p.buf = append(p.buf, `],"next":`...)
	p.buf = strconv.AppendInt(p.buf, int64(p.next), 10)
	if p.query.find != nil {
		p.buf = p.query.find.appendLooked(p.buf)
	}
	return append(p.buf, '}', '\n')
}

// hubQuery is a request to read a whole hub, or some of its partitions.
type hubQuery struct {
	hub, group string
	// created tells the hub from a later one of the same name.
	created    time.Time
	partitions []string
	from       start
	// count ends the reading after so many events; 0 means no end.
	count  int
	format eventFormat
}

// readHub reads all partitions of a hub: as a live tail for those who follow, as
// JSON lines up to the present ends for those who do not.
func (d *Handler) readHub(w http.ResponseWriter, r *http.Request) error {
	q, err := d.parseHubQuery(r)
	if err != nil {
		return err
	}
	follow, err := wantsTail(r)
	switch {
	case err != nil:
		return err
	case d.cfg.Stopping.Err() != nil:
		return frame.ErrStopping // nothing long is begun any more
	case follow:
		return d.tail(w, r, q)
	default:
		return d.export(w, r, q)
	}
}

func (d *Handler) parseHubQuery(r *http.Request) (hubQuery, error) {
	query := r.URL.Query()
	q := hubQuery{group: groupOf(query)}
	hub, err := d.cfg.Broker.LookUp(r.Context(), r.PathValue("hub"))
	if err != nil {
		return q, err
	}
	q.hub, q.created = hub.Name, hub.Created
	if q.partitions, err = choosePartitions(query["partition"], hub); err != nil {
		return q, err
	}
	from := query.Get("from")
	if last := r.Header.Get("Last-Event-ID"); last != "" {
		from = last // a browser that comes back asks with its first URL and this header
	}
	if q.from, err = parseStart(from); err != nil {
		return q, err
	}
	if err := q.from.check(q.partitions); err != nil {
		return q, err
	}
	if q.count, err = positive(query, "count", 0); err != nil {
		return q, err
	}
	q.format, err = parseFormat(query)
	q.format.namespace, q.format.hub = d.cfg.Broker.Namespace(), hub.Name
	return q, err
}

// choosePartitions reads partition=0,1 (or partition=0&partition=1); nothing means
// all. Whether they exist is for the broker to say.
func choosePartitions(given []string, hub broker.Hub) ([]string, error) {
	var ids []string
	for _, list := range given {
		for id := range strings.SplitSeq(list, ",") {
			if slices.Contains(ids, id) {
				return nil, badRequest("name each partition once", "partition %q is named twice", id)
			}
			ids = append(ids, id)
		}
	}
	if len(ids) > hub.Partitions {
		return nil, badRequest("leave partition= out to read them all", "%d partitions are named and the hub has %d", len(ids), hub.Partitions)
	}
	if ids == nil {
		return hub.PartitionIDs(), nil
	}
	return ids, nil
}

// wantsTail: follow says it; where it is not given, asking for an event stream does.
func wantsTail(r *http.Request) (bool, error) {
	switch follow := r.URL.Query().Get("follow"); follow {
	case "":
		return strings.Contains(strings.ToLower(r.Header.Get("Accept")), "text/event-stream"), nil
	case "true", "1":
		return true, nil
	case "false", "0":
		return false, nil
	default:
		return false, badRequest("use follow=true or follow=false", "follow=%s says neither yes nor no", follow)
	}
}
