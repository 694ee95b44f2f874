package config

import (
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// V6: what cannot be is refused before a yard starts.
func TestSettingsOfTraces(t *testing.T) {
	for name, x := range map[string]struct {
		change func(*Config)
		says   string // empty: nothing is wrong
	}{
		"nothing":                {func(*Config) {}, ""},
		"a collector":            {func(c *Config) { c.OTLP.Endpoint, c.OTLP.Sample = "http://localhost:4318", "0.05" }, ""},
		"a page of traces":       {func(c *Config) { c.TraceURL = "https://jaeger.example.com/trace/{trace}?x=1" }, ""},
		"no URL":                 {func(c *Config) { c.OTLP.Endpoint = "localhost:4318" }, "http://localhost:4318"},
		"a URL with a password":  {func(c *Config) { c.OTLP.Endpoint = "http://me:secret@collector" }, "OTEL_EXPORTER_OTLP_HEADERS"},
		"more than all":          {func(c *Config) { c.OTLP.Sample = "5" }, "from 0 to 1"},
		"no number":              {func(c *Config) { c.OTLP.Sample = "NaN" }, "from 0 to 1"},
		"half of them":           {func(c *Config) { c.OTLP.Sample = "half" }, "from 0 to 1"},
		"a page of all traces":   {func(c *Config) { c.TraceURL = "https://jaeger.example.com/" }, "{trace}"},
		"a script":               {func(c *Config) { c.TraceURL = "javascript:alert('{trace}')" }, "{trace}"},
		"no page where it is at": {func(c *Config) { c.TraceURL = "/trace/{trace}" }, "https://"},
	} {
		cfg := Default()
		x.change(&cfg)
		err := cfg.Check()
		if x.says == "" {
			testkit.Check(t, err, name)
			continue
		}
		testkit.That(t, err != nil && strings.Contains(err.Error(), x.says), "%s: %v", name, err)
	}
	testkit.That(t, OTLP{}.Ratio() == nil && *OTLP{Sample: "0.5"}.Ratio() == 0.5, "ratios")
}
