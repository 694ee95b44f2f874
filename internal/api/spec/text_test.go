package spec

import (
	"strings"
	"testing"

	"github.com/eventyard/eventyard/admin"
)

func TestHeadersAreReadAsPeopleTypeThem(t *testing.T) {
	for text, want := range map[string]admin.Header{
		"X-Env=prod":                {Name: "X-Env", Value: "prod"},
		"X-Region={data.region}":    {Name: "X-Region", Field: "data.region"},
		"Authorization=Basic a=b==": {Name: "Authorization", Value: "Basic a=b=="},
		"X-Brace={":                 {Name: "X-Brace", Value: "{"},
		"X-Empty=":                  {Name: "X-Empty"},
	} {
		got, err := ParseHeader(text)
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	// A value that has no name may be a secret: only what stands before the sign is repeated.
	if _, err := ParseHeader("X-Env"); err == nil || !strings.Contains(err.Error(), "X-Env=prod, or X-Region={data.region}") {
		t.Errorf("without a value: %v", err)
	}
}

func TestRetriesAndHeadersAsPeopleWriteThem(t *testing.T) {
	for text, want := range map[string]admin.Retries{"0": 0, "12": 12, "forever": admin.Forever, "Forever": admin.Forever} {
		if got, err := ParseRetries(text); got != want || err != nil {
			t.Errorf("%q: %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "-1", "many"} {
		if _, err := ParseRetries(text); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
	name, value, err := ParseHeaderLine(" X-Key : a:b ")
	if name != "X-Key" || value != "a:b" || err != nil {
		t.Errorf("%q, %q, %v", name, value, err)
	}
	if _, _, err := ParseHeaderLine("no colon"); err == nil || strings.Contains(err.Error(), "no colon") {
		t.Error(err)
	}
}
