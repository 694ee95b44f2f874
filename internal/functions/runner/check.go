package runner

import (
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/eventyard/eventyard/internal/api/spec"
	"github.com/eventyard/eventyard/internal/functions/invoke"
	"github.com/eventyard/eventyard/internal/hubs/auth"
)

// Bounds of definitions; what one field may be is in the rows of the spec.
const (
	maxNameCharacters   = 100
	maxHeaders          = 50
	maxHeaderNameBytes  = 256
	maxHeaderValueBytes = 8 << 10
	maxNotify           = 50
	maxEndpointBytes    = 4 << 10
)

// invalid is an error that wraps ErrInvalid.
func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrInvalid, fmt.Errorf(format, args...))
}

// Check says what is wrong with a definition by itself, before there is anything that it could be
// created in. Errors wrap ErrInvalid.
func Check(d Definition) error { return d.tidy().check() }

// check says what is wrong with a definition by itself, whose defaults are filled in.
func (d Definition) check() error {
	if !wellNamed(d.Name) {
		return invalid("name %.120q: use 1 to %d letters (a-z, A-Z), digits, '-', '_' and '.', and not . or ..", d.Name, maxNameCharacters)
	}
	if d.Hub == "" {
		return invalid("no hub is given: name the one whose events it is to get")
	}
	if d.Endpoint == "" {
		return invalid("no endpoint is given: name the URL that is to be called")
	}
	if len(d.Endpoint) > maxEndpointBytes || !utf8.ValidString(d.Endpoint) {
		return invalid("the endpoint has %d bytes: use a URL of at most %d", len(d.Endpoint), maxEndpointBytes)
	}
	if d.Format != FormatCloudEvents && d.Format != FormatEventHubs {
		return invalid("format %.64q: use %s or %s", d.Format, FormatCloudEvents, FormatEventHubs)
	}
	if _, err := d.position(); err != nil {
		return invalid("%w", err)
	}
	for _, check := range []func() error{d.checkRanges, d.checkNumbers, d.checkTimes, d.checkHeaders, d.checkPoison} {
		if err := check(); err != nil {
			return err
		}
	}
	// Hosts would find out for good what else cannot be called.
	if _, err := invoke.New(invoke.Config{URL: d.Endpoint, Format: invoke.Format(d.Format), Header: d.header(), Client: http.DefaultClient}); err != nil {
		return invalid("%w", err)
	}
	return nil
}

// wellNamed: names are also parts of paths, where one or two dots mean something else.
func wellNamed(name string) bool {
	return name != "" && name != "." && name != ".." && len(name) <= maxNameCharacters &&
		!strings.ContainsFunc(name, func(r rune) bool { return !alphanumeric(r) && !strings.ContainsRune("-_.", r) })
}

func alphanumeric(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}

func (d Definition) checkNumbers() error {
	switch {
	case d.MinBatch > d.Batch:
		return invalid("a call waits for %d events (minBatch, --min-events) and may have %d at most (batch, --max-events): make the first no larger", d.MinBatch, d.Batch)
	case d.Lanes > 1 && d.MinBatch > 1:
		return invalid("a call waits for %d events (minBatch, --min-events), and there are %d lanes: lanes do not wait for a batch to fill, leave out one of them", d.MinBatch, d.Lanes)
	case len(d.Notify) > maxNotify:
		return invalid("%d targets for notices: use at most %d", len(d.Notify), maxNotify)
	}
	return nil
}

// checkRanges holds a definition to the ranges of the spec.
func (d Definition) checkRanges() error {
	for _, field := range []struct {
		name  string
		value any
	}{
		{"batch", d.Batch}, {"minBatch", d.MinBatch}, {"lanes", d.Lanes}, {"target", d.Target},
		{"maxWait", d.MaxWait}, {"timeout", d.Timeout}, {"retryDelay", d.RetryDelay}, {"retryMaxDelay", d.RetryMax},
		{"probe", d.Breaker.Probe}, {"probeMax", d.Breaker.ProbeMax},
	} {
		if err := spec.Function.CheckValue(field.name, field.value); err != nil {
			return invalid("%w", err)
		}
	}
	return nil
}

func (d Definition) checkTimes() error {
	b := d.Breaker
	switch {
	case b.Failures >= 0 && (b.Within < spec.BreakerLeast || b.Within > spec.BreakerMost):
		return invalid("the breaker counts within %v: use %v to %v", b.Within, spec.BreakerLeast, spec.BreakerMost)
	case b.ProbeMax > 0 && b.ProbeMax < b.Probe:
		return invalid("the longest probe %v is shorter than the first %v: use a longer one, or leave it out", b.ProbeMax, b.Probe)
	case d.RetryMax > 0 && d.RetryMax < d.RetryDelay:
		return invalid("the longest retry delay %v is shorter than the first %v: use a longer one, or leave it out", d.RetryMax, d.RetryDelay)
	}
	return nil
}

// checkHeaders never repeats a value, which may be a secret. What cannot be sent, or is the yard's
// own, package invoke knows.
func (d Definition) checkHeaders() error {
	if len(d.Headers) > maxHeaders {
		return invalid("%d headers: use at most %d", len(d.Headers), maxHeaders)
	}
	seen := make(map[string]bool, len(d.Headers))
	for name, value := range d.Headers {
		folded := auth.Fold(name)
		switch {
		case len(name) > maxHeaderNameBytes:
			return invalid("header %.80q: use a name of at most %d bytes", name, maxHeaderNameBytes)
		case strings.HasPrefix(folded, "ce-") || strings.HasPrefix(folded, "proxy-"):
			return invalid("header %q: it belongs to the yard or the connection, choose another name", name)
		case seen[folded]:
			return invalid("header %q: it is given twice, leave out one", name)
		case len(value) > maxHeaderValueBytes || !utf8.ValidString(value) || strings.TrimSpace(value) != value:
			return invalid("header %q: its value has more than %d bytes, a line break or blank at its ends, or is no text", name, maxHeaderValueBytes)
		}
		seen[folded] = true
	}
	return nil
}

func (d Definition) checkPoison() error {
	if topic, is := d.poisonTopic(); is && topic == "" {
		return invalid("poison %q: name the topic behind the colon", d.Poison)
	}
	if hub, is := d.PoisonHub(); is && auth.Fold(hub) == auth.Fold(d.Hub) {
		return invalid("poison %q is the hub that it reads, and would feed it with its own failures: name another, topic:NAME or none", d.Poison)
	}
	return nil
}

// tidy gives a definition in the spelling that is stored: with defaults, words in lower case, and
// for ever as -1.
func (d Definition) tidy() Definition {
	d = d.withDefaults()
	d.Format = strings.ToLower(d.Format)
	if start := strings.ToLower(d.Start); start == StartEarliest || start == StartLatest {
		d.Start = start
	}
	if strings.EqualFold(d.Poison, PoisonNone) {
		d.Poison = PoisonNone
	}
	if *d.Retries < 0 {
		d.Retries = new(-1)
	}
	if d.Breaker.Failures < 0 {
		d.Breaker.Failures, d.Breaker.Within = -1, 0
	}
	return d
}

// vet gives a definition as it may be stored, or says what is wrong with it, by itself or with what
// it names.
func (k *Registry) vet(d Definition) (Definition, error) {
	d = d.tidy()
	if err := d.check(); err != nil {
		return d, err
	}
	if err := k.cfg.CheckEndpoint(d.Endpoint); err != nil {
		return d, invalid("%w", err)
	}
	for _, target := range d.Notify {
		if err := k.cfg.CheckTarget(target); err != nil {
			return d, invalid("notify: %w", err)
		}
	}
	h, err := k.cfg.Broker.Hub(d.Hub)
	if err != nil {
		return d, err
	}
	d.Hub = h.Name
	if topic, is := d.poisonTopic(); is {
		if k.cfg.Topics == nil {
			return d, invalid("poison %q: this yard has no topics, name a hub", d.Poison)
		}
		if err := k.cfg.CheckTopic(topic); err != nil {
			return d, invalid("poison %q: %w: create it with `eventyard topic create %s`, or name a hub", d.Poison, err, topic)
		}
		return d, nil
	}
	name, is := d.PoisonHub()
	if !is || d.ownPoison() {
		return d, nil
	}
	if h, err = k.cfg.Broker.Hub(name); err != nil {
		return d, invalid("poison: hub %.64q does not exist: create it with `eventyard hub create %s`, or name topic:NAME or none", name, name)
	}
	d.Poison = h.Name
	return d, nil
}

// ownPoison: the target is the default one, which is made where it is missing.
func (d Definition) ownPoison() bool { return auth.Fold(d.Poison) == auth.Fold(d.Name+poisonSuffix) }
