package demo

import (
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

// shown is a demo with a board, and nothing behind it.
func shown(b *Board) http.Handler {
	d := &demo{cfg: Config{Homes: 100_000, Every: time.Minute}, desk: &desk{}, ledger: newLedger(noon)}
	d.board.Store(b)
	mux := http.NewServeMux()
	d.pages(mux)
	return mux
}

func get(h http.Handler, method, path string, change func(*http.Request)) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, nil)
	r.Host = "127.0.0.1:8090"
	if change != nil {
		change(r)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func fullBoard() *Board {
	b := boardAt(722, "consumer-1", "consumer-2", "consumer-1")
	b.Started, b.Console, b.Levers = noon, "http://127.0.0.1:8080/console/", "http://127.0.0.1:8090/"
	b.Rate = Rate{Homes: 100_000, Sensors: 4, Promised: 6666.7, Sent: 6664, Reached: 0.9996}
	b.Aggregated, b.Behind, b.ToPage, b.Machine = 6664, 1900*time.Millisecond, 2100*time.Millisecond, 0.61
	b.Consumers = []ConsumerRow{
		{Name: "consumer-1", Process: 4121, Partitions: []string{"0", "2"}, Rate: 1402, Behind: 1400 * time.Millisecond},
		{Name: "consumer-2", Process: 4122, Partitions: []string{"1"}, Rate: 1220, Behind: 1900 * time.Millisecond},
		{Name: "consumer-3", Process: 4123, Fate: "killed 12:06:32"},
	}
	b.Hooks = []HookRow{{Name: brokenHook, State: "probation", Waiting: 1224, Until: b.At.Add(38 * time.Second)}, {Name: "resident-push", State: "healthy", Delivered: 40_000}}
	b.Scorer = ScorerRow{State: "open", Since: noon, Waiting: 48_211, Poisoned: 20}
	b.Books = Books{Acknowledged: 4_812_330, InBlobs: 4_799_662, OnTheWay: 12_668, ReadTwice: 1204}
	b.Trials = []Trial{{Lever: "kill", Text: "killed <b>consumer-3</b>", Mood: moodWell, Done: true}}
	b.Journal = []Entry{{noon, `<script>alert("x")</script>`}}
	b.Trend = Trend{Sent: []float64{1, 2, 3}}
	return b
}

// inline is what the policy of our pages would refuse.
var inline = regexp.MustCompile(`\sstyle=|\son[a-z]+=|<script>|<style`)

// S, V3, V4: the levers and the books are there without any script, and nothing is inline.
func TestTheLeversPage(t *testing.T) {
	w := get(shown(fullBoard()), "GET", "/", nil)
	page := w.Body.String()
	testkit.Equal(t, w.Code, http.StatusOK, page)
	for _, want := range []string{
		"100,000 homes, 6,667 events a second, 2 consumers", "4,812,330", "12,668", "killed 12:06:32", `<span class="chip t1">2</span>`,
		"killed &lt;b&gt;consumer-3&lt;/b&gt;", "&lt;script&gt;", `>Resume</button>`,
	} {
		testkit.That(t, strings.Contains(page, want), "the page has no %q", want)
	}
	testkit.Equal(t, inline.FindString(page), "", "what is inline")
	for _, action := range regexp.MustCompile(`action="/levers/([a-z0-9]+)"`).FindAllStringSubmatch(page, -1) {
		testkit.That(t, levers[action[1]] != nil, "there is no lever %q", action[1])
	}
	testkit.That(t, strings.Contains(w.Header().Get("Content-Security-Policy"), "default-src 'none'"), "the page has no policy")
}

// R1: pages of others pull no levers, and a foreign name reads nothing.
func TestStrangersPullNoLevers(t *testing.T) {
	h := shown(fullBoard())
	cross := get(h, "POST", "/levers/kill", func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") })
	testkit.Equal(t, cross.Code, http.StatusForbidden, "a page of another origin")
	foreign := get(h, "GET", "/", func(r *http.Request) { r.Host = "evil.example" })
	testkit.Equal(t, foreign.Code, http.StatusForbidden, "a foreign name")
	wrong := get(h, "POST", "/levers/nonsense", nil)
	testkit.Equal(t, wrong.Header().Get("Location"), "/?wrong=there+is+no+lever+%22nonsense%22")
}

func TestAssetsAreThere(t *testing.T) {
	h := shown(fullBoard())
	page := get(h, "GET", "/", nil).Body.String() + get(h, "GET", "/homes/h-000001", nil).Body.String() + get(h, "GET", "/mailbox", nil).Body.String()
	for _, m := range regexp.MustCompile(`(?:href|src)="(/assets/[^"#]+)(?:#([a-z-]+))?"`).FindAllStringSubmatch(page, -1) {
		w := get(h, "GET", m[1], nil)
		testkit.Equal(t, w.Code, http.StatusOK, m[1])
		testkit.That(t, m[2] == "" || strings.Contains(w.Body.String(), `id="`+m[2]+`"`), "the sprite has no %q", m[2])
	}
	for _, path := range []string{"/assets/nothing.css", "/assets/VENDORED.md", "/homes/h-9", "/homes/h-100000"} {
		testkit.Equal(t, get(h, "GET", path, nil).Code, http.StatusNotFound, path)
	}
}

// S: a resident sees the newest of the home, and the last hour.
func TestAResidentsPage(t *testing.T) {
	var h homeState
	at := noon
	for i := range 90 {
		at = noon.Add(time.Duration(i) * time.Minute)
		h.take(motion, reading{At: at, Value: i % 10}, time.Minute)
	}
	h.take(motion, reading{At: noon, Value: 99}, time.Minute) // late: known already
	opened := at.Add(-3 * time.Minute)
	for i := range 4 {
		h.take(entrance, reading{At: opened.Add(time.Duration(i) * time.Minute), Value: 1}, time.Minute)
	}
	h.take(monoxide, reading{At: at, Value: 3}, time.Minute)
	hour := h.hour()
	testkit.Equal(t, len(hour), 60, "periods")
	testkit.Equal(t, hour[59], 9, "movements in the newest")
	testkit.Equal(t, hour[0], 0, "movements an hour ago")
	h.Partition = "1"
	p := newHomePage(h, true, 48216, Config{Homes: 100_000, Every: time.Minute}, fullBoard(), at.Add(12*time.Second))
	testkit.Equal(t, p.Title, "The front door is open")
	testkit.Equal(t, p.Rooms[0].Text, "moved 12 s ago")
	testkit.Equal(t, p.Rooms[1].Text, "open for 3 min 12 s")
	testkit.Equal(t, p.Rooms[2].Text, "3 ppm")
	testkit.Equal(t, p.Consumer, "consumer-2", "who adds it up")
	testkit.Equal(t, len(p.Bars), 60, "bars")
	w := httptest.NewRecorder()
	render(w, "home.html", p)
	testkit.That(t, strings.Contains(w.Body.String(), "The front door is open"), "the page does not say it: %s", w.Body)
	testkit.Equal(t, inline.FindString(w.Body.String()), "", "what is inline")
}

func TestAHomeThatIsSilentForAWhile(t *testing.T) {
	var h homeState
	h.take(motion, reading{At: noon, Value: 5}, time.Minute)
	h.take(motion, reading{At: noon.Add(3 * time.Minute), Value: 7}, time.Minute)
	testkit.Slices(t, h.hour()[55:], []int{-1, 5, 0, 0, 7})
}

// V4: nobody is told to try what was tried just now.
func TestWhatIsSuggestedWasNotTried(t *testing.T) {
	for lever, other := range map[string]string{"kill": "webhook", "webhook": "kill", "plug": "kill"} {
		b := fullBoard()
		b.Trials = []Trial{{Lever: lever, Done: true}}
		said := leversView{Board: b}.Suggest()
		testkit.That(t, strings.Contains(said, other) && !strings.Contains(said, lever), "after %s: %s", lever, said)
	}
}
