package parts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/coder/websocket"
)

// pageTime bounds what a page may take on a busy machine.
const pageTime = time.Minute

var browserListens = regexp.MustCompile(`DevTools listening on ws://([^/\s]+)/`)

// Browser starts a Chromium without a screen, and gives an empty page of it that runs no scripts.
// The browser is gone at the test's end.
func Browser(t testing.TB) *Page {
	t.Helper()
	return newPage(t, Chromium(t))
}

// Chromium starts one without a screen, and gives the address of its DevTools. It is gone at the test's
// end.
func Chromium(t testing.TB) (address string) {
	t.Helper()
	if err := Need("chromium", "chromium"); err != nil {
		Missing(t, "Chromium: %v", err)
	}
	address, remove, err := StartChromium()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := remove(); err != nil {
			t.Errorf("remove Chromium: %v", err)
		}
	})
	return address
}

// StartChromium is Chromium for the tests of a process together: it is gone when remove is called, at the
// latest with the process.
func StartChromium() (address string, remove func() error, err error) {
	dir, err := os.MkdirTemp("", "eventyard-browser-")
	if err != nil {
		return "", nil, err
	}
	// It opens nothing but our own pages, so it needs no sandbox, which root and containers cannot
	// have.
	process, err := guard(dir, "KILL", nil, "env", "HOME="+dir, "chromium", "--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu",
		"--no-first-run", "--no-proxy-server", "--disable-background-networking", "--disable-component-update", "--disable-breakpad", "--disable-extensions",
		"--user-data-dir="+dir, "--remote-debugging-port=0", "about:blank")
	if err != nil {
		return "", nil, err
	}
	if err := process.await(func() bool { return browserListens.MatchString(process.log()) }); err != nil {
		return "", nil, errors.Join(fmt.Errorf("start Chromium: %w", err), process.remove())
	}
	return browserListens.FindStringSubmatch(process.log())[1], process.remove, nil
}

// Page is a page of a browser, for one goroutine. It is driven by Chromium's DevTools protocol
// (https://chromedevtools.github.io/devtools-protocol/): commands by number, answers with theirs,
// events in between.
type Page struct {
	t      testing.TB
	conn   *websocket.Conn
	number int
	loader string   // which loading of a document is shown
	loaded []string // those that are complete
	// Requests are what the browser has asked for, Complaints what it said of the pages: styles it
	// refused, for one.
	Requests   []Request
	Complaints []string
}

// Request is one that the browser made, and the status of its answer.
type Request struct {
	Method, URL string
	Status      int
	id          string
}

func newPage(t testing.TB, address string) *Page {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut, "http://"+address+"/json/new?about:blank", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatalf("new page: %v", err)
	}
	defer answer.Body.Close()
	var made struct{ WebSocketDebuggerURL string }
	if err := json.NewDecoder(answer.Body).Decode(&made); err != nil {
		t.Fatalf("new page: %v", err)
	}
	conn, _, err := websocket.Dial(t.Context(), made.WebSocketDebuggerURL, nil)
	if err != nil {
		t.Fatalf("new page: %v", err)
	}
	conn.SetReadLimit(64 << 20) // pictures
	t.Cleanup(func() { _ = conn.CloseNow() })
	p := &Page{t: t, conn: conn}
	for _, domain := range []string{"Page", "Network", "Log"} {
		p.Do(domain+".enable", nil, nil)
	}
	p.Do("Page.setLifecycleEventsEnabled", object{"enabled": true}, nil)
	p.Do("Emulation.setScriptExecutionDisabled", object{"value": true}, nil)
	return p
}

type object = map[string]any

// Screen makes the window so wide and high, and has the page asked for light or dark colours.
func (p *Page) Screen(width, height int, scheme string) {
	p.t.Helper()
	p.Do("Emulation.setDeviceMetricsOverride", object{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}, nil)
	p.Do("Emulation.setEmulatedMedia", object{"features": []object{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

// Open goes to an address, as if it had been typed, and waits until the page is complete.
func (p *Page) Open(address string) {
	p.t.Helper()
	var began struct{ LoaderID, ErrorText string }
	p.Do("Page.navigate", object{"url": address}, &began)
	if began.ErrorText != "" {
		p.t.Fatalf("open %s: %s", address, began.ErrorText)
	}
	p.awaitLoad(func(loader string) bool { return loader == began.LoaderID })
}

// Text is what a person sees of the page, as text.
func (p *Page) Text() string {
	p.t.Helper()
	var answer struct{ Result struct{ Value string } }
	p.Do("Runtime.evaluate", object{"expression": "document.body.innerText"}, &answer)
	return answer.Result.Value
}

// Width is that of the content; a page that is wider than its window has to be scrolled sideways.
func (p *Page) Width() int {
	p.t.Helper()
	var metrics struct{ CSSContentSize struct{ Width float64 } }
	p.Do("Page.getLayoutMetrics", nil, &metrics)
	return int(metrics.CSSContentSize.Width)
}

// Click presses the mouse on the first element that a selector finds, and waits for the page that
// this leads to.
func (p *Page) Click(selector string) {
	p.t.Helper()
	var document struct{ Root struct{ NodeID int } }
	p.Do("DOM.getDocument", nil, &document)
	var found struct{ NodeID int }
	p.Do("DOM.querySelector", object{"nodeId": document.Root.NodeID, "selector": selector}, &found)
	if found.NodeID == 0 {
		p.t.Fatalf("the page has no %s:\n%s", selector, p.Text())
	}
	p.Do("DOM.scrollIntoViewIfNeeded", object{"nodeId": found.NodeID}, nil)
	var box struct{ Model struct{ Content []float64 } } // four corners
	p.Do("DOM.getBoxModel", object{"nodeId": found.NodeID}, &box)
	corners := box.Model.Content
	x, y := (corners[0]+corners[4])/2, (corners[1]+corners[5])/2
	for _, kind := range []string{"mousePressed", "mouseReleased"} {
		p.Do("Input.dispatchMouseEvent", object{"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1}, nil)
	}
	p.awaitLoad(func(loader string) bool { return loader != p.loader })
}

// Press presses keys, such as Tab, one after the other; with the last of them the page is left for
// another.
func (p *Page) Press(keys ...string) {
	p.t.Helper()
	for _, key := range keys {
		p.Key(key)
	}
	p.awaitLoad(func(loader string) bool { return loader != p.loader })
}

// keyCodes are what Windows calls the keys, which Chromium goes by; texts what they type.
var keyCodes, keyTexts = map[string]int{"Tab": 9, "Enter": 13}, map[string]string{"Enter": "\r"}

// Key presses one key.
func (p *Page) Key(key string) {
	p.t.Helper()
	for _, kind := range []string{"keyDown", "keyUp"} {
		p.Do("Input.dispatchKeyEvent", object{"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": keyCodes[key], "text": keyTexts[key]}, nil)
	}
}

// awaitLoad waits until a document is complete.
func (p *Page) awaitLoad(wanted func(loader string) bool) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), pageTime)
	defer cancel()
	for {
		if i := slices.IndexFunc(p.loaded, wanted); i >= 0 {
			p.loader, p.loaded = p.loaded[i], nil
			return
		}
		p.read(ctx)
	}
}

// Do gives a command, and reads its answer into result unless that is nil.
func (p *Page) Do(method string, params, result any) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), pageTime)
	defer cancel()
	p.number++
	command, err := json.Marshal(object{"id": p.number, "method": method, "params": params})
	if err == nil {
		err = p.conn.Write(ctx, websocket.MessageText, command)
	}
	if err != nil {
		p.t.Fatalf("%s: %v", method, err)
	}
	answer := p.read(ctx)
	for answer.ID != p.number {
		answer = p.read(ctx)
	}
	if answer.Error != nil {
		p.t.Fatalf("%s: %s", method, answer.Error)
	}
	if result != nil {
		if err := json.Unmarshal(answer.Result, result); err != nil {
			p.t.Fatalf("%s: %v", method, err)
		}
	}
}

// message is an answer, or an event.
type message struct {
	ID            int
	Result, Error json.RawMessage
	Method        string
	Params        struct {
		LoaderID, Name, RequestID string
		Request                   struct{ Method, URL string }
		Response                  struct{ Status int }
		Entry                     struct{ Text string }
	}
}

// read takes the next message, and keeps what it tells.
func (p *Page) read(ctx context.Context) (m message) {
	p.t.Helper()
	_, data, err := p.conn.Read(ctx)
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	if err != nil {
		p.t.Fatalf("read of the browser: %v", err)
	}
	switch event := m.Params; m.Method {
	case "Page.lifecycleEvent":
		if event.Name == "load" {
			p.loaded = append(p.loaded, event.LoaderID)
		}
	case "Network.requestWillBeSent":
		p.Requests = append(p.Requests, Request{Method: event.Request.Method, URL: event.Request.URL, id: event.RequestID})
	case "Network.responseReceived":
		for i := range p.Requests {
			if p.Requests[i].id == event.RequestID {
				p.Requests[i].Status = event.Response.Status
			}
		}
	case "Log.entryAdded":
		p.Complaints = append(p.Complaints, event.Entry.Text)
	}
	return m
}
