package handler

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/storage/meta/metatest"
	"github.com/eventyard/eventyard/internal/testkit"
)

// creation asks for topics of so many partitions, with settings as name and value.
func creation(name string, partitions int32, settings ...string) *kmsg.CreateTopicsRequest {
	r := kmsg.NewPtrCreateTopicsRequest()
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = name, partitions, 3
	for i := 0; i < len(settings); i += 2 {
		c := kmsg.NewCreateTopicsRequestTopicConfig()
		c.Name, c.Value = settings[i], &settings[i+1]
		t.Configs = append(t.Configs, c)
	}
	r.Topics = append(r.Topics, t)
	return r
}

// K1: topics are hubs, which clients make and delete.
func TestTopicsAreMadeAndDeleted(t *testing.T) {
	y := newYard(t)
	c := y.client()
	made := ask[*kmsg.CreateTopicsResponse](c, 7, creation("orders", 2, "retention.ms", "3600000")).Topics[0]
	testkit.MustEqual(t, made.ErrorCode, codeNone)
	hub := testkit.Value(y.broker.Hub("orders"))(t)
	testkit.Equal(t, made.TopicID, hub.ID, "id")
	testkit.Equal(t, made.NumPartitions, int32(2), "partitions")
	testkit.Equal(t, hub.Retention, broker.Retention{Age: time.Hour}, "retention")

	for _, version := range []int16{2, 7} {
		again := ask[*kmsg.CreateTopicsResponse](c, version, creation("ORDERS", 2)).Topics[0]
		testkit.Equal(t, again.ErrorCode, codeTopicExists, "code of one that exists")
		testkit.That(t, again.ErrorMessage != nil, "there is no text")
	}
	testkit.Equal(t, ask[*kmsg.CreateTopicsResponse](c, 7, creation("default", -1)).Topics[0].NumPartitions, int32(broker.DefaultPartitions), "partitions by default")

	byID := kmsg.NewPtrDeleteTopicsRequest()
	byID.Topics = []kmsg.DeleteTopicsRequestTopic{{TopicID: hub.ID}, {Topic: kmsg.StringPtr("nobody")}, {TopicID: [16]byte{1}}}
	deleted := ask[*kmsg.DeleteTopicsResponse](c, 6, byID).Topics
	testkit.Equal(t, deleted[0].ErrorCode, codeNone, "code by id")
	testkit.Equal(t, *deleted[0].Topic, "orders", "name by id")
	testkit.Equal(t, deleted[1].ErrorCode, codeUnknownTopic, "code of a name that nobody has")
	testkit.Equal(t, deleted[2].ErrorCode, codeUnknownID, "code of an id that nobody has")
	byName := kmsg.NewPtrDeleteTopicsRequest()
	byName.TopicNames = []string{"Default"}
	testkit.Equal(t, ask[*kmsg.DeleteTopicsResponse](c, 3, byName).Topics[0].ErrorCode, codeNone, "code by name")
	testkit.Equal(t, len(y.broker.Hubs()), 0, "hubs that are left")
}

func TestTopicsThatCannotBeMade(t *testing.T) {
	y := newYard(t)
	y.hub("orders", 1)
	c := y.client()
	twice := creation("twin", 1)
	twice.Topics = append(twice.Topics, creation("TWIN", 1).Topics...)
	for what, tt := range map[string]struct {
		request *kmsg.CreateTopicsRequest
		code    int16
	}{
		"a name that cannot be":        {creation("no such name", 1), codeInvalidTopic},
		"a name that is reserved":      {creation("api", 1), codeInvalidTopic},
		"no partitions":                {creation("x", 0), codePartitions},
		"too many partitions":          {creation("x", 5000), codePartitions},
		"a setting that is none":       {creation("x", 1, "colour", "red"), codeInvalidConfig},
		"a setting that cannot be so":  {creation("x", 1, "compression.type", "zstd"), codeInvalidConfig},
		"a retention that is none":     {creation("x", 1, "retention.ms", "0"), codeInvalidConfig},
		"the same, named twice":        {twice, codeInvalidRequest},
		"one that exists":              {creation("Orders", 1), codeTopicExists},
		"a policy that nobody follows": {creation("x", 1, "cleanup.policy", "burn"), codeInvalidConfig},
	} {
		for _, only := range []bool{true, false} {
			tt.request.ValidateOnly = only
			testkit.Equal(t, ask[*kmsg.CreateTopicsResponse](c, 7, tt.request).Topics[0].ErrorCode, tt.code, "code of %s", what)
		}
	}
	good := creation("good", 3)
	good.ValidateOnly = true
	made := ask[*kmsg.CreateTopicsResponse](c, 7, good).Topics[0]
	testkit.Equal(t, made.ErrorCode, codeNone, "code of one that could be made")
	testkit.Equal(t, made.NumPartitions, int32(3), "its partitions")
	testkit.Equal(t, len(y.broker.Hubs()), 1, "hubs")

	assigned := creation("assigned", -1)
	for i := range int32(5) {
		a := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
		a.Partition, a.Replicas = i, []int32{1}
		assigned.Topics[0].ReplicaAssignment = append(assigned.Topics[0].ReplicaAssignment, a)
	}
	testkit.Equal(t, ask[*kmsg.CreateTopicsResponse](c, 7, assigned).Topics[0].NumPartitions, int32(5), "partitions that were assigned")
}

func TestPartitionsStayAsTheyAre(t *testing.T) {
	y := newYard(t)
	y.hub("orders", 2)
	r := kmsg.NewPtrCreatePartitionsRequest()
	r.Topics = []kmsg.CreatePartitionsRequestTopic{{Topic: "orders", Count: 4}, {Topic: "nobody", Count: 4}}
	got := ask[*kmsg.CreatePartitionsResponse](y.client(), 3, r).Topics
	testkit.Equal(t, got[0].ErrorCode, codePartitions, "code")
	testkit.Equal(t, *got[0].ErrorMessage, broker.ErrPartitionsFixed.Error()+": it has 2: create another topic with 4")
	testkit.Equal(t, got[1].ErrorCode, codeUnknownTopic, "code of a hub that is not there")
}

// K1: who deletes a topic by its id means that one, and none that was made anew under its name.
func TestDeletionByID(t *testing.T) {
	y := newYard(t)
	c := y.client()
	first := y.hub("orders", 1)
	deletion := func(id [16]byte) kmsg.DeleteTopicsResponseTopic {
		r := kmsg.NewPtrDeleteTopicsRequest()
		r.Topics = []kmsg.DeleteTopicsRequestTopic{{TopicID: id}}
		return ask[*kmsg.DeleteTopicsResponse](c, 6, r).Topics[0]
	}
	y.storage.Meta.Inject(func(op metatest.Op) error { // between finding the hub and deleting it
		if op.Kind == metatest.OpGet && op.Under("hubs/") {
			y.storage.Meta.Inject(nil)
			testkit.Must(t, y.broker.DeleteHub(t.Context(), "orders"))
			y.hub("orders", 1)
		}
		return nil
	})
	testkit.Equal(t, deletion(first.ID).ErrorCode, codeUnknownID, "code of one that was made anew")
	second := testkit.Value(y.broker.Hub("orders"))(t)
	testkit.That(t, second.ID != first.ID, "it was not made anew")
	testkit.Equal(t, deletion(second.ID).ErrorCode, codeNone, "code of the one that there is")
	testkit.Equal(t, len(y.broker.Hubs()), 0, "hubs")
}
