package frame

import (
	"net/http"
	"strings"
	"time"
)

// Plain is an API of a handler that speaks for itself, to people or in another protocol: it answers
// errors and keeps web pages out by itself. Of the frame it has the table, which says what methods
// there are, and the recovery.
func Plain(name string, serves func(*http.Request) bool, handler http.Handler, routes ...Route) API {
	return API{Name: name, Serves: serves, Routes: routes, Unguarded: true, Begin: func(c *Call) Exchange {
		return &plain{Call: c, handler: handler, routes: routes}
	}}
}

type plain struct {
	*Call
	handler http.Handler
	routes  []Route
}

func (p *plain) Find() error {
	asked := p.R.Method
	if asked == http.MethodHead {
		asked = http.MethodGet
	}
	var allowed []string
	for _, rt := range p.routes {
		if rt.Method == asked {
			p.Route = rt
			return nil
		}
		allowed = append(allowed, rt.Method)
	}
	methods := strings.Join(allowed, ", ")
	p.Header().Set("Allow", methods)
	return &Refusal{Status: http.StatusMethodNotAllowed, Detail: "use " + methods}
}

func (p *plain) Admit() error { return nil }

func (p *plain) Serve() error {
	p.handler.ServeHTTP(p.Call, p.R)
	return nil
}

func (p *plain) Judge(err error) Refusal { return Judge(Problem, err) }

func (p *plain) Refuse(said Refusal) { http.Error(p.Call, said.Detail, said.Status) }

func (p *plain) Ended(time.Duration) {}
