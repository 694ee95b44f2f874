package config

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// TraceMark stands for a trace's id in TraceURL.
const TraceMark = "{trace}"

// Ratio reads Sample; nil: it says nothing.
func (o OTLP) Ratio() *float64 {
	ratio, err := strconv.ParseFloat(o.Sample, 64)
	if err != nil {
		return nil
	}
	return &ratio
}

func (c Config) validateTraces(found *complaints) {
	if at := c.OTLP.Endpoint; at != "" {
		found.addError("otlp.endpoint", CheckCollector(at))
	}
	if ratio := c.OTLP.Ratio(); c.OTLP.Sample != "" && (ratio == nil || !(*ratio >= 0 && *ratio <= 1)) {
		found.add("otlp.sample", "%q is no share of all: write it like 0.05, from 0 to 1", c.OTLP.Sample)
	}
	if at := c.TraceURL; hasSecret(at) {
		found.add("traceUrl", "it has a name or a password in it: everybody who looks at an event sees it, so write it without")
	} else if at != "" && (!isAddress(strings.ReplaceAll(at, TraceMark, "0")) || !strings.Contains(at, TraceMark)) {
		found.add("traceUrl", "%q is no URL with %s for the trace's id: write it like https://jaeger.example.com/trace/%[2]s", at, TraceMark)
	}
}

// CheckCollector says why a text is not the URL of a collector.
func CheckCollector(at string) error {
	if hasSecret(at) {
		return errors.New("it has a name or a password in it: write it without, and give what the collector asks for in the environment, as OTEL_EXPORTER_OTLP_HEADERS")
	}
	if !isAddress(at) {
		return fmt.Errorf("%q is no URL of a collector: write it like http://localhost:4318", at)
	}
	return nil
}

// hasSecret: the URL names a user, and is not to be repeated.
func hasSecret(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.User != nil
}

// isAddress takes what a browser or a client can open, without secrets.
func isAddress(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil
}
