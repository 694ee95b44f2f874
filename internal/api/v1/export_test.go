package v1

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/testkit"
)

// lines reads JSON lines.
func lines(t *testing.T, r io.Reader) (events []shown, last string) {
	t.Helper()
	scanner := bufio.NewScanner(r)
	for scanner.Scan() {
		last = scanner.Text()
		var e shown
		var plain any
		testkit.Must(t, json.Unmarshal(scanner.Bytes(), &plain))
		testkit.Must(t, json.Unmarshal(scanner.Bytes(), &e))
		if e.Enqueued == "" {
			continue
		}
		checkEvent(t, plain)
		events = append(events, e)
	}
	return events, last
}

func positions(events []shown) string {
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
	for _, tt := range []struct {
		what, query, want string
	}{
		{"all", "", "0/0=a 0/1=b 2/0=c 2/1=d"},
		{"from the latest there is nothing", "?from=latest", ""},
		{"the partitions named, in that order", "?partition=2,0", "2/0=c 2/1=d 0/0=a 0/1=b"},
		{"one partition from a number", "?partition=2&from=1", "2/1=d"},
		{"from each its own number", "?from=0:1,2:2", "0/1=b"},
		{"as many as asked for", "?count=3", "0/0=a 0/1=b 2/0=c"},
		{"more than there are", "?count=30&follow=false", "0/0=a 0/1=b 2/0=c 2/1=d"},
	} {
		t.Run(tt.what, func(t *testing.T) {
			resp := y.in(t).open(t.Context(), "GET", "/api/v1/hubs/orders/events"+tt.query, nil, "Accept", "application/x-ndjson")
			defer resp.Body.Close()
			if ct := resp.Header.Get("Content-Type"); resp.StatusCode != 200 || ct != "application/x-ndjson" {
				t.Fatalf("answered %d %s", resp.StatusCode, ct)
			}
			if got, _ := lines(t, resp.Body); positions(got) != tt.want {
				t.Errorf("read %s\nwant %s", positions(got), tt.want)
			}
		})
	}
}

// watched is a broker that calls before it opens a cursor, and lets its cursors be replaced.
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
	if got, _ := lines(t, resp.Body); positions(got) != "0/0=a 1/0=b" {
		t.Errorf("read %s", positions(got))
	}
}

// broken is a cursor that fails in the midst of damage.
type broken struct {
	eventlog.Cursor
	damage *eventlog.CorruptError
}

func (b broken) hits() bool {
	return b.At() >= b.damage.First && (b.At() < b.damage.Next || b.damage.Next == eventlog.NoSequence)
}

func (b broken) TryNext(ctx context.Context) (eventlog.Run, error) {
	if b.hits() {
		return eventlog.Run{}, b.damage
	}
	return b.Cursor.TryNext(ctx)
}

func (b broken) Next(ctx context.Context) (eventlog.Run, error) {
	if b.hits() {
		return eventlog.Run{}, b.damage
	}
	return b.Cursor.Next(ctx)
}

// damagedYard has a hub of two partitions whose partition 0, of five events, is damaged.
func damagedYard(t *testing.T, damage *eventlog.CorruptError) *yard {
	y := newYard(t, func(c *Config) {
		c.Broker = watched{Broker: c.Broker.(*broker.Broker), wrap: func(partition string, c eventlog.Cursor) eventlog.Cursor {
			if partition != "0" {
				return c
			}
			return broken{c, damage}
		}}
	})
	y.errors.Want(1)
	y.hub("orders", 2)
	for _, body := range []string{"a", "b", "c", "d", "e"} {
		y.send("orders", "0", body)
	}
	y.send("orders", "1", "f")
	return y
}

var damage = &eventlog.CorruptError{Where: "segment 0", Reason: "checksum", First: 2, Next: 4}

// Damage does not take away what is before it, and is told with the way around it.
func TestPageBeforeDamage(t *testing.T) {
	y := damagedYard(t, damage)
	page := y.page("orders", "0", "wait=1m")
	testkit.Equal(t, texts(page.Events), "a b", "read %q, next %d", texts(page.Events), page.Next)
	testkit.Equal(t, page.Next, 2, "read %q, next %d", texts(page.Events), page.Next)
	p := y.refused(500, "damaged-events", "GET", "/api/v1/hubs/orders/partitions/0/events?from=2", nil)
	if p.LostFirst == nil || *p.LostFirst != 2 || p.Resume == nil || *p.Resume != 4 {
		t.Errorf("the problem shows no way on: %+v", p)
	}
}

// H4: damage hides nothing but itself. A line says what is lost; and the answer is not
// taken for a whole one: its last line says why not, and the connection is cut.
func TestLinesGoOnBehindDamage(t *testing.T) {
	for _, tt := range []struct {
		what, query string
		damage      *eventlog.CorruptError
		want        string
		resume      bool
	}{
		{"with a way on", "", damage, "0/0=a 0/1=b 0/4=e 1/0=f", true},
		{"with nothing readable behind it", "", &eventlog.CorruptError{First: 2, Next: eventlog.NoSequence}, "0/0=a 0/1=b 1/0=f", false},
		{"up to the very end", "", &eventlog.CorruptError{First: 2, Next: 5}, "0/0=a 0/1=b 1/0=f", true},
		{"with a count", "?count=3", damage, "0/0=a 0/1=b 0/4=e", true},
	} {
		t.Run(tt.what, func(t *testing.T) {
			y := damagedYard(t, tt.damage)
			resp := y.open(t.Context(), "GET", "/api/v1/hubs/orders/events"+tt.query, nil)
			defer resp.Body.Close()
			var all strings.Builder
			if _, err := io.Copy(&all, resp.Body); !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("the answer ended with %v", err)
			}
			if got, _ := lines(t, strings.NewReader(all.String())); positions(got) != tt.want {
				t.Errorf("read %s, want %s", positions(got), tt.want)
			}
			checkDamageLines(t, all.String(), tt.resume)
		})
	}
}

// checkDamageLines wants one line for the damage, behind event 1, and one at the end.
func checkDamageLines(t *testing.T, all string, resume bool) {
	t.Helper()
	split := strings.Split(strings.TrimSpace(all), "\n")
	var reported, end admin.ProblemLine
	testkit.Must(t, json.Unmarshal([]byte(split[2]), &reported))
	testkit.Must(t, json.Unmarshal([]byte(split[len(split)-1]), &end))
	for _, line := range []string{split[2], split[len(split)-1]} {
		var plain any
		testkit.Must(t, json.Unmarshal([]byte(line), &plain))
		checkSchema(t, "ProblemLine", plain)
	}
	if reported.Problem.Type != problemPrefix+"damaged-events" || reported.Partition != "0" || *reported.Problem.LostFirst != 2 || (reported.Problem.Resume != nil) != resume {
		t.Errorf("the damage is told by %s", split[2])
	}
	if end.Problem.Type != problemPrefix+"damaged-events" || end.Partition != "" || end.Problem.LostFirst != nil {
		t.Errorf("the last line is %s", split[len(split)-1])
	}
}

// late is a cursor that has nothing ready, although there is something to wait for.
type late struct{ eventlog.Cursor }

func (late) TryNext(ctx context.Context) (eventlog.Run, error) { return eventlog.Run{}, nil }

// H4: events that are stored and not at hand yet are waited for, and not left out.
func TestLinesWaitForWhatIsThere(t *testing.T) {
	y := newYard(t, func(c *Config) {
		c.Broker = watched{Broker: c.Broker.(*broker.Broker), wrap: func(_ string, c eventlog.Cursor) eventlog.Cursor { return late{c} }}
	})
	y.hub("orders", 1)
	y.send("orders", "0", "a")
	y.send("orders", "0", "b")
	resp := y.open(t.Context(), "GET", "/api/v1/hubs/orders/events", nil)
	defer resp.Body.Close()
	if got, _ := lines(t, resp.Body); positions(got) != "0/0=a 0/1=b" {
		t.Errorf("read %s", positions(got))
	}
}

// trimmed is a broker whose partitions retention has emptied since their ends were asked for.
type trimmed struct {
	watched
	asked *atomic.Int64
}

func (b trimmed) Partition(ctx context.Context, hub, partition string) (broker.PartitionInfo, error) {
	info, err := b.Broker.Partition(ctx, hub, partition)
	if b.asked.Add(1) > 1 {
		info.First, info.Empty = info.Last+1, true
	}
	return info, err
}

// H4: what retention has removed under a reading is not waited for.
func TestLinesEndWhenRetentionOvertakes(t *testing.T) {
	y := newYard(t, func(c *Config) {
		c.Broker = trimmed{watched{Broker: c.Broker.(*broker.Broker), wrap: func(_ string, c eventlog.Cursor) eventlog.Cursor { return late{c} }}, new(atomic.Int64)}
	})
	y.hub("orders", 1)
	y.send("orders", "0", "a")
	if got := y.want(200, "GET", "/api/v1/hubs/orders/events", nil); len(got.body) > 0 {
		t.Errorf("read %s", got.body)
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
		testkit.Equal(t, y.counted("/api/v1/hubs/{hub}/events", "GET", "2xx"), 0,
			"the answer did not wait for its client")
		time.Sleep(30 * time.Second)
		synctest.Wait()
		testkit.Equal(t, y.counted("/api/v1/hubs/{hub}/events", "GET", "2xx"), 1,
			"the answer still waits after the time for a write")
	})
}

// H9: lines break off when the token expires, its policy is deleted or the yard stops, and say so.
func TestLinesBreakOff(t *testing.T) {
	for kind, meanwhile := range map[string]func(*yard){
		"expired-token": func(*yard) { time.Sleep(2 * time.Minute) },
		"revoked-token": func(y *yard) { testkit.Must(y.t, y.registry.Delete(y.t.Context(), "", "p")) },
		"stopping":      func(y *yard) { y.stopping(); synctest.Wait() },
	} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var y *yard
				y = newYard(t, func(c *Config) {
					c.Broker = watched{Broker: c.Broker.(*broker.Broker), before: func(partition string) {
						if partition == "1" {
							meanwhile(y)
						}
					}}
				})
				y.hub("orders", 2)
				p := y.policy("", "p", auth.Listen)
				y.send("orders", "0", "a")
				y.send("orders", "1", "b")
				token := auth.Sign("http://localhost/", p.Name, p.Primary, time.Now().Add(time.Minute))
				resp := y.as(token).open(t.Context(), "GET", "/api/v1/hubs/orders/events", nil)
				defer resp.Body.Close()
				all, err := io.ReadAll(resp.Body)
				testkit.ErrorIs(t, err, io.ErrUnexpectedEOF, "the answer ended")
				got, last := lines(t, bytes.NewReader(all))
				if positions(got) != "0/0=a" || !strings.Contains(last, problemPrefix+kind) {
					t.Errorf("read %s", all)
				}
			})
		})
	}
}

// An event that is stored in no form we know is shown as it is, and stops nobody.
func TestUnreadableEventIsShown(t *testing.T) {
	y := newYard(t)
	y.hub("orders", 1)
	_, err := y.broker.Publish(t.Context(), "orders", broker.Target{}, []eventlog.Event{{Message: []byte("junk")}})
	testkit.Must(t, err)
	y.send("orders", "0", "fine")
	page := y.page("orders", "0", "")
	testkit.MustEqual(t, len(page.Events), 2, "read %+v", page)
	testkit.MustEqual(t, page.Events[1].text(), "fine", "read %+v", page)
	if e := page.Events[0]; e.Unreadable == "" || e.StoredBase64 != "anVuaw==" {
		t.Errorf("shown as %+v", e)
	}
}
