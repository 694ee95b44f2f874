package server

import (
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/storage/jetstream/natstest"
	"github.com/eventyard/eventyard/internal/storage/meta/sealed"
	"github.com/eventyard/eventyard/internal/storage/testengine"
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

// V7: a node has all metrics of a yard on one machine, but for those of its disk.
func TestNodesHaveTheMetricsOfOneMachine(t *testing.T) {
	testengine.NeedsFiles(t)
	names := func(cfg Config) (all []string) {
		r := start(t, cfg)
		r.mu.Lock()
		registry := r.inside.yard.registry
		r.mu.Unlock()
		for _, d := range described(registry) {
			if found := oneOfOurs.FindStringSubmatch(d); found != nil {
				all = append(all, found[1])
			}
		}
		r.shutdown()
		return all
	}
	one := everyListener(t)
	several := one
	node := onYard(t, natstest.Shared(t, 1), natstest.Yard(), "a", sealed.NewKey())
	several.DataDir, several.Engine, several.Node, several.Secrets = node.DataDir, node.Engine, node.Node, node.Secrets
	has := names(several)
	for _, name := range names(one) {
		testkit.That(t, strings.HasPrefix(name, "eventyard_disk_") || slices.Contains(has, name), "a node has no %s", name)
	}
}
