package admin

import (
	"net/url"
	"strconv"
	"strings"
)

// PageQuery asks for a part of a long list.
type PageQuery struct {
	// After is the Next of the page before; empty: the first. Limit is how many rows at most; 0: all.
	After string
	Limit int
	// Fields are the members wanted of each row, by their names in JSON, besides what names the row; nil:
	// all. The others are zero in what is returned.
	Fields []string
}

func (q PageQuery) addTo(v url.Values) {
	if q.After != "" {
		v.Set("after", q.After)
	}
	if q.Limit > 0 {
		v.Set("limit", strconv.Itoa(q.Limit))
	}
	if len(q.Fields) > 0 {
		v.Set("fields", strings.Join(q.Fields, ","))
	}
}
