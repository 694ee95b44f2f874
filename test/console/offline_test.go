package console

import (
	"fmt"
	"io"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/server"
	"github.com/eventyard/eventyard/test/parts"
)

// cable leads from a browser to a yard. It can be pulled out, plugged in at another, and cut so that neither end
// hears of it.
type cable struct {
	net.Listener
	carrying sync.WaitGroup
	isCut    atomic.Bool

	mu   sync.Mutex
	to   string            // guarded by mu; empty: it is pulled out
	ends map[net.Conn]bool // guarded by mu
}

func newCable(t *testing.T) *cable {
	t.Helper()
	c := &cable{Listener: testkit.Value(net.Listen("tcp", "127.0.0.1:0"))(t), ends: map[net.Conn]bool{}}
	c.carrying.Go(c.serve)
	t.Cleanup(func() {
		c.Close()
		c.pull()
		c.carrying.Wait()
	})
	return c
}

func (c *cable) base() string { return "http://" + c.Addr().String() }

func (c *cable) serve() {
	for {
		in, err := c.Accept()
		if err != nil {
			return
		}
		c.carrying.Go(func() { c.carry(in) })
	}
}

// carry carries both ways until either end is closed.
func (c *cable) carry(in net.Conn) {
	defer in.Close()
	to := c.lead(in)
	defer c.forget(in)
	out, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	back := make(chan struct{})
	go func() {
		defer close(back)
		_, _ = io.Copy(wire{in, &c.isCut}, out)
		in.Close()
	}()
	_, _ = io.Copy(wire{out, &c.isCut}, in)
	out.Close()
	<-back
}

// wire carries one way, and swallows what comes while it is cut.
type wire struct {
	to    io.Writer
	isCut *atomic.Bool
}

func (w wire) Write(p []byte) (int, error) {
	if w.isCut.Load() {
		return len(p), nil
	}
	return w.to.Write(p)
}

// lead says where a connection leads; nowhere, if the cable is pulled out.
func (c *cable) lead(in net.Conn) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ends[in] = true
	return c.to
}

func (c *cable) forget(in net.Conn) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.ends, in)
}

// plug has new connections lead to a yard.
func (c *cable) plug(t *testing.T, base string) {
	t.Helper()
	address := testkit.Value(url.Parse(base))(t)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.to = address.Host
}

// pull cuts all connections.
func (c *cable) pull() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.to = ""
	for in := range c.ends {
		in.Close()
	}
}

// States of a live page: what it says, and its colour.
const (
	isLive = `document.getElementById("lost").hidden && !document.querySelector("button.live").matches(".lost, .paused") &&
		getComputedStyle(document.querySelector("main h1")).color === (window.ink ??= getComputedStyle(document.querySelector("main h1")).color)`
	isLost = `document.getElementById("lost").checkVisibility() && document.querySelector("button.live").matches(".lost") &&
		getComputedStyle(document.querySelector("main h1")).color !== window.ink && (window.lostAt ??= performance.now()) > 0`
)

// keeps is true of a page of a hub that shows so many events.
func keeps(events int) string {
	return fmt.Sprintf(`document.getElementById("fig-events").textContent === "%d"`, events)
}

// watched opens the page of hub orders, which has one event, over a cable to a yard.
func watched(t *testing.T, base string) (*visitor, *cable) {
	t.Helper()
	c := newCable(t)
	c.plug(t, base)
	v := newVisitor(t, c.base(), mouse{})
	v.visit("hubs/orders")
	v.await("a live page", isLive+" && "+keeps(1)+` && (window.left = false) === false`)
	return v, c
}

// V4: a page that cannot reach the yard says so, and is grey with what it knew; when it can again, it is
// whole by itself, without having been loaded again.
func TestAPageThatIsOffline(t *testing.T) {
	y := newYard(t)
	y.send(t, "one")
	v, c := watched(t, y.base)
	c.pull()
	v.await("a page that is lost", isLost+` && document.getElementById("lost-why").innerText.includes(":") && `+keeps(1))
	y.send(t, "two")
	away := 1_000
	if *all {
		away = 10_000
	}
	v.await("having been away", fmt.Sprintf(`performance.now() - window.lostAt > %d && %s`, away, isLost))
	c.plug(t, y.base)
	v.await("the page as it was, and on", isLive+" && "+keeps(2)+` && window.left === false`)
}

// V4: a page whose network swallows what is sent, and closes nothing, notices by itself that it hears nothing,
// and says as of when it is what it shows, in UTC for who has switched to that. So it does when who it asks again
// does not answer either.
func TestAPageWhoseCableIsCut(t *testing.T) {
	y := newYard(t)
	y.send(t, "one")
	v, c := watched(t, y.base)
	v.run("remember when it was cut", emulation.SetTimezoneOverride("Asia/Tokyo"), evaluate(`window.cutAt = Date.now(); 0`))
	c.isCut.Store(true)
	v.await("a page that is lost", isLost+" && "+keeps(1))
	const seen = `document.querySelector("#lost-why time")`
	v.await("when it heard last", `Math.abs(new Date(`+seen+`.dateTime) - window.cutAt) < 6000`)
	v.run("show UTC", evaluate(`document.querySelector("button.times").click()`))
	v.await("it in UTC", seen+`.textContent === `+seen+`.dateTime.slice(11, 19)`)
	v.run("ask again", evaluate(`document.getElementById("retry").click()`))
	v.await("a page that is lost still", isLost)
	y.send(t, "two")
	c.isCut.Store(false)
	v.run("ask again", evaluate(`document.getElementById("retry").click()`))
	v.await("the page as it is", isLive+" && "+keeps(2)+` && window.left === false`)
}

// V4: a page outlives the yard that it was loaded from, which is killed and started again: it shows what was
// acknowledged before, and goes on. Who cannot wait presses a button.
func TestAPageWhoseYardIsKilled(t *testing.T) {
	y := serve(t, "--data", "data")
	client := y.admin(t)
	testkit.Must(t, testkit.Err(client.CreateHub(t.Context(), admin.HubRequest{Name: "orders", Partitions: new(4)})))
	send := func(body string) {
		t.Helper()
		testkit.Must(t, testkit.Err(y.admin(t).Send(t.Context(), "orders", admin.Batch{Events: eventsOf(t, body)})))
	}
	send("one")
	v, c := watched(t, y.base)
	testkit.Must(t, y.End("KILL"))
	v.await("a page that is lost", isLost+" && "+keeps(1))
	y.again(t)
	send("two")
	c.plug(t, y.base)
	v.run("try now", evaluate(`document.getElementById("retry").click()`)) // by then it may have tried itself
	v.await("the page as it was, and on", isLive+" && "+keeps(2)+` && window.left === false`)
}

// R6, V1: a form that is sent to a yard whose disk is full says that nothing was stored, why, and what to do, and
// keeps what was written; when there is room it is sent as it stands.
func TestAFormOnAFullDisk(t *testing.T) {
	disk, err := parts.NewDisk(t, 96<<20)
	if err != nil {
		parts.Missing(t, "no disk can be mounted to be filled: %v", err)
	}
	y := newYard(t, func(cfg *server.Config) { cfg.DataDir = filepath.Join(disk.Folder, "yard") })
	p := newPage(t, y.base, 1280, "light")
	p.open("/console/hubs/orders/send")
	body := strings.Repeat("long ", 40_000) // more than is left of any page
	p.fill(map[string]string{"body": body})
	disk.Fill(t)
	p.press(act, "Storage is full")
	p.await("what to do, and what was written", contains("nothing was stored; free space")+fmt.Sprintf(` && document.querySelector('[name="body"]').value.length === %d`, len(body)))
	p.forgive() // it said that the form was refused
	p.check(parts.Axe(t), "full-disk")
	storage := newPage(t, y.base, 390, "dark")
	storage.open("/console/storage")
	storage.await("that the disk is full", `document.querySelector("#part-all .note.bad")?.innerText.includes("is full")`)
	storage.check(parts.Axe(t), "full-disk-storage")
	disk.Free(t)
	p.press(act, "1 event was stored.")
}
