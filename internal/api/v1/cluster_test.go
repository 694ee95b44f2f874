package v1

import (
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// C4: the authority is what it is, and a yard that has none says so.
func TestCA(t *testing.T) {
	got := newYard(t).want(200, "GET", "/api/v1/ca.pem", nil)
	testkit.Equal(t, string(got.body), certificate, "the authority")
	none := newYard(t, func(c *Config) { c.CA = nil })
	none.refused(404, "no-authority", "GET", "/api/v1/ca.pem", nil)
}
