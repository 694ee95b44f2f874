package schema

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/testkit"
)

// jsonSeeds are JSON and what is nearly JSON.
var jsonSeeds = []string{
	`null`, `true`, `false`, `0`, `-0`, `12.5e+10`, `1E9`, `""`, `"a"`, `[]`, `{}`, `[1,2,[3,{}]]`, ` { "a" : [ true , null ] } `,
	`"\u00e9\n\"\\\/"`, `"é😀"`, `"\ud83d\ude00"`, `"\ud800"`, `{"a":1,"a":2}`, "[\n1\t,\r2]",
	``, ` `, `nul`, `nulll`, `True`, `01`, `-`, `1.`, `.5`, `1e`, `+1`, `0x1`, `NaN`, `'a'`, `"a`, `"\x"`, `"\u12g4"`, `"\u12`, "\"\t\"", "\"\x00\"", "\"\xff\"",
	"\"\xed\xa0\x80\"", `[1,]`, `[,1]`, `[1 2]`, `[`, `]`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{,}`, `{a:1}`, `{"a":1 "b":2}`, `{`, `{"a":1]`, `[1}`, `1 2`, `[1]]`,
	"\ufeff1", `"a long string of text, longer than eight bytes"`, `"a long string that has its \" escape late"`, "\"a long string with a late control \x1f\"",
	`"exactly8"`, `"seven77"`, `"nine99999"`, "\"ends with high bit: \x80\"", "\"\x7f is fine\"",
}

// isValid is what the standard library says, and that text is text.
func isValid(b []byte) bool { return json.Valid(b) && utf8.Valid(b) }

func TestTheReaderAgreesWithTheStandardLibrary(t *testing.T) {
	for _, seed := range jsonSeeds {
		if _, err := validJSON([]byte(seed)); (err == nil) != isValid([]byte(seed)) {
			t.Errorf("%q: %v", seed, err)
		}
	}
}

func FuzzReader(f *testing.F) {
	for _, seed := range jsonSeeds {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		raw, err := validJSON(b)
		if deep := strings.Count(string(b), "[")+strings.Count(string(b), "{") >= maxDepth; (err == nil) != isValid(b) && !deep {
			t.Fatalf("%q: %v", b, err)
		}
		var syntax *syntaxError
		if err != nil {
			if !errors.As(err, &syntax) || syntax.at < 0 || syntax.at > len(b) {
				t.Fatalf("%q: %v has no place", b, err)
			}
			return
		}
		testkit.MustEqual(t, string(raw), strings.Trim(string(b), " \t\r\n"), "%q: the value is %q", b, raw)
		if isText(raw) {
			checkText(t, raw)
		}
	})
}

// checkText holds our reading and writing of a string against the standard library's.
func checkText(t testing.TB, raw []byte) {
	t.Helper()
	var want string
	testkit.Must(t, json.Unmarshal(raw, &want), "%s", raw)
	got := string(textOf(raw))
	testkit.MustEqual(t, got, want, "%s", raw)
	var again string
	if err := json.Unmarshal(appendQuoted(nil, got), &again); err != nil || again != want {
		t.Fatalf("%q was written as %s: %q, %v", got, appendQuoted(nil, got), again, err)
	}
}

func TestStringsComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := rapid.String().Draw(t, "text")
		raw := testkit.Value(json.Marshal(want))(t)
		testkit.MustEqual(t, string(textOf(raw)), want, "%s", raw)
		testkit.MustEqual(t, string(textOf(appendQuoted(nil, want))), want, "%q comes back as", want)
	})
}

// Of what is no JSON something is made, and nothing panics.
func TestEscapesThatAreNone(t *testing.T) {
	for raw, want := range map[string]string{`a\`: `a\`, `\u12`: "\ufffd12", `\x\"`: `x"`, `\ud800\u0041`: "\ufffdA", `\ud800`: "\ufffd"} {
		testkit.Equal(t, string(AppendUnescaped([]byte("!"), []byte(raw))), "!"+want, "%s", raw)
	}
}

func TestTextThatIsNoUTF8IsWrittenAllTheSame(t *testing.T) {
	if got := string(appendQuoted(nil, "a\xff\"\x01é\xe2\x82")); got != "\"a\ufffd\\\"\\u0001é\ufffd\ufffd\"" {
		t.Errorf("written as %s", got)
	}
}

func TestNestingIsBounded(t *testing.T) {
	deep := func(n int) []byte { return []byte(strings.Repeat("[", n) + strings.Repeat("]", n)) }
	testkit.Check(t, testkit.Err(validJSON(deep(maxDepth-1))), "as deep as may be")
	for _, b := range [][]byte{deep(maxDepth), []byte(strings.Repeat("[", 1<<20)), []byte(strings.Repeat(`{"a":`, 1<<18))} {
		if _, err := validJSON(b); err == nil || !strings.Contains(err.Error(), "levels deep") {
			t.Errorf("%d bytes: %v", len(b), err)
		}
	}
}

func TestErrorsHoldTheByteTheyAreAt(t *testing.T) {
	for body, at := range map[string]int{`[1,2 3]`: 5, `{"a":tru}`: 5, `"abc`: 4, "[\"a\xff\"]": 3, `[1] 2`: 4, ``: 0, `{"a":"\q"}`: 6} {
		t.Run(body, func(t *testing.T) {
			_, err := validJSON([]byte(body))
			var syntax *syntaxError
			if !errors.As(err, &syntax) || syntax.at != at {
				t.Errorf("%q: %v, want byte %d", body, err, at)
			}
		})
	}
}
