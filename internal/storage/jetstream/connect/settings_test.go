package connect

import (
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

func TestParse(t *testing.T) {
	usual := func(change func(*Settings)) Settings {
		s := Settings{Servers: []string{"a:4222"}, Yard: DefaultYard, Replicas: DefaultReplicas}
		change(&s)
		return s
	}
	for text, want := range map[string]Settings{
		"nats://a":                                        usual(func(*Settings) {}),
		"nats://a:4222/":                                  usual(func(*Settings) {}),
		"nats://a,a:4222":                                 usual(func(*Settings) {}),
		"tls://a":                                         usual(func(s *Settings) { s.TLS = true }),
		"nats://a,b:4333,10.0.0.1":                        usual(func(s *Settings) { s.Servers = []string{"a:4222", "b:4333", "10.0.0.1:4222"} }),
		"nats://[::1],[::2]:4333,::3":                     usual(func(s *Settings) { s.Servers = []string{"[::1]:4222", "[::2]:4333", "[::3]:4222"} }),
		"nats://a?yard=shop&replicas=5":                   usual(func(s *Settings) { s.Yard, s.Replicas = "shop", 5 }),
		"nats://a?streams=4&streambytes=2147483648":       usual(func(s *Settings) { s.HubStreams, s.StreamBytes = 4, 2<<30 }),
		"nats://me:p%40ss%2Fw@a":                          usual(func(s *Settings) { s.User, s.Password = "me", "p@ss/w" }),
		"nats://me:p@ss@a":                                usual(func(s *Settings) { s.User, s.Password = "me", "p@ss" }),
		"nats://t0ken@a":                                  usual(func(s *Settings) { s.Token = "t0ken" }),
		"nats://a?creds=/etc/yard.creds":                  usual(func(s *Settings) { s.CredsFile = "/etc/yard.creds" }),
		"nats://a?nkey=yard.nk":                           usual(func(s *Settings) { s.NKeyFile = "yard.nk" }),
		"nats://a?ca=ca.pem&cert=c&key=k":                 usual(func(s *Settings) { s.CAFile, s.CertFile, s.KeyFile = "ca.pem", "c", "k" }),
		"nats://a?system=root:p%26w%3A":                   usual(func(s *Settings) { s.SystemUser, s.SystemPassword = "root", "p&w:" }),
		"nats://a?systemcreds=sys.creds":                  usual(func(s *Settings) { s.SystemCredsFile = "sys.creds" }),
		"nats://a?monitor=http://a:8222":                  usual(func(s *Settings) { s.Monitors = []string{"http://a:8222"} }),
		"nats://a?monitor=http://a:1&monitor=https://b:2": usual(func(s *Settings) { s.Monitors = []string{"http://a:1", "https://b:2"} }),
	} {
		got, err := Parse(text)
		testkit.Must(t, err, text)
		testkit.Deep(t, got, want, text)
	}
}

func TestWhatParseRefuses(t *testing.T) {
	for text, says := range map[string]string{
		"":                                       "nats://HOST:PORT",
		"disk:///var/lib":                        "nats://HOST:PORT",
		"http://a":                               "nats://HOST:PORT",
		"nats://":                                "HOST or HOST:PORT",
		"nats://a,":                              "HOST or HOST:PORT",
		"nats://a b":                             "HOST or HOST:PORT",
		"nats://a:0":                             "HOST or HOST:PORT",
		"nats://a:65536":                         "HOST or HOST:PORT",
		"nats://a:b":                             "HOST or HOST:PORT",
		"nats://a:1:2":                           "HOST or HOST:PORT",
		"nats://a/path":                          "HOST or HOST:PORT",
		"nats://a,nats://b":                      "HOST or HOST:PORT",
		"nats://@a":                              "USER:PASSWORD or TOKEN",
		"nats://me:@a":                           "USER:PASSWORD or TOKEN",
		"nats://m%GG:secret@a":                   "USER:PASSWORD or TOKEN",
		"nats://a?%GG":                           "NAME=VALUE",
		"nats://a?yards=b":                       "there is no setting \"yards\"",
		"nats://a?yard=":                         "given once, with a value",
		"nats://a?yard=b&yard=c":                 "given once, with a value",
		"nats://a?yard=two%20words":              "letters, digits",
		"nats://a?yard=a.b":                      "letters, digits",
		"nats://a?replicas=2":                    "use 1, 3 or 5",
		"nats://a?replicas=three":                "use 1, 3 or 5",
		"nats://a?streams=17":                    "use 1 to 16",
		"nats://a?streams=-1":                    "use 1 to 16",
		"nats://a?streams=4294967297":            "use 1 to 16",
		"nats://a?streams=many":                  "use 1 to 16",
		"nats://a?streambytes=1000":              "use 1073741824 or more",
		"nats://a?streambytes=1GiB":              "use a number of bytes",
		"nats://me:secret@a?creds=file":          "one way lets in",
		"nats://secret@a?nkey=file":              "one way lets in",
		"nats://a?creds=x&nkey=y":                "one way lets in",
		"nats://a?cert=c":                        "given together",
		"nats://a?system=secret":                 "USER:PASSWORD of the system account",
		"nats://a?system=me:":                    "USER:PASSWORD of the system account",
		"nats://a?system=a:secret&systemcreds=f": "one way lets in to the system account",
		"nats://a?key=k":                         "given together",
		"nats://u:secret?word@a":                 "special characters",
		"nats://token?secret@a":                  "special characters",
		"nats://a?monitor=me:secret@a:8222":      "http://HOST:8222",
		"nats://a?monitor=a:8222":                "http://HOST:8222",
		"nats://a?monitor=":                      "http://HOST:8222",
	} {
		_, err := Parse(text)
		testkit.That(t, err != nil && strings.Contains(err.Error(), says), "%q: %v does not say %q", text, err, says)
		testkit.That(t, err == nil || !strings.Contains(err.Error(), "secret"), "%q: the error gives a secret away: %v", text, err)
	}
}

// R5: no secret is in what is shown of the settings.
func TestStringHoldsNoSecret(t *testing.T) {
	for _, text := range []string{"nats://me:secret@a,b?yard=shop", "tls://secret@a"} {
		s := testkit.Value(Parse(text))(t)
		testkit.That(t, !strings.Contains(s.String(), "secret") && strings.Contains(s.String(), "a:4222"), "shown as %q", s)
	}
}

func TestLocal(t *testing.T) {
	for text, want := range map[string]bool{
		"nats://127.0.0.1": true, "nats://localhost,[::1],127.9.9.9": true, "nats://LOCALHOST:5": true,
		"nats://10.0.0.1": false, "nats://localhost,a": false, "nats://0.0.0.0": false, "nats://localhost.example.net": false, "nats://[::]": false,
	} {
		s := testkit.Value(Parse(text))(t)
		testkit.Equal(t, s.Local(nil), want, text)
		testkit.That(t, !s.Local([]string{"nats://10.0.0.2:4222"}), "%s: with a server elsewhere", text)
		testkit.Equal(t, s.Local([]string{"nats://127.0.0.1:4222", "nats://u:p@127.0.0.1:1", "127.0.0.1:1"}), want, "%s: with servers here", text)
	}
}

// Whatever is given, it is an error or settings that can be used.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"nats://u:p@a:1,b?yard=y&replicas=1", "tls://[::1]", "nats://a?monitor=http://b", "nats://:"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s, err := Parse(text)
		if err != nil {
			return
		}
		again, err := Parse(s.String())
		if err != nil || again.String() != s.String() || s.Check() != nil {
			t.Errorf("%q was read as %q, and that as %q, %v", text, s, again, err)
		}
	})
}
