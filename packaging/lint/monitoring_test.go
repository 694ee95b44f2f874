package lint

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/prometheus/promql/parser"
	"go.yaml.in/yaml/v3"
)

// V7: Prometheus understands each alert, and each says what to do. That the metrics exist is tested
// where they are, in package server.
func TestAlerts(t *testing.T) {
	var alerts struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr, For    string
				Labels, Annotations map[string]string
			}
		}
	}
	decoder := yaml.NewDecoder(bytes.NewReader(read(t, "../monitoring/alerts.yaml")))
	decoder.KnownFields(true)
	if err := decoder.Decode(&alerts); err != nil {
		t.Fatal(err)
	}
	for _, rule := range alerts.Groups[0].Rules {
		parse(t, rule.Alert, rule.Expr)
		severity := rule.Labels["severity"]
		if rule.Annotations["summary"] == "" || rule.Annotations["action"] == "" || severity != "warning" && severity != "critical" {
			t.Errorf("%s does not say what is wrong, what to do, or how bad it is", rule.Alert)
		}
	}
}

// V7: Prometheus understands each query of the dashboard.
func TestDashboard(t *testing.T) {
	var dashboard struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(read(t, "../monitoring/grafana.json"), &dashboard); err != nil {
		t.Fatal(err)
	}
	for _, panel := range dashboard.Panels {
		for _, target := range panel.Targets {
			parse(t, panel.Title, strings.ReplaceAll(target.Expr, "$__rate_interval", "5m"))
		}
	}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func parse(t *testing.T, what, query string) {
	t.Helper()
	if _, err := parser.NewParser(parser.Options{}).ParseExpr(query); err != nil {
		t.Errorf("%s: %v", what, err)
	}
}
