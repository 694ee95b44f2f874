package schema

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/eventyard/eventyard/internal/testkit"
)

// G12: clients write times in many ways, all of which Event Grid takes.
func TestDateTimes(t *testing.T) {
	for _, c := range []struct {
		text, want string // want empty: it is none
		strict     bool
	}{
		{"2017-08-10T21:03:07Z", "2017-08-10T21:03:07Z", true},
		{"2017-08-10t21:03:07.1234567z", "2017-08-10T21:03:07.1234567Z", true},
		{"2017-08-10T21:03:07+00:00", "2017-08-10T21:03:07+00:00", true},
		{"2017-08-10T21:03:07.123456789-05:30", "2017-08-10T21:03:07.123456789-05:30", true},
		{"2020-02-29T00:00:00Z", "2020-02-29T00:00:00Z", true},
		{"2017-08-10T21:03:07+0000", "2017-08-10T21:03:07+00:00", false}, // date +%Y-%m-%dT%H:%M:%S%z
		{"2017-08-10T21:03:07-05", "2017-08-10T21:03:07-05:00", false},   // Get-Date -UFormat
		{"2017-08-10T21:03:07", "2017-08-10T21:03:07Z", false},
		{"2017-08-10 21:03:07.5", "2017-08-10T21:03:07.5Z", false},
		{"2017-08-10T21:03Z", "2017-08-10T21:03:00Z", false},
		{"", "", false}, {"yesterday", "", false}, {"2017-08-10", "", false}, {"2017-13-10T21:03:07Z", "", false}, {"2017-02-29T21:03:07Z", "", false},
		{"2017-00-10T21:03:07Z", "", false}, {"2017-01-00T21:03:07Z", "", false}, {"2017-08-10T24:03:07Z", "", false}, {"2017-08-10T21:60:07Z", "", false},
		{"2017-08-10T21:03:60Z", "", false}, {"2017-08-10T21:03:07.Z", "", false}, {"2017-08-10T21:03:7Z", "", false}, {"2017-08-10T21:03:07X", "", false},
		{"2017-08-10T21:03:07+24:00", "", false}, {"2017-08-10T21:03:07+1:00", "", false}, {"2017-08-10T21:03:07ZZ", "", false}, {"2017-08-10T21:03:07+00:00 ", "", false},
		{"2017-08-10T21:03:", "", false}, {"2017-08-10T21:03:07Z\n", "", false}, {"2017/08/10T21:03:07Z", "", false}, {"8/10/2017 9:03:07 PM", "", false}, {"+017-08-10T21:03:07Z", "", false},
	} {
		t.Run(c.text, func(t *testing.T) {
			s, ok := parseStamp([]byte(c.text))
			if ok != (c.want != "") {
				t.Errorf("%q: is a date-time: %t", c.text, ok)
				return
			}
			if !ok {
				return
			}
			got := string(s.append(nil))
			testkit.Slices(t, []any{got, s.strict}, []any{c.want, c.strict}, "%q is written", c.text)
			testkit.Check(t, testkit.Err(time.Parse(time.RFC3339Nano, got)), "%q is written %q", c.text, got)
		})
	}
}

func TestTimesThatGoWritesAreStrict(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		zone := time.FixedZone("", 60*rapid.IntRange(-23*60, 23*60).Draw(t, "zone"))
		at := time.Unix(rapid.Int64Range(0, 4e9).Draw(t, "second"), rapid.Int64Range(0, 1e9-1).Draw(t, "nano")).In(zone)
		text := at.Format(time.RFC3339Nano)
		if s, ok := parseStamp([]byte(text)); !ok || !s.strict || string(s.append(nil)) != text {
			t.Fatalf("%s: %v, strict %t, %s", text, ok, s.strict, s.append(nil))
		}
	})
}
