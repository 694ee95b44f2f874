package console

import (
	"strings"
	"testing"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/testkit"
)

func fixedKafkaGroup() admin.KafkaGroup {
	return admin.KafkaGroup{
		Name: "readers", Kind: "classic", State: "Stable", Type: "consumer", Protocol: "cooperative-sticky", Generation: 7, Members: 1,
		Hubs: []string{"sensors"}, Node: "node-1",
	}
}

func fixedKafkaTable() admin.KafkaGroupTable {
	return admin.KafkaGroupTable{
		KafkaGroup: fixedKafkaGroup(), Hub: "sensors", At: *apiTime(0), LagEvents: 12,
		Instances: []admin.KafkaMember{{ID: "app-1-abc", Instance: "i-1", Client: "app-1", Host: "10.0.0.7", Partitions: 1}},
		Partitions: []admin.KafkaPartition{
			{Partition: "0", Owner: "app-1-abc", Client: "app-1", Committed: new(int64(88)), Last: 99, LagEvents: new(int64(12)), LagSeconds: new(3.0)},
			{Partition: "1", Last: 4},
		},
	}
}

// V1, P6: the groups of a hub have those of Kafka's consumers among them, each with a page of its members, offsets and lag.
func TestKafkaGroupsAreOnPages(t *testing.T) {
	_, _, h := newFixture(fixed())
	list := get(h, base+"hubs/sensors/groups").Body.String()
	for _, want := range []string{"Kafka groups", at("hubs", "sensors", "kafka-groups", "readers"), "Stable"} {
		testkit.That(t, strings.Contains(list, want), "the list of groups has no %q", want)
	}
	page := get(h, at("hubs", "sensors", "kafka-groups", "readers")).Body.String()
	for _, want := range []string{"Kafka group", "app-1-abc", "10.0.0.7", "cooperative-sticky", ">88<", ">12<", "group show sensors readers --kafka"} {
		testkit.That(t, strings.Contains(page, want), "the page of a group has no %q", want)
	}
}

// V2, P6: who got an event of a hub: Kafka groups, too, on the page of its journey, on its own and beside the list.
func TestKafkaGroupsAreAmongWhoGotAnEvent(t *testing.T) {
	_, _, h := newFixture(fixed())
	for _, path := range []string{"events?id=0/41&in=hubs/sensors", "hubs/sensors/partitions/0/events/41", "hubs/sensors/events?show=0/41"} {
		page := get(h, base+path).Body.String()
		for group, says := range map[string]string{"readers": `<span class="good">past it</span>`, "late": `<span class="odd">not yet</span>`, "new": `<span class="soft">no offset</span>`} {
			_, rest, found := strings.Cut(page, `<a href="`+at("hubs", "sensors", "kafka-groups", group)+`">`)
			row, _, _ := strings.Cut(rest, "</li>")
			testkit.That(t, found && strings.HasSuffix(row, says), "%s has of Kafka group %s %q, want %s", path, group, row, says)
		}
		testkit.That(t, strings.Contains(page, "Kafka group"), "%s does not say that they are Kafka groups", path)
	}
}
