package v1

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
)

// part is which rows of a list a request wants, and what of each. Lists that can be long have one.
type part struct {
	// after names the row before the first, empty: it is the first of all. limit is how many; 0: all.
	after string
	limit int
	// fields are the members of a row; nil: all.
	fields map[string]bool
}

// readPart reads after, limit and fields, for rows that are shown as a T. Its first member names a row, and
// is always given.
func readPart[T any](query url.Values) (p part, err error) {
	p.after = query.Get("after")
	if p.limit, err = positive(query, "limit", 0); err != nil {
		return p, err
	}
	chosen := query.Get("fields")
	if chosen == "" {
		return p, nil
	}
	names := membersOf[T]()
	p.fields = map[string]bool{names[0]: true}
	for name := range strings.SplitSeq(chosen, ",") {
		if !slices.Contains(names, name) {
			return p, badRequest("use some of "+strings.Join(names, ","), "fields names %.64q, and there is no such member", name)
		}
		p.fields[name] = true
	}
	return p, nil
}

// membersOf are the names that the fields of a type have in JSON.
func membersOf[T any]() (names []string) {
	for _, f := range reflect.VisibleFields(reflect.TypeFor[T]()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

// isPage: not all rows are wanted, maybe.
func (p part) isPage() bool { return p.after != "" || p.limit > 0 }

// window is where the page begins and ends among rows with these names. next is the after of the page behind
// it; empty: there is none.
func (p part) window(names []string) (from, to int, next string, err error) {
	if p.after != "" {
		if from = slices.Index(names, p.after) + 1; from == 0 {
			return 0, 0, "", badRequest("give the next of an earlier page, or leave it out", "after=%.64s names no row of the list", p.after)
		}
	}
	if to = len(names); p.limit > 0 && p.limit < to-from {
		to = from + p.limit
		next = names[to-1]
	}
	return from, to, next, nil
}

// choose gives what is wanted of a row. It goes by way of JSON, in which members that are empty are left
// out, or not.
func (p part) choose(row any) any {
	if p.fields == nil {
		return row
	}
	var members map[string]json.RawMessage
	data, err := json.Marshal(row)
	if err == nil {
		err = json.Unmarshal(data, &members)
	}
	if err != nil {
		return row // all of it is what nobody is harmed by
	}
	maps.DeleteFunc(members, func(name string, _ json.RawMessage) bool { return !p.fields[name] })
	return members
}

// writeRows answers with a part of a list, as the member of that name. Clients that ask for no page know of
// no other member.
func (p part) writeRows(w http.ResponseWriter, name string, rows []any, total int, next string) error {
	answer := map[string]any{name: rows}
	if p.isPage() {
		answer["total"] = total
	}
	if next != "" {
		answer["next"] = next
	}
	return writeJSON(w, http.StatusOK, answer)
}
