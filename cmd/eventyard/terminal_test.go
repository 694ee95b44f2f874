package main

import (
	"context"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/eventyard/eventyard/internal/testkit"
)

func TestProgressIsForLongJobsAtATerminal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b strings.Builder
		p := newProgress(&b)
		p.on = true
		shown := 0
		for range 300 { // three seconds
			time.Sleep(10 * time.Millisecond)
			p.show(func() string { shown++; return "working" })
		}
		if shown < 9 || shown > 11 { // two of the seconds, five times each
			t.Errorf("shown %d times", shown)
		}
		p.clear()
		if !strings.HasPrefix(b.String(), "\r\x1b[Kworking") || !strings.HasSuffix(b.String(), "\r\x1b[K") {
			t.Errorf("written: %q", b.String())
		}
	})
}

func TestNothingIsShownWhereNobodySees(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b strings.Builder
		p := newProgress(&b)
		time.Sleep(time.Hour)
		p.show(func() string { return "working" })
		p.clear()
		testkit.Equal(t, b.Len(), 0, "written: %q", b.String())
		testkit.Equal(t, newPaint(&b).red("x"), "x", "written: %q", b.String())
	})
}

// C7: a job that may take hours writes lines where there is no terminal.
func TestALongJobSaysHowFarItIs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b strings.Builder
		p := newLongProgress(&b)
		for range 250 { // twenty-five seconds
			time.Sleep(100 * time.Millisecond)
			p.show(func() string { return "working" })
		}
		p.clear()
		testkit.Equal(t, b.String(), "working\nworking\n", "written")
	})
}

func TestColours(t *testing.T) {
	p := paint{on: true}
	testkit.Equal(t, p.red("a")+p.green("b")+p.yellow("c"), "\x1b[31ma\x1b[0m\x1b[32mb\x1b[0m\x1b[33mc\x1b[0m", "painted")
}

// V7: heads and states have colours at a terminal, and what is lined up stays so.
func TestTablesHaveColours(t *testing.T) {
	text := "NAME      STATE    ENDPOINT\nfailed x  pending  healthy\n"
	testkit.Equal(t, paint{}.table(text), text)
	testkit.Equal(t, paint{on: true}.table(text),
		"\x1b[1mNAME      STATE    ENDPOINT\x1b[0m\nfailed x  \x1b[33mpending\x1b[0m  \x1b[32mhealthy\x1b[0m\n")
}

// What stands where in an event is said first where somebody looks, and properties where they are asked for.
func TestEventsWithAHeadAndProperties(t *testing.T) {
	events := func(yield func(json.RawMessage, error) bool) {
		yield(json.RawMessage(`{"partition":"0","sequence":7,"enqueued":"now","body":"b","properties":{"colour":"blue"}}`), nil)
	}
	for want, form := range map[string]eventForm{
		"0/7  now  -  b\n":                                        {output: asText},
		"0/7  now  -  b  {\"colour\":\"blue\"}\n":                 {output: asText, properties: true},
		"PARTITION/NUMBER  ENQUEUED  KEY  BODY\n0/7  now  -  b\n": {output: asText, head: true},
	} {
		var out strings.Builder
		testkit.Must(t, (&cli{stdout: &out}).printEvents(events, false, form))
		testkit.Equal(t, out.String(), want)
	}
}

func TestAQuestionCanBeInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	never, end := io.Pipe()
	defer end.Close()
	testkit.ErrorIs(t, testkit.Err(ask(ctx, never)), errInterrupted)
}
