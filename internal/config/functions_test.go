package config

import (
	"fmt"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

func TestNoticesAndFunctionsThatMakeNoSense(t *testing.T) {
	good := Default()
	good.Notify.SMTP.Addr, good.Notify.SMTP.From = "mail:587", "yard@example.com"
	good.Functions = []admin.FunctionRequest{{Name: "a", Hub: "h", Endpoint: new("http://x/")}}
	testkit.Must(t, good.Check())
	for want, change := range map[string]func(*Config){
		"notify.smtp.addr":       func(c *Config) { c.Notify.SMTP.Addr = "mail" },
		"notify.smtp.from":       func(c *Config) { c.Notify.SMTP.From = "" },
		"notify.smtp.tls":        func(c *Config) { c.Notify.SMTP.TLS = "maybe" },
		"for all to read":        func(c *Config) { c.Notify.SMTP.TLS, c.Notify.SMTP.Username, c.Notify.SMTP.Password = "none", "u", "p" },
		"notify.smtp.username":   func(c *Config) { c.Notify.SMTP.Password = "p" },
		"starttls or tls":        func(c *Config) { c.Notify.SMTP.TLS, c.Notify.SMTP.Username = "none", "u" },
		"notify.to":              func(c *Config) { c.Notify.To = strings.Repeat("mailto:a@b,", 11) },
		"notify.linkLife":        func(c *Config) { c.Notify.LinkLife = 1 },
		"functions[0]":           func(c *Config) { c.Functions[0].Name = "" },
		"functions[0].hub":       func(c *Config) { c.Functions[0].Hub = "" },
		"functions[0].endpoint":  func(c *Config) { c.Functions[0].Endpoint = nil },
		"functions[0].name":      func(c *Config) { c.Functions[0].Name = "my fun" },
		"like http://":           func(c *Config) { c.Functions[0].Endpoint = new("localhost:5000") },
		"functions[0].breaker":   func(c *Config) { c.Functions[0].Breaker = new("100") },
		"functions[0].probe":     func(c *Config) { c.Functions[0].Probe = new("soon") },
		"functions[0].batch":     func(c *Config) { c.Functions[0].Batch = new(10001) },
		"functions[0].format":    func(c *Config) { c.Functions[0].Format = new("xml") },
		"functions[0].notify[0]": func(c *Config) { c.Functions[0].Notify = []string{"ops@example.com"} },
		"write it like mailto":   func(c *Config) { c.Notify.To = "ops" },
		"is no address":          func(c *Config) { c.Notify.To = "mailto:nobody" },
		"already functions[0]":   func(c *Config) { c.Functions = append(c.Functions, c.Functions[0]) },
	} {
		c := good
		c.Functions = append([]admin.FunctionRequest{}, good.Functions...)
		change(&c)
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

// F1: what the yard would refuse at its start is found when the file is checked, as the words of
// the command line are taken.
func TestFunctionsThatCannotStandTogether(t *testing.T) {
	of := func(name, hub, group string) admin.FunctionRequest {
		return admin.FunctionRequest{Name: name, Hub: hub, Group: group, Endpoint: new("http://x/")}
	}
	for _, test := range []struct {
		name      string
		functions []admin.FunctionRequest
		want      string // empty: nothing is wrong
	}{
		{"of two hubs", []admin.FunctionRequest{of("a", "h", "g"), of("b", "i", "g")}, ""},
		{"of two groups", []admin.FunctionRequest{of("a", "h", ""), of("b", "h", "")}, ""},
		{"groups that differ in case are two", []admin.FunctionRequest{of("a", "h", "g"), of("b", "h", "G")}, ""},
		{"names that differ in case alone", []admin.FunctionRequest{of("Bill", "h", "g"), of("bill", "i", "g")}, `functions[1].name: function "bill" is already functions[0]`},
		{"a group twice", []admin.FunctionRequest{of("a", "h", "g"), of("b", "H", "g")}, `functions[1].group: group "g" of hub "H" is functions[0]'s`},
		{"a group and a name", []admin.FunctionRequest{of("a", "h", ""), of("b", "h", "a")}, `functions[1].group: group "a" of hub "h" is functions[0]'s`},
		{"the default group in two spellings", []admin.FunctionRequest{of("a", "h", "$Default"), of("b", "h", "$default")}, `functions[1].group`},
		{"a name that is a path", []admin.FunctionRequest{of("..", "h", "g")}, `functions[0].name`},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := Default()
			c.Functions = test.functions
			if err := c.Check(); err == nil != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

func TestWordsOfFunctions(t *testing.T) {
	for _, test := range []struct {
		retries, breaker string
		good             bool
	}{
		{"forever", "off", true}, {"Forever", "OFF", true}, {"0", "100/30s", true}, {"5", "7 / 1m30s", true}, {"", "", true},
		{"never", "", false}, {"-1", "", false}, {"", "100", false}, {"", "0/30s", false}, {"", "100/soon", false}, {"", "100/0s", false}, {"", "-1/30s", false},
	} {
		t.Run(fmt.Sprintf("retries %q, breaker %q", test.retries, test.breaker), func(t *testing.T) {
			text := fmt.Sprintf("functions: [{name: a, hub: h, endpoint: 'http://x/', retries: %q, breaker: %q}]", test.retries, test.breaker)
			if test.retries == "" {
				text = fmt.Sprintf("functions: [{name: a, hub: h, endpoint: 'http://x/', breaker: %q}]", test.breaker)
			}
			if _, err := Load(Sources{File: write(t, "c.yaml", text)}); (err == nil) != test.good {
				t.Errorf("got %v, want it good: %t", err, test.good)
			}
		})
	}
}

// Its value may be a secret, and is not repeated.
func TestAHeaderWithoutAValue(t *testing.T) {
	_, err := Load(Sources{File: write(t, "c.yaml", "functions: [{name: a, hub: h, endpoint: 'http://x/', headers: [Bearer abc]}]")})
	if err == nil || !strings.Contains(err.Error(), "functions[0].headers[0]: a header without a value: write it like") || strings.Contains(err.Error(), "Bearer abc\n") {
		t.Errorf("%v", err)
	}
}

func TestTargetsOfNotices(t *testing.T) {
	n := Notify{To: " mailto:a@b , https://x/y,"}
	if got := n.Targets(); len(got) != 2 || got[0] != "mailto:a@b" || got[1] != "https://x/y" {
		t.Errorf("%q", got)
	}
}
