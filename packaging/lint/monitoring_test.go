package lint

import (
	"encoding/json"
	"log/slog"
	"os"
	"strings"
	"testing"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/rulefmt"
	"github.com/prometheus/prometheus/promql/parser"
)

// V7: Prometheus takes the file as promtool would, with each query and each template in it, and each alert says
// what to do. That the metrics exist is tested
// where they are, in package server.
func TestAlerts(t *testing.T) {
	alerts, errs := rulefmt.Parse(read(t, "../monitoring/alerts.yaml"), false, model.LegacyValidation, parser.NewParser(parser.Options{}), slog.New(slog.DiscardHandler))
	for _, err := range errs {
		t.Error(err)
	}
	if t.Failed() {
		return
	}
	if len(alerts.Groups) != 1 || len(alerts.Groups[0].Rules) < 10 {
		t.Errorf("there are %d groups of alerts", len(alerts.Groups))
	}
	for _, rule := range alerts.Groups[0].Rules {
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
