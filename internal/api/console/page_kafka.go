package console

import (
	"strconv"

	"github.com/eventyard/eventyard/admin"
)

// kafkaGroupsOf are the Kafka groups that are about a hub; none where one may not hear of them. Each has positions of its
// own, also where the hub has a group of its name.
func kafkaGroupsOf(v *visit, hub string) []admin.KafkaGroup {
	if !v.may("Listen", hub) {
		return nil
	}
	all, err := v.api.KafkaGroups(v.ctx, hub)
	if err != nil { // the hub's own are worth showing without them
		return nil
	}
	return all
}

// kafkaGroupView is who is in a Kafka group, and how far it is in a hub. // P6
type kafkaGroupView struct {
	admin.KafkaGroupTable
	Rows    []kafkaRow
	Pages   pager
	Command string
}

type kafkaRow struct {
	admin.KafkaPartition
	At, End, Lag, Seconds string
}

var kafkaGroupPage = page{template: "kafkagroup", load: loadKafkaGroup}

func loadKafkaGroup(v *visit) (*screen, error) {
	t, err := v.api.KafkaGroup(v.ctx, v.name("hub"), v.name("group"))
	if err != nil {
		return nil, err
	}
	view := kafkaGroupView{KafkaGroupTable: t, Pages: pageOf(v, len(t.Partitions)), Command: command("group", "show", t.Hub, t.Name, "--kafka")}
	for _, p := range t.Partitions[view.Pages.From:view.Pages.To] {
		row := kafkaRow{KafkaPartition: p, At: "–", End: strconv.FormatInt(p.Last+1, 10), Lag: "–", Seconds: "–"}
		if p.Committed != nil {
			row.At = strconv.FormatInt(*p.Committed, 10)
		}
		if p.LagEvents != nil {
			row.Lag = number(*p.LagEvents)
		}
		if p.LagSeconds != nil {
			row.Seconds = span(seconds(*p.LagSeconds))
		}
		view.Rows = append(view.Rows, row)
	}
	s := &screen{Title: t.Name, Section: "hubs", Guide: "kafka", View: view}
	s.Crumbs = []crumb{{"Hubs", at("hubs")}, {t.Hub, at("hubs", t.Hub)}, {"Groups", at("hubs", t.Hub, "groups")}, {Name: t.Name}}
	return s, nil
}
