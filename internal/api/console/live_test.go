package console

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/testkit"
)

// listener is a browser with a stream open.
type listener struct {
	*httptest.ResponseRecorder
	mu   sync.Mutex
	text strings.Builder // guarded by mu
}

func (l *listener) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *listener) Flush() {}

// take gives what came since it was last called.
func (l *listener) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	text := l.text.String()
	l.text.Reset()
	return text
}

// beat is what a stream says that has nothing else to say.
const beat = "event: beat\ndata: null\n\n"

// P6, V4: a page hears of the new owner of a partition, of a figure that changed by its cell alone, and
// of nothing while nothing changes; a change of state is said once.
func TestAPageHearsWhatChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := fixed()
		c, _, h := newFixture(answers)
		c.now = func() time.Time { return noon }
		owned := make(chan admin.Ownership, 1)
		owned <- fixedOwnership()
		path := "GET /api/v1/hubs/{hub}/groups/{group}/ownership"
		answers[path] = latest{owned}
		ctx, cancel := context.WithCancel(t.Context())
		l := &listener{ResponseRecorder: httptest.NewRecorder()}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			h.ServeHTTP(l, httptest.NewRequestWithContext(ctx, http.MethodGet, livePath+"?at="+base+"hubs/sensors/groups/aggregator", nil))
		}()
		wait := func() string {
			time.Sleep(3 * time.Second)
			synctest.Wait()
			return strings.ReplaceAll(l.take(), beat, "")
		}
		change := func(how func(*admin.Ownership)) {
			o := <-owned
			how(&o)
			owned <- o
		}
		first := wait()
		for _, part := range []string{"part-head", "part-figures", "part-lanes", "part-rows", "part-yard"} { // the last of which is empty
			testkit.That(t, strings.Contains(first, `"id":"`+part+`"`), "the first frame has no %s", part)
		}
		testkit.Equal(t, wait(), "", "while nothing changes")
		change(func(o *admin.Ownership) { o.LagEvents = 1300 })
		testkit.Equal(t, wait(), "event: cells\ndata: {\"fig-lag\":\"1,300\"}\n\n", "when a figure changes")
		change(func(o *admin.Ownership) {
			o.Partitions = append([]admin.OwnedPartition(nil), o.Partitions...)
			o.Partitions[0].Owner, o.Partitions[0].Next = "consumer-2", ""
			o.Partitions[2].Owner, o.Partitions[2].Alive = "consumer-1", true
		})
		moved := wait() + wait()
		testkit.That(t, strings.Contains(moved, `"id":"part-lanes"`), "the lanes are not sent: %s", moved)
		testkit.Equal(t, strings.Count(moved, "event: say"), 1, "sentences in %s", moved)
		cancel()
		<-ended
	})
}

// V4: a stream of which nothing is to be said says every five seconds that it is there, also on a page that is
// looked at less often, so that a browser knows one whose cable was cut.
func TestASilentStreamBeats(t *testing.T) {
	for _, path := range []string{base + "hubs/sensors", base + "events%3Fid=a1%26in=topics/alarms"} {
		synctest.Test(t, func(t *testing.T) {
			c, _, h := newFixture(fixed())
			c.now = func() time.Time { return noon }
			ctx, cancel := context.WithCancel(t.Context())
			l := &listener{ResponseRecorder: httptest.NewRecorder()}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				h.ServeHTTP(l, httptest.NewRequestWithContext(ctx, http.MethodGet, livePath+"?at="+path, nil))
			}()
			wait := func(d time.Duration) string { time.Sleep(d); synctest.Wait(); return l.take() }
			wait(4 * time.Second)
			for range 5 {
				testkit.Equal(t, wait(5*time.Second), beat, path)
			}
			cancel()
			<-ended
		})
	}
}

// V4: a state is said once it stands, and what it was on the way is not said; nor is that it is as before.
func TestAStateIsSaidOnceItStands(t *testing.T) {
	l := &listener{ResponseRecorder: httptest.NewRecorder()}
	s := newStream(&visit{w: l})
	var said []string
	for at, state := range strings.Fields("three three two-free two-moving two two two two two two-moving two two two two") {
		s.say(state, noon.Add(time.Duration(at)*time.Second))
		if text := l.take(); text != "" {
			said = append(said, strconv.Itoa(at)+" "+text)
		}
	}
	testkit.Equal(t, strings.Join(said, ""), "7 event: say\ndata: \"two\"\n\n")
}

// V4: what stays as it is is said no second time, however its figures go on.
func TestFiguresAreNotReadOut(t *testing.T) {
	for _, path := range []string{base, base + "topics/alarms/subscriptions/company", base + "functions/score"} {
		synctest.Test(t, func(t *testing.T) {
			c, _, h := newFixture(fixed())
			began := time.Now()
			c.now = func() time.Time { return noon.Add(time.Since(began)) }
			ctx, cancel := context.WithCancel(t.Context())
			l := &listener{ResponseRecorder: httptest.NewRecorder()}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				h.ServeHTTP(l, httptest.NewRequestWithContext(ctx, http.MethodGet, livePath+"?at="+path, nil))
			}()
			time.Sleep(3 * time.Second)
			synctest.Wait()
			l.take()
			time.Sleep(3 * time.Second)
			synctest.Wait()
			went := l.take()
			testkit.That(t, strings.Contains(went, "event: cells"), "%s: no figure has changed", path)
			testkit.That(t, !strings.Contains(went, "event: say"), "%s: said %s", path, went)
			cancel()
			<-ended
		})
	}
}

// V4: all who look at a page with the same rights share one asking of the API, and each hears all of it;
// who comes with other rights, or by another address, has one of their own.
func TestWhoLooksAtTheSamePageSharesOneAsking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, api, h := newFixture(fixed())
		ctx, cancel := context.WithCancel(t.Context())
		var streams sync.WaitGroup
		browsers := make([]*listener, 10)
		for i := range browsers {
			browsers[i] = &listener{ResponseRecorder: httptest.NewRecorder()}
			streams.Go(func() {
				h.ServeHTTP(browsers[i], httptest.NewRequestWithContext(ctx, http.MethodGet, livePath+"?at="+base+"hubs/sensors", nil))
			})
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		api.mu.Lock()
		asked := 0
		for _, call := range api.calls {
			if call == "GET /api/v1/hubs/sensors" {
				asked++
			}
		}
		api.mu.Unlock()
		testkit.That(t, asked >= 8 && asked <= 15, "asked %d times in 10 s", asked)
		for _, b := range browsers {
			testkit.That(t, strings.Contains(b.take(), `"id":"part-rows"`), "a browser has heard nothing")
		}
		cancel()
		streams.Wait()
		testkit.Equal(t, len(c.sights.open), 0, "sights that are left")
	})
	s := newSights()
	visitOf := func(holder, host string, rights auth.Rights) *visit {
		r := httptest.NewRequest(http.MethodGet, base+"hubs", nil)
		r.Host = host
		return &visit{r: r, who: identity{Grant: auth.Grant{Holder: holder, Scopes: []auth.Scope{{Rights: rights}}}}}
	}
	for _, v := range []*visit{visitOf("a", "here", auth.Manage), visitOf("b", "here", auth.Manage), visitOf("a", "there", auth.Manage), visitOf("a", "here", auth.Listen), visitOf("a", "here", auth.Manage)} {
		s.join(&hubsPage, v)
	}
	testkit.Equal(t, len(s.open), 4, "sights")
}

// An answer that is good for a while is asked for once, and forgotten afterwards; on a page that is not live
// nothing is remembered.
func TestAnswersAreRememberedForAWhile(t *testing.T) {
	asked := 0
	ask := func() (int, error) { asked++; return asked, nil }
	v := &visit{now: noon}
	for range 2 {
		testkit.Must(t, testkit.Err(remembered(v, "a", time.Minute, ask)))
	}
	testkit.Equal(t, asked, 2, "asked by a page that is not live")
	v.sight = &sight{}
	for _, want := range []int{3, 3} {
		testkit.Equal(t, testkit.Value(remembered(v, "a", time.Minute, ask))(t), want)
	}
	v.now = noon.Add(time.Minute)
	testkit.Equal(t, testkit.Value(remembered(v, "b", time.Minute, ask))(t), 4)
	testkit.Equal(t, len(v.sight.kept.all), 1, "answers that are kept")
}

// V4: what is long comes in pieces, none of which is longer than 32 KiB, and makes the whole.
func TestWhatIsLongComesInPieces(t *testing.T) {
	l := &listener{ResponseRecorder: httptest.NewRecorder()}
	s := newStream(&visit{w: l})
	html := strings.Repeat("a long row – ", 10_000)
	s.part("part-rows", html)
	cells := map[string]string{}
	for i := range 4000 {
		cells["p"+strconv.Itoa(i)] = "some text"
	}
	s.several("cells", cells)
	whole, found := "", map[string]string{}
	for event := range strings.SplitSeq(strings.TrimSpace(l.take()), "\n\n") {
		testkit.That(t, len(event) <= 32<<10, "an event has %d bytes", len(event))
		name, data, _ := strings.Cut(event, "\ndata: ")
		if name == "event: part" {
			var piece struct {
				HTML string
				More bool
			}
			testkit.Must(t, json.Unmarshal([]byte(data), &piece))
			whole += piece.HTML
			testkit.Equal(t, piece.More, len(whole) < len(html))
			continue
		}
		testkit.Must(t, json.Unmarshal([]byte(data), &found))
	}
	testkit.That(t, whole == html, "the pieces are not the whole")
	testkit.Equal(t, len(found), len(cells))
}

// V4: of a chart whose figures go on a browser is sent the points alone.
func TestAChartGoesOnByItsPoints(t *testing.T) {
	c, _, _ := newFixture(nil)
	show := func(value float64, now time.Time) *snapshot {
		series := fixedSeries("published", "events/s", 6667)
		*series.Values[899] = value
		view := hubView{Chart: windows[0].chart(plot{id: "flow", title: "Events", box: wholeBox}, []admin.Series{series}, now)}
		return testkit.Value(c.pages["hub"].snapshot(&screen{View: view}))(t)
	}
	l := &listener{ResponseRecorder: httptest.NewRecorder()}
	s := newStream(&visit{w: l})
	testkit.Must(t, s.send(show(6667, noon)))
	testkit.That(t, strings.Contains(l.take(), `"id":"part-chart"`), "the chart is not sent")
	testkit.Must(t, s.send(show(6700, noon)))
	sent := l.take()
	testkit.That(t, strings.Contains(sent, `"flow-published":[1769860795,6674,null]`) && !strings.Contains(sent, "event: part"), "sent: %s", sent)
	testkit.Must(t, s.send(show(6700, noon)))
	testkit.Equal(t, l.take(), "", "while nothing changes")
}

// latest is an answer that is read each time.
type latest struct{ of chan admin.Ownership }

func (l latest) MarshalJSON() ([]byte, error) {
	o := <-l.of
	defer func() { l.of <- o }()
	return json.Marshal(o)
}

// V4: a stream says why it ends: what it is about is gone, or there are too many.
func TestAStreamSaysWhyItEnds(t *testing.T) {
	c, _, h := newFixture(fixed())
	stream := func(at string) string { return get(h, livePath+"?at="+at).Body.String() }
	_, _, gone := newFixture(nil)
	testkit.That(t, strings.Contains(get(gone, livePath+"?at="+base+"hubs/sensors").Body.String(), `"reason":"gone"`), "a hub that is gone")
	var giveBack []func()
	for range maxStreamsOfOne {
		back, err := c.streams.Take("RootManageSharedAccessKey", 1)
		testkit.Must(t, err)
		giveBack = append(giveBack, back)
	}
	testkit.That(t, strings.Contains(stream(base+"hubs"), `"reason":"full"`), "a stream too many")
	for _, back := range giveBack {
		back()
	}
	for _, at := range []string{"", "//elsewhere.example/console/hubs", "https://elsewhere.example/console/", "/api/v1/hubs", base + "nothing", base + "new/hub", base + "live"} {
		testkit.Equal(t, get(h, livePath+"?at="+at).Code, http.StatusNotFound, "a stream about %q", at)
	}
}

// What others have made is as it was taken, and its licence is beside it.
func TestVendoredFilesAreAsTheyCame(t *testing.T) {
	page, err := os.ReadFile("assets/VENDORED.md")
	testkit.Must(t, err)
	rows := regexp.MustCompile(`(?m)^\| (\S+) \|.*\| ([0-9a-f]{64}) \|$`).FindAllStringSubmatch(string(page), -1)
	testkit.Equal(t, len(rows), 2, "files")
	for _, row := range rows {
		text, err := os.ReadFile("assets/" + row[1])
		testkit.Must(t, err)
		sum := sha256.Sum256(text)
		testkit.Equal(t, hex.EncodeToString(sum[:]), row[2], row[1])
	}
}

// V3: assets are kept for ever under their hash, and no other file is served.
func TestAssets(t *testing.T) {
	c, _, h := newFixture(nil)
	w := get(h, c.assets.path+"/console.css")
	testkit.Equal(t, w.Code, http.StatusOK)
	testkit.That(t, strings.Contains(w.Header().Get("Cache-Control"), "immutable"), "it is not kept")
	testkit.That(t, !strings.Contains(get(h, base+"assets/old/console.css").Header().Get("Cache-Control"), "immutable"), "another version is kept")
	testkit.Equal(t, get(h, c.assets.path+"/VENDORED.md").Code, http.StatusNotFound)
	testkit.Equal(t, get(h, c.assets.path+"/..%2fconsole.go").Code, http.StatusNotFound)
}
