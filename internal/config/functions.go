package config

import (
	"cmp"
	"fmt"
	"net"
	"net/mail"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/spec"
)

// Targets reads To.
func (n Notify) Targets() []string { return splitList(n.To) }

// smtpModes are what smtp.tls may be.
var smtpModes = []string{"starttls", "tls", "none"}

// maxTargets are told of all functions; each function may have others of its own, and notices have
// room for so many together.
const maxTargets = 10

func (c Config) validateFunctions(found *complaints) {
	if n := len(c.Notify.Targets()); n > maxTargets {
		found.add("notify.to", "%d targets: use at most %d, such as one address that reaches all", n, maxTargets)
	}
	c.validateSMTP(found)
	between(found, "notify.linkLife", c.Notify.LinkLife, time.Minute, 90*24*time.Hour)
	for _, target := range c.Notify.Targets() {
		checkTarget(found, "notify.to", target)
	}
	c.validateFunctionList(found)
}

// checkTarget finds what can be no target of notices.
func checkTarget(found *complaints, key, target string) {
	if to, ok := strings.CutPrefix(target, "mailto:"); ok {
		if _, err := mail.ParseAddress(to); err != nil {
			found.add(key, "%q is no address: write it like mailto:ops@example.com", target)
		}
		return
	}
	if !isWebURL(target) {
		found.add(key, "%s is neither mail nor a webhook: write it like mailto:ops@example.com or https://hooks.example.com/abc", beginning(target, 10)) // the rest may be secret
	}
}

// beginning quotes a text, or its first characters.
func beginning(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return strconv.Quote(string(runes[:most])) + "…"
	}
	return strconv.Quote(text)
}

func isWebURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
}

// functionName is what a function may be called.
var functionName = regexp.MustCompile(`^[A-Za-z0-9._-]{1,100}$`)

// validateWords finds what is wrong with single words.
func validateWords(found *complaints, at string, f admin.FunctionRequest) {
	if !functionName.MatchString(f.Name) || f.Name == "." || f.Name == ".." {
		found.add(at+".name", "%q: use 1 to 100 of a-z, A-Z, 0-9, '-', '_' and '.', and not . or ..", f.Name)
	}
	if url := deref(f.Endpoint); url != "" && !isWebURL(url) {
		found.add(at+".endpoint", "%q: write it like http://127.0.0.1:5000/", url)
	}
	if strings.EqualFold(deref(f.Poison), topicPrefix+yardEvents) {
		found.add(at+".poison", "only the yard publishes to %s: name another topic, or a hub", yardEvents)
	}
	checkDefinition(found, at, spec.Function, &f)
	for i, target := range f.Notify {
		checkTarget(found, fmt.Sprintf("%s.notify[%d]", at, i), target)
	}
}

func (c Config) validateSMTP(found *complaints) {
	s := c.Notify.SMTP
	if s.Addr != "" {
		if host, port, err := net.SplitHostPort(s.Addr); err != nil || host == "" || port == "" {
			found.add("notify.smtp.addr", "%q: write it like smtp.example.com:587", s.Addr)
		}
		if _, err := mail.ParseAddress(s.From); err != nil {
			found.add("notify.smtp.from", "%q is no address: mail needs a sender, like eventyard@example.com", s.From)
		}
	}
	if !slices.Contains(smtpModes, s.TLS) {
		found.add("notify.smtp.tls", "%q is none of starttls, tls and none", s.TLS)
	}
	if s.TLS == "none" && s.Username != "" {
		found.add("notify.smtp.tls", "none would send the password for all to read: use starttls or tls")
	}
	if s.Username == "" && s.Password != "" {
		found.add("notify.smtp.username", "is not given, and notify.smtp.password is of no use without it")
	}
}

// validateFunctionList finds what is missing or there twice; the rest is judged where definitions
// are kept.
func (c Config) validateFunctionList(found *complaints) {
	first, readers := map[string]int{}, map[[2]string]int{}
	for i, f := range c.Functions {
		at := fmt.Sprintf("functions[%d]", i)
		if f.Name == "" {
			found.add(at, "it needs a name")
			continue
		}
		validateWords(found, at, f)
		for _, required := range []struct{ key, value string }{{"hub", f.Hub}, {"endpoint", deref(f.Endpoint)}} {
			if required.value == "" {
				found.add(at+"."+required.key, "%s needs it", f.Name)
			}
		}
		name := strings.ToLower(f.Name)
		if j, twice := first[name]; twice {
			found.add(at+".name", "function %q is already functions[%d]; case makes no difference", f.Name, j)
			continue
		}
		first[name] = i
		group := [2]string{strings.ToLower(f.Hub), cmp.Or(f.Group, f.Name)}
		if strings.EqualFold(group[1], "$Default") {
			group[1] = "$Default"
		}
		if j, twice := readers[group]; twice && f.Hub != "" {
			found.add(at+".group", "group %q of hub %q is functions[%d]'s, and two would share the events: choose a group of its own", group[1], f.Hub, j)
			continue
		}
		readers[group] = i
	}
}
