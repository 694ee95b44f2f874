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
	r := start(t, everyListener(t))
	known := describedMetrics(testkit.Value(r.enter(t.Context()))(t).yard.registry)
	testkit.That(t, len(known) > 60, "the yard has %d metrics", len(known))
	for source, queries := range map[string][]string{
		"alerts.yaml": alertQueries(t, "../packaging/monitoring/alerts.yaml"), "grafana.json": dashboardQueries(t, "../packaging/monitoring/grafana.json"),
	} {
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
	r.shutdown()
}

// describedMetrics gives the labels of all metrics by name, also of those that have no value yet.
func describedMetrics(registry *prometheus.Registry) map[string][]string {
	all := make(chan *prometheus.Desc)
	go func() { registry.Describe(all); close(all) }() // ends with the loop
	known := map[string][]string{}
	for desc := range all {
		if m := description.FindStringSubmatch(desc.String()); m != nil {
			known[m[1]] = append(known[m[1]], labelName.FindAllString(m[2]+","+m[3], -1)...)
		}
	}
	return known
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
