package server

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/eventyard/eventyard/internal/storage/jetstream/natstest"
	"github.com/eventyard/eventyard/internal/storage/meta/sealed"
	"github.com/eventyard/eventyard/internal/storage/testengine"
	"github.com/eventyard/eventyard/internal/testkit"
)

var (
	description = regexp.MustCompile(`fqName: "(\w+)".*constLabels: {(.*)}, variableLabels: {(.*)}}`)
	metricName  = regexp.MustCompile(`\b(?:eventyard|process|go)_[a-z0-9_]+`)
	labelNames  = regexp.MustCompile(`\bby \(([a-z_, ]+)\)|\b([a-z_]+)(?:=|!=|=~|!~)"`)
	labelName   = regexp.MustCompile(`[a-z_]+`)
)

// scraped are the labels that Prometheus adds, and that of a histogram's buckets.
var scraped = []string{"instance", "job", "le"}

// V7: what the dashboard shows and what alerts are about is there, and is labelled so: a query for what
// is not there is right in Prometheus' eyes, and empty for ever.
func TestDashboardAndAlertsAskForMetricsThatThereAre(t *testing.T) {
	testengine.NeedsFiles(t) // some are about the disk
	known := describedMetrics(allRegistries(t)...)
	testkit.That(t, len(known) > 60, "yards have %d metrics", len(known))
	for source, queries := range monitoringQueries(t) {
		testkit.That(t, len(queries) > 15, "%s has %d queries", source, len(queries))
		for _, query := range queries {
			labels := slices.Clone(scraped)
			for _, name := range metricName.FindAllString(query, -1) {
				of, ok := known[strings.TrimSuffix(name, "_bucket")]
				testkit.That(t, ok, "%s: there is no metric %s", source, name)
				labels = append(labels, of...)
			}
			for _, m := range labelNames.FindAllStringSubmatch(query, -1) {
				for _, label := range labelName.FindAllString(m[1]+m[2], -1) {
					testkit.That(t, slices.Contains(labels, label), "%s: nothing has a label %s in %s", source, label, query)
				}
			}
		}
	}
}

// V7, C1: what alerts and dashboard are about is there at a node as well, but for what the engine of one machine counts,
// and for its disk where the servers have one of their own. A peer tells of its disk: see TestNodesBesidePeers.
func TestDashboardAndAlertsAreAboutNodesToo(t *testing.T) {
	known := describedMetrics(registryOf(t, nodeOnServers(t)))
	for source, queries := range monitoringQueries(t) {
		for _, query := range queries {
			for _, name := range metricName.FindAllString(query, -1) {
				_, there := known[strings.TrimSuffix(name, "_bucket")]
				testkit.That(t, there || strings.HasPrefix(name, "eventyard_disk_"), "%s: a node has no %s", source, name)
			}
		}
	}
}

// toWatch finds what one would want to see of each listener: who is there, what is asked, what is refused or fails.
var toWatch = regexp.MustCompile(`^eventyard_([a-z]+)_(?:connections|refused_total|requests_total|errors_total|damage_passed_total)$`)

// V7: every listener is on the dashboard, with all of that, and damage that its readers met is one to be warned of.
func TestEveryListenerIsOnTheDashboard(t *testing.T) {
	known := describedMetrics(registryOf(t, everyListener(t)))
	all := monitoringQueries(t)
	dashboard, alerts := strings.Join(all["grafana.json"], "\n"), strings.Join(all["alerts.yaml"], "\n")
	seen := map[string]bool{}
	for name := range known {
		if m := toWatch.FindStringSubmatch(name); m != nil {
			seen[m[1]] = true
			testkit.That(t, strings.Contains(dashboard, name+"{"), "the dashboard does not show %s", name)
			testkit.That(t, !strings.HasSuffix(name, "_damage_passed_total") || strings.Contains(alerts, name), "no alert is about %s", name)
		}
	}
	for _, listener := range []string{"amqp", "http", "kafka", "grid", "blob"} {
		testkit.That(t, seen[listener], "no such metric of %s was found", listener)
	}
}

// allRegistries are those of a yard on one machine with all that it can have, and of a node.
func allRegistries(t *testing.T) []*prometheus.Registry {
	t.Helper()
	one := everyListener(t)
	one.Tracer = countingTracer{}
	return []*prometheus.Registry{registryOf(t, one), registryOf(t, nodeOnServers(t))}
}

// nodeOnServers is a node with all listeners that shares a yard on NATS servers.
func nodeOnServers(t *testing.T) Config {
	t.Helper()
	cfg := onYard(t, natstest.Shared(t, 1), natstest.Yard(), "a", sealed.NewKey())
	cfg.AMQP, cfg.AMQPS, cfg.Kafka, cfg.Kafkas, cfg.Tracer = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0", countingTracer{}
	return cfg
}

// registryOf has what a yard registers, which runs until the test ends.
func registryOf(t *testing.T, cfg Config) *prometheus.Registry {
	t.Helper()
	return testkit.Value(start(t, cfg).enter(t.Context()))(t).yard.registry
}

// describedMetrics gives the labels of all metrics by name, also of those that have no value yet.
func describedMetrics(registries ...*prometheus.Registry) map[string][]string {
	all := make(chan *prometheus.Desc)
	go func() { // ends with the loop
		defer close(all)
		for _, registry := range registries {
			registry.Describe(all)
		}
	}()
	known := map[string][]string{}
	for desc := range all {
		if m := description.FindStringSubmatch(desc.String()); m != nil {
			known[m[1]] = append(known[m[1]], labelName.FindAllString(m[2]+","+m[3], -1)...)
		}
	}
	return known
}

// monitoringQueries are all of alerts and dashboard, by file.
func monitoringQueries(t *testing.T) map[string][]string {
	t.Helper()
	return map[string][]string{
		"alerts.yaml": alertQueries(t, "../packaging/monitoring/alerts.yaml"), "grafana.json": dashboardQueries(t, "../packaging/monitoring/grafana.json"),
	}
}

func alertQueries(t *testing.T, file string) (queries []string) {
	var alerts struct {
		Groups []struct {
			Rules []struct{ Expr string }
		}
	}
	testkit.Must(t, yaml.Unmarshal(testkit.Value(os.ReadFile(file))(t), &alerts))
	for _, group := range alerts.Groups {
		for _, rule := range group.Rules {
			queries = append(queries, rule.Expr)
		}
	}
	return queries
}

func dashboardQueries(t *testing.T, file string) (queries []string) {
	var dashboard struct {
		Panels []struct {
			Targets []struct{ Expr string }
		}
	}
	testkit.Must(t, json.Unmarshal(testkit.Value(os.ReadFile(file))(t), &dashboard))
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			queries = append(queries, target.Expr)
		}
	}
	return queries
}
