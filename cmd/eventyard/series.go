package main

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/config/quantity"
	"github.com/spf13/cobra"
)

const seriesHelp = `Show how figures of the yard went over the last minutes or hours, over all nodes: published, bytes,
read, delivered, failed, dead (events a second), waiting, lag, lag-seconds (as they stand), calls and
failed-calls of functions. Without a name they are of the whole yard. Each node keeps a day in memory, since its
start; for longer have Prometheus read /metrics.`

// maxSpan is how far back nodes know.
const maxSpan = 24 * time.Hour

func (c *cli) seriesCommand() *cobra.Command {
	var q admin.SeriesQuery
	cmd := &cobra.Command{
		Use: "series FIGURE...", Short: "Show how figures went over the last minutes or hours", Long: seriesHelp,
		Example: "  eventyard series published read --hub orders\n  eventyard series lag-seconds --hub orders --group billing --span 2h -o json",
	}
	for _, name := range []struct {
		to         *string
		flag, help string
	}{
		{&q.Hub, "hub", "of a hub"}, {&q.Group, "group", "of a consumer group of the hub"}, {&q.Topic, "topic", "of a topic"},
		{&q.DomainTopic, "domain-topic", "of a topic of the domain that --topic names"},
		{&q.Subscription, "subscription", "of a subscription of the topic or hub"}, {&q.Function, "function", "of a function"},
	} {
		cmd.Flags().StringVar(name.to, name.flag, "", name.help)
	}
	for _, flag := range []string{"follow", "watch"} {
		lacks(cmd, flag, "this shows a time that is over, --span of it; eventyard status shows how things are now")
	}
	addDuration(cmd.Flags(), &q.Span, "span", 15*time.Minute, "how far back, up to 24h")
	return printing(c, cmd, func(cmd *cobra.Command, client *admin.Client, args []string) (admin.SeriesList, error) {
		if q.Span > maxSpan {
			return admin.SeriesList{}, usagef(cmd, "--span %s: the most is %s; for longer ask Prometheus, which reads /metrics", quantity.FormatDuration(q.Span), quantity.FormatDuration(maxSpan))
		}
		q.Of = args
		return client.Series(cmd.Context(), q)
	}, c.printSeries)
}

func (c *cli) printSeries(got admin.SeriesList) error {
	t := newTable(c.stdout, "FIGURE", "NOW", "MEAN", "MOST", "UNIT", "FROM "+showSeriesTime(got.Series))
	for _, s := range got.Series {
		now, mean, most := sumUp(s.Values)
		t.row(s.Of, now, mean, most, s.Unit, sparkline(s.Values, sparkWidth))
	}
	if err := t.flush(); err != nil {
		return err
	}
	c.printMissing(got.Missing)
	known := func(v *float64) bool { return v != nil }
	if !slices.ContainsFunc(got.Series, func(s admin.Series) bool { return slices.ContainsFunc(s.Values, known) }) {
		fmt.Fprintln(c.stderr, "nothing was counted of that in this time: see whether the names are right, or look further back with --span")
	}
	return nil
}

// printMissing names nodes whose part is not in what was shown.
func (c *cli) printMissing(nodes []string) {
	if len(nodes) > 0 {
		fmt.Fprintf(c.stdout, "without %s, which did not answer\n", oneLine(strings.Join(nodes, ", ")))
	}
}

func showSeriesTime(all []admin.Series) string {
	if len(all) == 0 {
		return ""
	}
	return showTime(all[0].From) + " TO NOW"
}

// sumUp tells the newest value, the mean and the largest; "-" where nothing is known.
func sumUp(values []*float64) (now, mean, most string) {
	sum, count, largest, newest := 0.0, 0.0, math.Inf(-1), math.NaN()
	for _, v := range values {
		if v != nil {
			sum, count, largest, newest = sum+*v, count+1, max(largest, *v), *v
		}
	}
	if count == 0 {
		return "-", "-", "-"
	}
	return roughNumber(newest), roughNumber(sum / count), roughNumber(largest)
}

// roughNumber writes a rate for people: 6,667, 41.3, 0.02.
func roughNumber(v float64) string {
	switch x := math.Abs(v); {
	case x >= 100 || v == math.Trunc(v):
		return thousands(int64(math.Round(v)))
	case x >= 1:
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("%.2g", v)
}

// sparkWidth is how many columns a line of values takes at most.
const sparkWidth = 60

// sparkline draws values in so many columns, each the largest of its part; a space is what is unknown.
func sparkline(values []*float64, width int) string {
	most := 0.0
	for _, v := range values {
		if v != nil {
			most = max(most, *v)
		}
	}
	levels := []rune("▁▂▃▄▅▆▇█")
	width = min(width, len(values))
	var b strings.Builder
	for i := range width {
		largest := -1.0
		for _, v := range values[i*len(values)/width : (i+1)*len(values)/width] {
			if v != nil {
				largest = max(largest, *v)
			}
		}
		switch {
		case largest < 0:
			b.WriteByte(' ')
		case most == 0:
			b.WriteRune(levels[0])
		default:
			b.WriteRune(levels[int(largest/most*float64(len(levels)-1))])
		}
	}
	return b.String()
}
