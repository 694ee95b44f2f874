package location

import (
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// R5: what is shown of a location lets nobody in.
func TestShown(t *testing.T) {
	for text, want := range map[string]string{
		"data":                   "data",
		"disk":                   "disk",
		"disk://data":            "disk://data",
		"nats://a":               "nats://a",
		"tls://a:1,[::1]:2,b/":   "tls://a:1,[::1]:2,b/",
		"nats://u:secret@a":      "nats://a",
		"nats://secret@a,b":      "nats://a,b",
		"nats://u:s:e/c@ret@a:1": "nats://a:1",
		"nats://a?yard=shop&replicas=5&streambytes=5&ca=/x": "nats://a?yard=shop&replicas=5&streambytes=5&ca=/x",
		"nats://a?system=admin:secret":                      "nats://a",
		"nats://a?yard=y&system=admin:secret&replicas=1":    "nats://a?yard=y&replicas=1",
		"nats://a?systemcreds=/etc/system.creds":            "nats://a?systemcreds=/etc/system.creds",
		"nats://a?monitor=http://a:8222":                    "nats://a?monitor=http://a:8222",
		"nats://a?monitor=http://me:secret@a:8222":          "nats://a?monitor=http://a:8222",
		"nats://a?monitor=http%3A%2F%2Fme%3Asecret%40a":     "nats://a?monitor=http://a",
		"nats://a?monitor=me:secret@a":                      "nats://a?monitor=…",
		"nats://u:secret?x=1@a":                             "nats://…",
		"nats://u:se?yard=cret@a":                           "nats://…",
		"nats://secret?yard=x@a":                            "nats://…",
		"nats://a?sytem=admin:secret":                       "nats://…",
		"NATS://u:secret@a":                                 "NATS://a",
		"kafka://a?password=secret":                         "kafka://…",
	} {
		got := Shown(text)
		testkit.Equal(t, got, want, text)
		testkit.That(t, !strings.Contains(got, "secret"), "of %q it shows %q", text, got)
	}
}
