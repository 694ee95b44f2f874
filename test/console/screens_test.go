package console

import "fmt"

// screen is what somebody looks at a page on.
type screen struct {
	width  int
	scheme string
}

func (s screen) String() string { return fmt.Sprintf("%d-%s", s.width, s.scheme) }

// screens are a desk by day and a phone by night; and the other way round in the long run.
func screens() []screen {
	some := []screen{{1280, "light"}, {390, "dark"}}
	if *all {
		some = append(some, screen{1280, "dark"}, screen{390, "light"})
	}
	return some
}
