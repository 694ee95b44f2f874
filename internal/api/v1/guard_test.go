package v1

import (
	"net/http"
	"testing"
)

// Web pages of other origins change nothing, with or without loopback. A grid delivers to hubs, and
// nothing else.
func TestForeignPagesChangeNothing(t *testing.T) {
	for _, tt := range []struct {
		what   string
		header []string
		status int
	}{
		{"a program sends no origin", nil, 201},
		{"a page of ours", []string{"Sec-Fetch-Site", "same-origin"}, 201},
		{"a page elsewhere", []string{"Sec-Fetch-Site", "cross-site"}, 403},
		{"a page on another port", []string{"Sec-Fetch-Site", "same-site"}, 403},
		{"an old browser with a foreign origin", []string{"Origin", "http://evil.example"}, 403},
		{"a page that claims to be one", []string{"Sec-Fetch-Site", "cross-site", "Origin", "http://evil.example", "WebHook-Request-Origin", "eventgrid.azure.net"}, 403},
	} {
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
	y, grid := newYard(t), []string{"Origin", "eventgrid.azure.net", "WebHook-Request-Origin", "eventgrid.azure.net"}
	y.hub("orders", 1)
	y.want(201, "POST", "/orders/messages", "x", append(grid, "Content-Type", "text/plain")...)
	y.refused(403, "cross-origin", "POST", "/api/v1/hubs", `{"name":"new"}`, grid...)
}
