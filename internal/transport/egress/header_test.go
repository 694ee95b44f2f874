package egress

import (
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

func TestWhichHeadersMayBeSent(t *testing.T) {
	for name, x := range map[string]struct {
		name, value string
		want        bool
	}{
		"a plain one":                {"X-Env", "prod", true},
		"an empty value":             {"X-Env", "", true},
		"text of another alphabet":   {"X-Env", "größe", true},
		"a tab":                      {"X-Env", "a\tb", true},
		"a line break":               {"X-Env", "a\r\nX-Other: b", false},
		"a lone line feed":           {"X-Env", "a\nb", false},
		"a zero":                     {"X-Env", "a\x00b", false},
		"a name with a line break":   {"X-Env\r\nX", "a", false},
		"a name with a blank":        {"X Env", "a", false},
		"no name":                    {"", "a", false},
		"a colon in the name":        {"X:Env", "a", false},
		"the length":                 {"content-length", "0", false},
		"another way to tell length": {"Transfer-encoding", "chunked", false},
		"the host":                   {"HOST", "other", false},
		"the connection":             {"Connection", "X-Env", false},
	} {
		t.Run(name, func(t *testing.T) {
			testkit.Equal(t, Sendable(x.name, x.value), x.want, "%q: %q", x.name, x.value)
		})
	}
}
