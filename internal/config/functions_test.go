package config

import (
	"strings"
	"testing"
)

func TestNoticesAndFunctionsThatMakeNoSense(t *testing.T) {
	good := Default()
	good.Notify.SMTP.Addr, good.Notify.SMTP.From = "mail:587", "yard@example.com"
	good.Functions = []Function{{Name: "a", Hub: "h", Endpoint: "http://x/"}}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
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
		"functions[0].endpoint":  func(c *Config) { c.Functions[0].Endpoint = "" },
		"functions[0].name":      func(c *Config) { c.Functions[0].Name = "my fun" },
		"like http://":           func(c *Config) { c.Functions[0].Endpoint = "localhost:5000" },
		"functions[0].retries":   func(c *Config) { c.Functions[0].Retries = "-1" },
		"functions[0].breaker":   func(c *Config) { c.Functions[0].Breaker = "100" },
		"functions[0].probe":     func(c *Config) { c.Functions[0].Probe = "soon" },
		"functions[0].notify[0]": func(c *Config) { c.Functions[0].Notify = []string{"ops@example.com"} },
		"write it like mailto":   func(c *Config) { c.Notify.To = "ops" },
		"is no address":          func(c *Config) { c.Notify.To = "mailto:nobody" },
		"already functions[0]":   func(c *Config) { c.Functions = append(c.Functions, c.Functions[0]) },
	} {
		c := good
		c.Functions = append([]Function{}, good.Functions...)
		change(&c)
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

func TestTargetsOfNotices(t *testing.T) {
	n := Notify{To: " mailto:a@b , https://x/y,"}
	if got := n.Targets(); len(got) != 2 || got[0] != "mailto:a@b" || got[1] != "https://x/y" {
		t.Errorf("%q", got)
	}
}
