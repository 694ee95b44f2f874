package httpapi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/broker"
	"github.com/eventyard/eventyard/internal/eventlog"
)

// lines reads JSON lines.
func lines(t *testing.T, r io.Reader) (events []shown, last string) {
	t.Helper()
	scanner := bufio.NewScanner(r)
	for scanner.Scan() {
		last = scanner.Text()
		var e shown
		var plain any
		must(t, json.Unmarshal(scanner.Bytes(), &plain))
		must(t, json.Unmarshal(scanner.Bytes(), &e))
		if e.Enqueued == "" {
			continue
		}
		checkEvent(t, plain)
		events = append(events, e)
	}
	return events, last
}

func places(events []shown) string {
	var list []string
	for _, e := range events {
		list = append(list, fmt.Sprintf("%s/%d=%s", e.Partition, e.Sequence, e.text()))
	}
	return strings.Join(list, " ")
}

// H4: a hub is read whole, partition after partition, or from a position, or in part.
func TestReadHubAsLines(t *testing.T) {
	y := newYard(t)
	y.hub("orders", 3)
	y.send("orders", "0", "a", "b")
	y.send("orders", "2", "c")
	y.send("orders", "2", "d")
	tests := []struct {
		what, query, want string
	}{
		{"all", "", "0/0=a 0/1=b 2/0=c 2/1=d"},
		{"from the latest there is nothing", "?from=latest", ""},
		{"the partitions named, in that order", "?partition=2,0", "2/0=c 2/1=d 0/0=a 0/1=b"},
		{"one partition from a number", "?partition=2&from=1", "2/1=d"},
		{"from each its own number", "?from=0:1,2:2", "0/1=b"},
		{"as many as asked for", "?count=3", "0/0=a 0/1=b 2/0=c"},
		{"more than there are", "?count=30&follow=false", "0/0=a 0/1=b 2/0=c 2/1=d"},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			resp := y.in(t).open(t.Context(), "GET", "/api/v1/hubs/orders/events"+tt.query, nil, "Accept", "application/x-ndjson")
			defer resp.Body.Close()
			if ct := resp.Header.Get("Content-Type"); resp.StatusCode != 200 || ct != "application/x-ndjson" {
				t.Fatalf("answered %d %s", resp.StatusCode, ct)
			}
			if got, _ := lines(t, resp.Body); places(got) != tt.want {
				t.Errorf("read %s\nwant %s", places(got), tt.want)
			}
		})
	}
}

// watched is a broker that calls before it opens a cursor, and lets its cursors be
// replaced.
type watched struct {
	*broker.Broker
	before func(partition string)
	wrap   func(partition string, c eventlog.Cursor) eventlog.Cursor
}

func (w watched) Cursor(ctx context.Context, hub, group, partition string, at eventlog.Position) (eventlog.Cursor, error) {
	if w.before != nil {
		w.before(partition)
	}
	c, err := w.Broker.Cursor(ctx, hub, group, partition, at)
	if err == nil && w.wrap != nil {
		c = w.wrap(partition, c)
	}
	return c, err
}

// H4: lines end at the ends as they were at the start, however much comes meanwhile.
func TestLinesEndWhereTheyWereAtTheStart(t *testing.T) {
	var y *yard
	y = newYard(t, func(c *Config) {
		c.Broker = watched{Broker: c.Broker.(*broker.Broker), before: func(partition string) {
			y.send("orders", "0", "late")
			y.send("orders", "1", "late")
		}}
	})
	y.hub("orders", 2)
	y.send("orders", "0", "a")
	y.send("orders", "1", "b")
	resp := y.open(t.Context(), "GET", "/api/v1/hubs/orders/events", nil)
	defer resp.Body.Close()
	if got, _ := lines(t, resp.Body); places(got) != "0/0=a 1/0=b" {
		t.Errorf("read %s", places(got))
	}
}

// broken is a cursor that fails once it has come to a number.
type broken struct {
	eventlog.Cursor
	at  eventlog.Sequence
	err error
}

func (b broken) TryNext() (eventlog.Run, error) {
	if b.Place() >= b.at {
		return eventlog.Run{}, b.err
	}
	return b.Cursor.TryNext()
}

func (b broken) Next(ctx context.Context) (eventlog.Run, error) {
	if b.Place() >= b.at {
		return eventlog.Run{}, b.err
	}
	return b.Cursor.Next(ctx)
}

// damagedYard has a hub whose partition 0 cannot be read beyond event 1.
func damagedYard(t *testing.T, err error) *yard {
	y := newYard(t, func(c *Config) {
		c.Broker = watched{Broker: c.Broker.(*broker.Broker), wrap: func(partition string, c eventlog.Cursor) eventlog.Cursor {
			if partition != "0" {
				return c
			}
			return broken{Cursor: c, at: 2, err: err}
		}}
	})
	y.errors.want.Store(1)
	y.hub("orders", 2)
	for _, body := range []string{"a", "b", "c", "d", "e"} {
		y.send("orders", "0", body)
	}
	return y
}

var damage = &eventlog.CorruptError{Where: "segment 0", Reason: "checksum", First: 2, Next: 4}

// Damage does not take away what is before it, and is told with the way around it.
func TestPageBeforeDamage(t *testing.T) {
	y := damagedYard(t, damage)
	page := y.page("orders", "0", "wait=1m")
	if texts(page.Events) != "a b" || page.Next != 2 {
		t.Errorf("read %q, next %d", texts(page.Events), page.Next)
	}
	p := y.refused(500, "damaged-events", "GET", "/api/v1/hubs/orders/partitions/0/events?from=2", nil)
	if !strings.Contains(p.Detail, "go on at 4") {
		t.Errorf("the problem shows no way on: %s", p.Detail)
	}
}

// An answer that cannot be finished is not taken for a whole one: its last line says
// why, and the connection is cut.
func TestLinesThatBreakOff(t *testing.T) {
	y := damagedYard(t, damage)
	resp := y.open(t.Context(), "GET", "/api/v1/hubs/orders/events", nil)
	defer resp.Body.Close()
	var all strings.Builder
	if _, err := io.Copy(&all, resp.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the answer ended with %v", err)
	}
	got, last := lines(t, strings.NewReader(all.String()))
	if places(got) != "0/0=a 0/1=b" {
		t.Errorf("read %s", places(got))
	}
	var end struct{ Problem problem }
	must(t, json.Unmarshal([]byte(last), &end))
	if end.Problem.Type != problemPrefix+"damaged-events" {
		t.Errorf("the last line is %s", last)
	}
}

// A client that takes nothing of its lines is let go in time; that is no error of ours.
func TestLinesOfASlowClientEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newYard(t)
		y.hub("orders", 1)
		for range 8 {
			y.send("orders", "0", strings.Repeat("x", 50<<10))
		}
		resp := y.open(t.Context(), "GET", "/api/v1/hubs/orders/events", nil)
		defer resp.Body.Close()
		synctest.Wait()
		if n := y.counted("/api/v1/hubs/{hub}/events", "GET", "2xx"); n != 0 {
			t.Error("the answer did not wait for its client")
		}
		time.Sleep(30 * time.Second)
		synctest.Wait()
		if n := y.counted("/api/v1/hubs/{hub}/events", "GET", "2xx"); n != 1 {
			t.Error("the answer still waits after the time for a write")
		}
	})
}

// A yard that stops breaks off lines too, and says so.
func TestLinesBreakOffWhenStopping(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var y *yard
		y = newYard(t, func(c *Config) {
			c.Broker = watched{Broker: c.Broker.(*broker.Broker), before: func(partition string) {
				if partition == "1" {
					y.stopping()
					synctest.Wait()
				}
			}}
		})
		y.hub("orders", 2)
		y.send("orders", "0", "a")
		y.send("orders", "1", "b")
		resp := y.open(t.Context(), "GET", "/api/v1/hubs/orders/events", nil)
		defer resp.Body.Close()
		all, err := io.ReadAll(resp.Body)
		if !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Errorf("the answer ended with %v", err)
		}
		got, last := lines(t, bytes.NewReader(all))
		if places(got) != "0/0=a" || !strings.Contains(last, problemPrefix+"stopping") {
			t.Errorf("read %s", all)
		}
	})
}

// An event that is stored in no form we know is shown as it is, and stops nobody.
func TestUnreadableEventIsShown(t *testing.T) {
	y := newYard(t)
	y.hub("orders", 1)
	_, err := y.broker.Publish(t.Context(), "orders", broker.Target{}, []eventlog.Event{{Message: []byte("junk")}})
	must(t, err)
	y.send("orders", "0", "fine")
	page := y.page("orders", "0", "")
	if len(page.Events) != 2 || page.Events[1].text() != "fine" {
		t.Fatalf("read %+v", page)
	}
	if e := page.Events[0]; e.Unreadable == "" || e.StoredBase64 != "anVuaw==" {
		t.Errorf("shown as %+v", e)
	}
}
