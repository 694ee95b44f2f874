package server

import (
	"net/http"
	"regexp"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

// V7: what an operator is warned by: room on the disk, the end of the certificate, refused keys, and which
// version it is.
func TestFiguresOfTheYard(t *testing.T) {
	cfg := everyListener(t)
	cfg.Version = "1.2.3"
	r := start(t, cfg)
	request := r.request("GET", "/api/v1/hubs", nil)
	request.SetBasicAuth("nobody", "wrong")
	response := testkit.Value(http.DefaultClient.Do(request))(t)
	testkit.Must(t, response.Body.Close())
	testkit.Equal(t, response.StatusCode, http.StatusUnauthorized)
	metrics := r.want(200, "GET", "/metrics", "")
	for _, want := range []string{
		`eventyard_build_info{go="go[^"]+",version="1\.2\.3"} 1`,
		`eventyard_access_refused_total 1`,
		`eventyard_disk_free_bytes [1-9]`,
		`eventyard_disk_size_bytes [1-9]`,
		`eventyard_certificate_expiry_timestamp_seconds [1-9]`,
	} {
		testkit.That(t, regexp.MustCompile(`(?m)^`+want).MatchString(metrics), "the metrics have no %s", want)
	}
	r.shutdown()
}
