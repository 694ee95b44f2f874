package notify

import (
	"bytes"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/eventyard/eventyard/internal/functions/breaker"

	"github.com/eventyard/eventyard/internal/testkit"
)

// read is a mail as its receiver's program sees it.
type read struct {
	header     mail.Header
	subject    string
	text, html string
}

func readMail(t *testing.T, raw []byte) read {
	t.Helper()
	for _, line := range strings.SplitAfter(string(raw), "\r\n") {
		if len(line) > 998 || strings.Contains(strings.TrimSuffix(line, "\r\n"), "\n") || strings.Contains(strings.TrimSuffix(line, "\r\n"), "\r") {
			t.Errorf("line %.100q is no line of a mail", line)
		}
	}
	m, err := mail.ReadMessage(bytes.NewReader(raw))
	testkit.Must(t, err)
	out := read{header: m.Header}
	out.subject, err = new(mime.WordDecoder).DecodeHeader(m.Header.Get("Subject"))
	testkit.Must(t, err)
	kind, params, err := mime.ParseMediaType(m.Header.Get("Content-Type"))
	testkit.Must(t, err)
	want(t, "type", kind, "multipart/alternative")
	parts := multipart.NewReader(m.Body, params["boundary"])
	for _, wanted := range []struct {
		kind string
		into *string
	}{{"text/plain; charset=utf-8", &out.text}, {"text/html; charset=utf-8", &out.html}} {
		part, err := parts.NextRawPart()
		testkit.Must(t, err)
		want(t, "type of a part", part.Header.Get("Content-Type"), wanted.kind)
		want(t, "encoding", part.Header.Get("Content-Transfer-Encoding"), "quoted-printable")
		body, err := io.ReadAll(quotedprintable.NewReader(part))
		testkit.Must(t, err)
		*wanted.into = strings.ReplaceAll(string(body), "\r\n", "\n")
	}
	testkit.Equal(t, testkit.Err(parts.NextRawPart()), io.EOF, "there is a third part")
	return out
}

// hrefs are the links of an HTML text, and elements how often each stands in it.
func hrefs(t *testing.T, text string) (links []string, elements map[string]int) {
	t.Helper()
	elements = map[string]int{}
	for z := html.NewTokenizer(strings.NewReader(text)); ; {
		switch z.Next() {
		case html.ErrorToken:
			return links, elements
		case html.StartTagToken, html.SelfClosingTagToken:
			token := z.Token()
			elements[token.Data]++
			for _, a := range token.Attr {
				if a.Key == "href" {
					links = append(links, a.Val)
				}
				if strings.HasPrefix(a.Key, "on") {
					t.Errorf("element %s has a script: %s=%q", token.Data, a.Key, a.Val)
				}
			}
		}
	}
}

func testMailer(t *testing.T) *mailer {
	t.Helper()
	m, err := newMailer(SMTP{Addr: "smtp.example.com:587", From: "Der Hof <yard@example.com>"})
	testkit.Must(t, err)
	return m
}

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func aNotice(change ...func(*notice)) notice {
	r := breaker.Record{
		State: breaker.Open, Term: 1, Incident: "i1", Since: noon, Opened: noon, By: "host-1", Reason: "more than 100 failures within 30s", Failures: 101,
		Samples: []breaker.Sample{{At: noon, Partition: "3", Sequence: 1841, Error: "no such image"}},
	}
	n := notice{Kind: kindOpened, Group: resizers, Function: "resize", Incident: "i1", Record: r, Began: r, Lag: 1234,
		Link: yardURL + PathPrefix + "AQZpbWFnZXM_-token", Expires: noon.Add(72 * time.Hour)}
	for _, c := range change {
		c(&n)
	}
	n.Record, n.Began = trimmed(n.Record), trimmed(n.Began) // as a ledger has them
	return n
}

// F6
func TestAMailSaysAllThatPeopleNeed(t *testing.T) {
	n := aNotice()
	raw, err := testMailer(t).compose(n, "boss@example.com", noon)
	testkit.Must(t, err)
	m := readMail(t, raw)
	want(t, "subject", m.subject, "[eventyard] resize has stopped after 101 failures within 30 s")
	want(t, "from", m.header.Get("From"), `"Der Hof" <yard@example.com>`)
	want(t, "to", m.header.Get("To"), "<boss@example.com>")
	want(t, "automatic", m.header.Get("Auto-Submitted"), "auto-generated")
	want(t, "version", m.header.Get("MIME-Version"), "1.0")
	if date, err := m.header.Date(); err != nil || !date.Equal(noon) {
		t.Errorf("date is %v: %v", date, err)
	}
	for part, text := range map[string]string{"text": m.text, "html": m.html} {
		for _, phrase := range []string{
			"resize", "Images", "resizer", "101 failures within 30 s", "1,234 events", "no such image", "partition 3, event 1841", "Nothing is lost", "checkpoint",
			"eventyard circuit close resize", "2026-05-07 12:00:00 UTC", "host-1", n.Link,
		} {
			testkit.That(t, strings.Contains(text, phrase), "%s lacks %q:\n%s", part, phrase, text)
		}
	}
	links, _ := hrefs(t, m.html)
	if len(links) != 1 || links[0] != n.Link || !strings.Contains(m.text, "\n"+n.Link+"\n") {
		t.Errorf("links are %q, in the text:\n%s", links, m.text)
	}
}

func TestMessageIDsStayAndThread(t *testing.T) {
	m := testMailer(t)
	id := func(n notice, to string) read { return readMail(t, must1(m.compose(n, to, time.Now()))) }
	first := id(aNotice(), "boss@example.com")
	again := id(aNotice(func(n *notice) { n.Link, n.Lag = yardURL+PathPrefix+"other", 5 }), "boss@example.com")
	want(t, "a repeat", again.header.Get("Message-Id"), first.header.Get("Message-Id"))
	end := id(aNotice(func(n *notice) { n.Kind, n.Link = kindEnded, "" }), "boss@example.com")
	want(t, "the end belongs to", end.header.Get("In-Reply-To"), first.header.Get("Message-Id"))
	for _, other := range []read{end, id(aNotice(), "ops@example.com"), id(aNotice(func(n *notice) { n.Incident = "i2" }), "boss@example.com")} {
		if other.header.Get("Message-Id") == first.header.Get("Message-Id") {
			t.Errorf("%v has the same id", other.header)
		}
	}
	if !strings.HasSuffix(first.header.Get("Message-Id"), "@example.com>") {
		t.Errorf("id is %s", first.header.Get("Message-Id"))
	}
}

// What functions and whoever writes entries call things must not become headers, elements or links.
func TestEvilTextsStayTexts(t *testing.T) {
	const injected = "x\r\nBcc: all@example.com\r\n\r\n<script>alert(1)</script><a href=\"https://evil.example\">resume</a>"
	evil := func(n *notice) {
		n.Function, n.Group.Group = "f"+injected, "g"+injected
		for _, r := range []*breaker.Record{&n.Record, &n.Began} {
			r.By, r.Reason = "b"+injected, "r"+injected
			r.Samples = []breaker.Sample{{Partition: "p" + injected, Error: "e" + injected + "\x00\xff\u202e" + strings.Repeat("é<", 5000)}}
		}
	}
	for _, k := range []kind{kindOpened, kindHeld, kindEnded} {
		t.Run(string(k), func(t *testing.T) {
			n := aNotice(evil, func(n *notice) { n.Kind = k })
			if k != kindOpened {
				n.Link = ""
			}
			raw, err := testMailer(t).compose(n, "boss@example.com", noon)
			testkit.Must(t, err)
			m := readMail(t, raw)
			if m.header.Get("Bcc") != "" || strings.ContainsAny(m.subject, "\r\n") {
				t.Errorf("headers are %v", m.header)
			}
			links, elements := hrefs(t, m.html)
			if elements["script"] > 0 || len(links) > 1 || len(links) == 1 && links[0] != n.Link {
				t.Errorf("links %q, elements %v", links, elements)
			}
			if !strings.Contains(m.html, "&lt;script&gt;") {
				t.Error("what was said is not shown")
			}
			for _, line := range strings.Split(m.text, "\n") {
				if strings.HasPrefix(line, "Bcc:") || strings.HasPrefix(line, "<") {
					t.Errorf("the text has a line of its own: %q", line)
				}
			}
			testkit.That(t, len(raw) <= 64<<10, "the mail has %d bytes", len(raw))
		})
	}
}

func TestSubjectsInOtherAlphabets(t *testing.T) {
	name := "größe-日本-🌳-" + strings.Repeat("ж", 60)
	raw, err := testMailer(t).compose(aNotice(func(n *notice) { n.Function = name }), "boss@example.com", noon)
	testkit.Must(t, err)
	m := readMail(t, raw)
	testkit.That(t, strings.Contains(m.subject, "größe-日本-🌳-жжж"), "subject is %q", m.subject)
	for line := range strings.SplitSeq(string(raw[:bytes.Index(raw, []byte("\r\n\r\n"))]), "\r\n") {
		if len(line) > 100 || strings.ContainsFunc(line, func(r rune) bool { return r > 126 }) {
			t.Errorf("header line %q", line)
		}
	}
}

// A name that looks like an encoded word is not to be decoded by the receiver's program.
func TestSubjectsAreNotDecodedTwice(t *testing.T) {
	raw, err := testMailer(t).compose(aNotice(func(n *notice) { n.Function = "=?utf-8?q?x=0D=0ABcc:_all@example.com?=" }), "boss@example.com", noon)
	testkit.Must(t, err)
	if m := readMail(t, raw); strings.ContainsAny(m.subject, "\r\n") || !strings.Contains(m.subject, "?utf-8?q?x=0D=0ABcc:_all@example.com?") {
		t.Errorf("subject is %q", m.subject)
	}
}

func TestWhatMailsSayWhenThereIsNoLink(t *testing.T) {
	tests := []struct {
		name          string
		change        func(*notice)
		says, saysNot []string
	}{
		{"people cannot reach the yard", func(n *notice) { n.Link = "" }, []string{"eventyard circuit close resize", "publicUrl", "stays so until somebody resumes"}, []string{"https://"}},
		{"it tries by itself", func(n *notice) { n.Record.Policy.Probe = time.Minute }, []string{"tries one event by itself, first after 1 min"}, []string{"stays so until"}},
		{"an operator holds it", func(n *notice) { n.Kind, n.Link, n.Record.State, n.Record.By = kindHeld, "", breaker.Held, "Bob" },
			[]string{"resize was stopped by Bob", "eventyard circuit close resize", "Nothing is lost"}, []string{"https://", "publicUrl"}},
		{"it was resumed", func(n *notice) {
			n.Kind, n.Link = kindEnded, ""
			n.Record = breaker.Record{State: breaker.Closed, Term: 2, Since: noon.Add(90 * time.Minute), By: "Ada"}
		}, []string{"resize was resumed by Ada, after 1 h 30 min", "101 failures", "no such image", "Nothing was lost"}, []string{"https://", "circuit close"}},
		{"nobody knows how it ended", func(n *notice) { n.Kind, n.Link, n.Record = kindEnded, "", breaker.Record{State: breaker.Closed} },
			[]string{"resize was resumed meanwhile"}, []string{"https://", "circuit close"}},
		{"it went with its function", func(n *notice) {
			n.Kind, n.Link, n.Gone, n.Record = kindEnded, "", true, breaker.Record{State: breaker.Closed}
		},
			[]string{"resize was removed while it was stopped"}, []string{"https://", "circuit close", "handled again"}},
		{"the lag is not known", func(n *notice) { n.Lag = -1 }, nil, []string{"Waiting"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			m := readMail(t, must1(testMailer(t).compose(aNotice(test.change), "boss@example.com", noon)))
			for part, text := range map[string]string{"text": m.text, "html": m.html} {
				for _, phrase := range test.says {
					testkit.That(t, strings.Contains(text, phrase), "%s lacks %q:\n%s", part, phrase, text)
				}
				for _, phrase := range test.saysNot {
					testkit.That(t, !strings.Contains(text, phrase), "%s has %q:\n%s", part, phrase, text)
				}
			}
		})
	}
}

func TestWords(t *testing.T) {
	for got, wanted := range map[string]string{
		span(30 * time.Second): "30 s", span(90 * time.Second): "1 min 30 s", span(time.Hour): "1 h", span(26*time.Hour + 5*time.Minute): "1 d 2 h", span(24*time.Hour + time.Minute): "1 d",
		span(250 * time.Millisecond): "250ms", events(1): "1 event", events(0): "0 events", events(1234567): "1,234,567 events", grouped(-1000): "-1,000", grouped(-100): "-100",
		shellWord("resize-1.x"): "resize-1.x", shellWord("a'b"): `'a'\''b'`, shellWord("-rf"): "'-rf'", shellWord("$x"): "'$x'", shellWord(""): "''",
		oneLine("  a\nb ", 99): `a\nb`, oneLine(strings.Repeat("é", 10), 9): "ééé…", oneLine(`say "x"`+"\t", 99): `say "x"`,
		fmt.Sprint(len(oneLine(strings.Repeat("\x00", 1000), 50)) <= 50): "true",
	} {
		want(t, "words", got, wanted)
	}
}
