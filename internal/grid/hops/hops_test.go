package hops

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// R4: the count is read however who passed it on has written it; what is none is none.
func TestCounts(t *testing.T) {
	for _, tt := range []struct {
		property any
		want     int
	}{{nil, 0}, {int32(3), 3}, {int64(3), 3}, {uint8(3), 3}, {3.0, 3}, {"3", 3}, {"", 0}, {"-3", 0}, {"99999", 0}, {3.5, 0}, {[]any{3}, 0}} {
		t.Run(fmt.Sprintf("%T(%v)", tt.property, tt.property), func(t *testing.T) {
			testkit.Equal(t, OfProperties(map[string]any{Name: tt.property}), tt.want, "hops")
		})
	}
	testkit.Equal(t, OfProperties(nil), 0, "hops of no properties")
	testkit.Equal(t, OfHeader(http.Header{"Eventyard-Hops": {"4"}}), 4, "hops of a header")
	testkit.Equal(t, Of(With(t.Context(), 5)), 5, "hops of a context")
	testkit.Equal(t, Of(With(t.Context(), 0)), 0, "hops of a context without")
}
