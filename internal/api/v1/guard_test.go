package v1

import (
	"net/http"
	"testing"
)

// A listener on loopback answers to names that nobody else can point at it.
func TestHostMustBeLocal(t *testing.T) {
	tests := []struct {
		what, host string
		status     int
	}{
		{"localhost", "localhost", 200},
		{"localhost with a port", "localhost:8080", 200},
		{"localhost in any case, with its dot", "LocalHost.:8080", 200},
		{"a name beneath localhost", "yard.localhost:8080", 200},
		{"the loopback address", "127.0.0.1:8080", 200},
		{"the loopback address of IPv6", "[::1]:8080", 200},
		{"IPv6 without a port", "[::1]", 200},
		{"another address: a name server cannot give it", "192.168.1.5:8080", 200},
		{"a foreign name", "evil.example", 403},
		{"a foreign name with a port", "evil.example:8080", 403},
		{"a name that looks like an address", "127.0.0.1.evil.example:8080", 403},
		{"a name that ends like localhost", "notlocalhost", 403},
	}
	y := newYard(t, func(c *Config) { c.LoopbackOnly = true })
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			y := y.in(t)
			if tt.status == http.StatusForbidden {
				y.refused(403, "foreign-host", "GET", "/api/v1", nil, "Host", tt.host)
				return
			}
			y.want(tt.status, "GET", "/api/v1", nil, "Host", tt.host)
		})
	}
}

// Who opens the listener to others gives up the check of names.
func TestAnyHostWhenNotLoopbackOnly(t *testing.T) {
	newYard(t).want(200, "GET", "/api/v1", nil, "Host", "yard.example")
}

// Web pages of other origins change nothing, with or without loopback.
func TestForeignPagesChangeNothing(t *testing.T) {
	tests := []struct {
		what   string
		header []string
		status int
	}{
		{"a program sends no origin", nil, 201},
		{"a page of ours", []string{"Sec-Fetch-Site", "same-origin"}, 201},
		{"a page elsewhere", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"a page on another port", []string{"Sec-Fetch-Site", "same-site"}, 403},
		{"an old browser with a foreign origin", []string{"Origin", "http://evil.example"}, 403},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			y := newYard(t)
			y.hub("orders", 1)
			if tt.status == http.StatusForbidden {
				y.refused(403, "cross-origin", "POST", "/api/v1/hubs", `{"name":"new"}`, tt.header...)
				y.refused(403, "cross-origin", "DELETE", "/api/v1/hubs/orders", nil, tt.header...)
			} else {
				y.want(201, "POST", "/api/v1/hubs", `{"name":"new"}`, tt.header...)
			}
			y.want(tt.status, "POST", "/orders/messages", "x", append(tt.header, "Content-Type", "text/plain")...)
			y.want(200, "GET", "/api/v1/hubs/orders", nil, tt.header...)
		})
	}
}
