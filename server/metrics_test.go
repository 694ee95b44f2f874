package server

import (
	"net/http"
	"regexp"
	"strings"
	"testing"

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
	has := describedMetrics(registryOf(t, nodeOnServers(t)))
	for name := range describedMetrics(registryOf(t, everyListener(t))) {
		_, there := has[name]
		testkit.That(t, there || strings.HasPrefix(name, "eventyard_disk_"), "a node has no %s", name)
	}
}

// V7, C1: a node that is scraped tells how the yard is on its servers.
func TestMetricsOfTheCluster(t *testing.T) {
	r := start(t, nodeOnServers(t))
	for _, want := range []string{
		`eventyard_ready 1`, `eventyard_cluster_nodes{state="live"} 1`, `eventyard_cluster_nodes{state="lost"} 0`,
	} {
		metrics := r.want(http.StatusOK, "GET", "/metrics", "")
		testkit.That(t, strings.Contains(metrics, "\n"+want+"\n"), "the metrics have no %s", want)
	}
	for _, want := range []string{
		`eventyard_cluster_streams [1-9]\d*`, `eventyard_cluster_lost_streams 0`, `eventyard_cluster_leaderless_streams 0`,
		`eventyard_cluster_offline_streams 0`, `eventyard_cluster_lagging_streams 0`, `eventyard_cluster_servers_led 1`, `eventyard_cluster_stream_gaps \d+`, `eventyard_cluster_unheld_shards \d+`,
	} {
		testkit.Eventually(t, "the metrics to have "+want, func() bool {
			return regexp.MustCompile(`(?m)^` + want + `$`).MatchString(r.want(http.StatusOK, "GET", "/metrics", ""))
		})
	}
	r.shutdown()
}
