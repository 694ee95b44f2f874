package tracing_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/tracing"
)

const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// V6: what W3C Trace Context allows is read, and written as it was.
func TestATraceParentIsReadAndWritten(t *testing.T) {
	c := tracing.Parse(parent, "rojo=1,congo=2")
	testkit.That(t, c.Valid() && c.Sampled(), "read %+v", c)
	testkit.Equal(t, c.TraceParent(), parent)
	testkit.Equal(t, c.Trace(), "4bf92f3577b34da6a3ce929d0e0e4736")
	testkit.Equal(t, c.State, "rojo=1,congo=2")
	later := tracing.Parse("cc"+parent[2:53]+"09-what-the-future-will-be-like", "")
	testkit.Equal(t, later.TraceParent(), parent, "of a later version what is known is kept, in ours")
	testkit.That(t, !tracing.Parse(parent[:53]+"00", "").Sampled(), "it is not sampled")
}

// V6: what strangers send is no reason for an error, and never half a trace.
func TestWhatIsNoTraceParentIsNone(t *testing.T) {
	zeros := strings.Repeat("0", 32)
	for name, text := range map[string]string{
		"nothing": "", "a word": "hello", "too short": parent[:54], "too long for its version": parent + "-more",
		"more without a dash, of a later version": "01" + parent[2:] + "more", "upper case": strings.ToUpper(parent),
		"no such version": "ff" + parent[2:], "no hexadecimal": "00-zz" + parent[5:], "no trace": "00-" + zeros + parent[35:],
		"no span": parent[:36] + zeros[:16] + parent[52:], "other dashes": strings.ReplaceAll(parent, "-", "_"),
		"spaces around it": " " + parent, "half a flag": parent[:54] + "-",
	} {
		c := tracing.Parse(text, "a=b")
		testkit.That(t, c == tracing.Context{}, "%s: read %+v", name, c)
		testkit.Equal(t, c.TraceParent()+c.Trace(), "", "%s", name)
	}
}

// What cannot be a tracestate goes, and the trace stays.
func TestABadStateIsLeftOut(t *testing.T) {
	for _, state := range []string{strings.Repeat("x", 513), "a=\r\nb", "a=\u00e4"} {
		c := tracing.Parse(parent, state)
		testkit.That(t, c.Valid() && c.State == "", "of %q it keeps %+v", state, c)
	}
}

func TestHeaders(t *testing.T) {
	h := http.Header{}
	want := tracing.Parse(parent, "a=1,b=2")
	want.SetHeader(h)
	testkit.Equal(t, tracing.OfHeader(h), want)
	testkit.Equal(t, tracing.OfHeader(http.Header{"Traceparent": {parent}, "Tracestate": {"a=1", "b=2"}}), want)
	testkit.Equal(t, tracing.OfHeader(http.Header{"Traceparent": {parent, parent}}), tracing.Context{}, "of two")
	tracing.Context{}.SetHeader(h)
	testkit.Equal(t, tracing.OfHeader(h), want, "none changes nothing")
	tracing.Parse(parent, "").SetHeader(h)
	testkit.Equal(t, tracing.OfHeader(h), tracing.Parse(parent, ""), "the state of another trace is not kept")
}

func TestProperties(t *testing.T) {
	want := tracing.Parse(parent, "a=1")
	for name, properties := range map[string]map[string]any{
		"as W3C has it":            {"traceparent": parent, "tracestate": "a=1"},
		"as older SDKs have it":    {"Diagnostic-Id": parent, "tracestate": "a=1"},
		"of a CloudEvent":          {"cloudEvents:traceparent": parent, "cloudEvents:tracestate": "a=1"},
		"of one without colons":    {"cloudEvents_traceparent": parent, "cloudEvents_tracestate": "a=1"},
		"of a Kafka client":        {"traceparent": []byte(parent), "tracestate": []byte("a=1")},
		"beside something useless": {"traceparent": 7, "Diagnostic-Id": parent, "tracestate": "a=1"},
	} {
		testkit.Equal(t, tracing.OfProperties(properties), want, "%s", name)
		testkit.That(t, tracing.InProperties(properties), "%s: it is not seen", name)
	}
	testkit.Equal(t, tracing.OfProperties(map[string]any{"traceparent": "rubbish"}), tracing.Context{})
	testkit.That(t, tracing.InProperties(map[string]any{"traceparent": nil}), "what is there is not written over")
	testkit.That(t, !tracing.InProperties(nil) && !tracing.OfProperties(nil).Valid(), "nothing says nothing")
	testkit.Equal(t, tracing.OfProperties(want.SetProperties(nil)), want)
	testkit.That(t, tracing.Context{}.SetProperties(nil) == nil, "none makes no map")
}

func TestContextsCarryIt(t *testing.T) {
	c := tracing.Parse(parent, "")
	testkit.Equal(t, tracing.Of(tracing.With(t.Context(), c)), c)
	testkit.Equal(t, tracing.Of(t.Context()), tracing.Context{})
	testkit.That(t, tracing.With(t.Context(), tracing.Context{}) == t.Context(), "none makes no context")
}

func BenchmarkParse(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		tracing.Parse(parent, "")
	}
}

// V6: whatever is read can be written, and is read again as it was.
func FuzzParse(f *testing.F) {
	f.Add(parent, "a=1")
	f.Add("cc"+parent[2:]+"-x", "")
	f.Add("", "\x00")
	f.Fuzz(func(t *testing.T, text, state string) {
		c := tracing.Parse(text, state)
		if !c.Valid() {
			testkit.That(t, c == tracing.Context{}, "half a trace: %+v", c)
			return
		}
		again := tracing.Parse(c.TraceParent(), c.State)
		testkit.Equal(t, again, c, "from %q", text)
		testkit.That(t, len(text) >= 55 && text[3:52] == c.TraceParent()[3:52], "%q became %s", text, c.TraceParent())
	})
}
