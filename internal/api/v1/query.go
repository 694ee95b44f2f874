package v1

import (
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/eventyard/eventyard/internal/config"
)

// queries are the parameters that each operation takes in its query, by method and path, as openapi.json has them.
var queries = sync.OnceValue(func() map[string][]string {
	type parameter struct {
		Ref      string `json:"$ref"`
		In, Name string
	}
	var document struct {
		Paths      map[string]map[string]json.RawMessage
		Components struct{ Parameters map[string]parameter }
	}
	decode := func(text []byte, v any) {
		if err := json.Unmarshal(text, v); err != nil {
			panic("openapi.json: " + err.Error()) // it is ours
		}
	}
	decode(openAPIDocument, &document)
	taken := map[string][]string{}
	for path, operations := range document.Paths {
		var common []parameter
		if text, is := operations["parameters"]; is {
			decode(text, &common)
			delete(operations, "parameters")
		}
		for method, text := range operations {
			var operation struct{ Parameters []parameter }
			decode(text, &operation)
			names := []string{}
			for _, p := range slices.Concat(operation.Parameters, common) {
				if _, name, is := strings.Cut(p.Ref, "#/components/parameters/"); is {
					p = document.Components.Parameters[name]
				}
				if p.In == "query" {
					names = append(names, p.Name)
				}
			}
			taken[strings.ToUpper(method)+" "+path] = names
		}
	}
	return taken
})

// checkQuery refuses parameters that an operation does not take: who misspells one would get an answer to another
// question. The calls that Azure has as well take whatever their clients send.
func checkQuery(rt *route, r *http.Request) error {
	taken, described := queries()[rt.method+" "+rt.path]
	if !described || !strings.HasPrefix(rt.path, "/api/v1") || r.URL.RawQuery == "" {
		return nil
	}
	given, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return badRequest("write it like name=value&name=value, with %25 for % and %3B for ;", "the query cannot be read")
	}
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if slices.Contains(taken, name) {
			continue
		}
		next := "leave it out: there are none here"
		if len(taken) > 0 {
			next = "this takes " + strings.Join(taken, ", ")
		}
		if near := config.DidYouMean(name, taken); near != "" {
			return badRequest(next, "unknown query parameter %.64q: did you mean %s?", name, near)
		}
		return badRequest(next, "unknown query parameter %.64q", name)
	}
	return nil
}
