package handler

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/kafka"
	"github.com/eventyard/eventyard/internal/testkit"
)

// operation does one thing to a hub, and gives the code that came of it.
type operation struct {
	what string
	// need is the right without which it is refused, on the hub or, where it concerns no hub that there
	// is, on the namespace.
	need      auth.Rights
	namespace bool
	code      int16 // of the refusal
	do        func(c *client, hub broker.Hub) int16
}

var operations = []operation{
	{"Produce", auth.Send, false, codeTopicRights, func(c *client, hub broker.Hub) int16 { return c.produce(hub, 0, values("x")).ErrorCode }},
	{"InitProducerId", auth.Send, false, codeClusterRights, func(c *client, _ broker.Hub) int16 {
		return ask[*kmsg.InitProducerIDResponse](c, 5, kmsg.NewPtrInitProducerIDRequest()).ErrorCode
	}},
	{"Fetch by id", auth.Listen, false, codeTopicRights, func(c *client, hub broker.Hub) int16 { return c.fetch(hub, 0, 0).ErrorCode }},
	{"Fetch by name", auth.Listen, false, codeTopicRights, func(c *client, hub broker.Hub) int16 {
		return c.fetchBy(12, fetchRequest(at{hub, 0, 0})).ErrorCode
	}},
	{"ListOffsets", auth.Listen, false, codeTopicRights, func(c *client, hub broker.Hub) int16 { return c.offset(11, hub.Name, 0, atEnd).ErrorCode }},
	{"OffsetForLeaderEpoch", auth.Listen, false, codeTopicRights, func(c *client, hub broker.Hub) int16 {
		r := kmsg.NewPtrOffsetForLeaderEpochRequest()
		r.Topics = []kmsg.OffsetForLeaderEpochRequestTopic{{Topic: hub.Name, Partitions: []kmsg.OffsetForLeaderEpochRequestTopicPartition{kmsg.NewOffsetForLeaderEpochRequestTopicPartition()}}}
		return ask[*kmsg.OffsetForLeaderEpochResponse](c, 4, r).Topics[0].Partitions[0].ErrorCode
	}},
	{"Metadata", anyRight, false, codeTopicRights, func(c *client, hub broker.Hub) int16 {
		return ask[*kmsg.MetadataResponse](c, 13, metadataOf(hub.Name)).Topics[0].ErrorCode
	}},
	{"DescribeTopicPartitions", anyRight, false, codeTopicRights, func(c *client, hub broker.Hub) int16 {
		r := kmsg.NewPtrDescribeTopicPartitionsRequest()
		r.Topics = []kmsg.DescribeTopicPartitionsRequestTopic{{Topic: hub.Name}}
		return ask[*kmsg.DescribeTopicPartitionsResponse](c, 0, r).Topics[0].ErrorCode
	}},
	{"DescribeConfigs", anyRight, false, codeTopicRights, func(c *client, hub broker.Hub) int16 {
		code, _ := c.shown(kmsg.ConfigResourceTypeTopic, hub.Name)
		return code
	}},
	{"AlterConfigs", auth.Manage, false, codeTopicRights, func(c *client, hub broker.Hub) int16 {
		r := kmsg.NewPtrAlterConfigsRequest()
		r.Resources = []kmsg.AlterConfigsRequestResource{{ResourceType: kmsg.ConfigResourceTypeTopic, ResourceName: hub.Name}}
		return ask[*kmsg.AlterConfigsResponse](c, 2, r).Resources[0].ErrorCode
	}},
	{"IncrementalAlterConfigs", auth.Manage, false, codeTopicRights, func(c *client, hub broker.Hub) int16 {
		r := kmsg.NewPtrIncrementalAlterConfigsRequest()
		r.Resources = []kmsg.IncrementalAlterConfigsRequestResource{{ResourceType: kmsg.ConfigResourceTypeTopic, ResourceName: hub.Name}}
		return ask[*kmsg.IncrementalAlterConfigsResponse](c, 1, r).Resources[0].ErrorCode
	}},
	{"OffsetCommit", auth.Listen, false, codeTopicRights, func(c *client, hub broker.Hub) int16 { return c.commit(10, hub, "readers", 0, 1) }},
	{"OffsetFetch", auth.Listen, false, codeTopicRights, func(c *client, hub broker.Hub) int16 {
		r := kmsg.NewPtrOffsetFetchRequest()
		r.Groups = []kmsg.OffsetFetchRequestGroup{{Group: "readers", MemberEpoch: -1, Topics: []kmsg.OffsetFetchRequestGroupTopic{{TopicID: hub.ID, Partitions: []int32{0}}}}}
		g := ask[*kmsg.OffsetFetchResponse](c, 10, r).Groups[0]
		if g.ErrorCode != codeNone {
			return g.ErrorCode
		}
		return g.Topics[0].Partitions[0].ErrorCode
	}},
	{"DescribeGroups", auth.Listen, false, codeGroupRights, func(c *client, _ broker.Hub) int16 {
		r := kmsg.NewPtrDescribeGroupsRequest()
		r.Groups = []string{"readers"}
		return ask[*kmsg.DescribeGroupsResponse](c, 6, r).Groups[0].ErrorCode
	}},
	{"OffsetDelete", auth.Listen, false, codeTopicRights, func(c *client, hub broker.Hub) int16 {
		r := kmsg.NewPtrOffsetDeleteRequest()
		r.Group, r.Topics = "readers", []kmsg.OffsetDeleteRequestTopic{{Topic: hub.Name, Partitions: []kmsg.OffsetDeleteRequestTopicPartition{{}}}}
		answer := ask[*kmsg.OffsetDeleteResponse](c, 0, r)
		if answer.ErrorCode != codeNone {
			return answer.ErrorCode
		}
		return answer.Topics[0].Partitions[0].ErrorCode
	}},
	{"CreateTopics", auth.Manage, true, codeTopicRights, func(c *client, _ broker.Hub) int16 {
		r := creation("fresh", 1)
		r.ValidateOnly = true
		return ask[*kmsg.CreateTopicsResponse](c, 7, r).Topics[0].ErrorCode
	}},
	{"DeleteTopics", auth.Manage, false, codeTopicRights, func(c *client, hub broker.Hub) int16 {
		r := kmsg.NewPtrDeleteTopicsRequest()
		r.Topics = []kmsg.DeleteTopicsRequestTopic{{Topic: &hub.Name}}
		return ask[*kmsg.DeleteTopicsResponse](c, 6, r).Topics[0].ErrorCode
	}},
}

// K5: each operation needs its right, to the hub that it is about.
func TestRights(t *testing.T) {
	y := newClosedYard(t)
	hub := y.hub("orders", 1)
	y.hub("others", 1)
	readers := func() { // a group with an offset in the hub
		testkit.MustEqual(t, y.login(auth.RootPolicy).commit(10, hub, "readers", 0, 1), codeNone)
	}
	readers()
	policies := []struct {
		hub, name string
		rights    auth.Rights
	}{
		{"orders", "sends", auth.Send}, {"orders", "listens", auth.Listen}, {"orders", "manages", auth.Manage},
		{"others", "stranger", auth.Manage}, {"", "sends-all", auth.Send}, {"", "listens-all", auth.Listen}, {"", "manages-all", auth.Manage},
	}
	for _, p := range policies {
		y.policy(p.hub, p.name, p.rights)
		c := y.login(p.name)
		for _, op := range operations {
			t.Run(p.name+" "+op.what, func(t *testing.T) {
				reaches := p.hub == "" || p.hub == "orders" && !op.namespace || op.what == "InitProducerId"
				code := op.do(c, hub)
				switch {
				case reaches && p.rights.Has(op.need):
					testkit.Equal(t, code, codeNone, "code")
				case slices.Contains([]string{"OffsetCommit", "OffsetFetch", "OffsetDelete"}, op.what) && !p.rights.Has(auth.Listen):
					testkit.Equal(t, code, codeGroupRights, "code of who may listen to nothing")
				default:
					testkit.Equal(t, code, op.code, "code")
				}
			})
			if op.what == "DeleteTopics" && p.rights == auth.Manage && p.hub != "others" {
				hub = y.hub("orders", 1) // with the hub its policies have gone
				readers()
			}
		}
	}
}

// Who may see some hubs hears of those alone, and not whether there are others.
func TestHubsThatOneMaySee(t *testing.T) {
	y := newClosedYard(t)
	y.hub("orders", 1)
	y.hub("others", 1)
	y.policy("orders", "sends", auth.Send)
	c := y.login("sends")
	all := metadataOf()
	all.IncludeTopicAuthorizedOperations = true
	topics := ask[*kmsg.MetadataResponse](c, 13, all).Topics
	testkit.MustEqual(t, len(topics), 1, "topics")
	testkit.Equal(t, topics[0].AuthorizedOperations, int32(1<<opWrite|1<<opDescribe|1<<opDescribeConfigs), "operations")
	missing := metadataOf("others", "nobody")
	missing.AllowAutoTopicCreation = true
	for _, topic := range ask[*kmsg.MetadataResponse](c, 13, missing).Topics {
		testkit.Equal(t, topic.ErrorCode, codeTopicRights, "code of %s", *topic.Topic)
	}
	testkit.Equal(t, len(y.broker.Hubs()), 2, "hubs")
}

// K5: where the operator allows it, a hub that is named is made for who manages the namespace, and for nobody else.
func TestHubsAreMadeForManagers(t *testing.T) {
	for _, allowed := range []bool{false, true} {
		y := newClosedYard(t, func(_ *yard, cfg *Config) { cfg.AutoCreate = allowed })
		y.hub("orders", 1)
		y.policy("", "manages", auth.Manage)
		y.policy("", "sends", auth.Send)
		y.policy("orders", "elsewhere", auth.Manage)
		name := func(policy, hub string, wants bool) int16 {
			r := metadataOf(hub)
			r.AllowAutoTopicCreation = wants
			return ask[*kmsg.MetadataResponse](y.login(policy), 13, r).Topics[0].ErrorCode
		}
		testkit.Equal(t, name("sends", "new", true), codeUnknownTopic, "allowed: %t", allowed)
		testkit.Equal(t, name("elsewhere", "new", true), codeTopicRights, "allowed: %t", allowed)
		testkit.Equal(t, name("manages", "new", false), codeUnknownTopic, "allowed: %t", allowed)
		want := codeUnknownTopic
		if allowed {
			want = codeNone
		}
		testkit.Equal(t, name("manages", "new", true), want, "allowed: %t", allowed)
		_, err := y.broker.Hub("new")
		testkit.Equal(t, err == nil, allowed, "whether it is there")
	}
}

// K5: a key, a connection string, one for a single hub, and a signature in one let in, each with its rights.
func TestWaysToLogIn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newClosedYard(t)
		y.hub("orders", 1)
		y.hub("others", 1)
		y.policy("", "sends", auth.Send)
		key := keyOf("sends")
		const failed = 58
		text := func(more string) string { return "Endpoint=sb://localhost/;" + more }
		for _, tt := range []struct {
			what, user, password string
			code                 int16
			sees                 []string
		}{
			{"a key", "sends", key, codeNone, []string{"orders", "others"}},
			{"the second key", "sends", key + "2", codeNone, []string{"orders", "others"}},
			{"a connection string", connectionString, text("SharedAccessKeyName=sends;SharedAccessKey=" + key), codeNone, []string{"orders", "others"}},
			{"one for a hub", connectionString, text("SharedAccessKeyName=sends;SharedAccessKey=" + key + ";EntityPath=Orders"), codeNone, []string{"orders"}},
			{"one with a signature", connectionString,
				text("SharedAccessSignature=" + auth.Sign("sb://localhost/others", "sends", key, time.Now().Add(time.Hour))), codeNone, []string{"others"}},
			{"another key", "sends", key + "3", failed, nil},
			{"nobody", "nobody", key, failed, nil},
			{"a connection string that is none", connectionString, "hello", failed, nil},
			{"one for a hub, with another key", connectionString, text("SharedAccessKeyName=sends;SharedAccessKey=x" + key + ";EntityPath=orders"), failed, nil},
		} {
			c := y.client()
			testkit.Equal(t, c.plain(tt.user, tt.password), tt.code, "code of %s", tt.what)
			if tt.code != codeNone {
				continue
			}
			var sees []string
			for _, topic := range ask[*kmsg.MetadataResponse](c, 13, metadataOf()).Topics {
				sees = append(sees, *topic.Topic)
			}
			testkit.That(t, slices.Equal(sees, tt.sees), "%s sees %v", tt.what, sees)
		}
	})
}

// K5: SCRAM is offered, with the keys of all policies of a name.
func TestPasswords(t *testing.T) {
	y := newClosedYard(t)
	y.hub("orders", 1)
	y.policy("", "sends", auth.Send)
	y.policy("orders", "Sends", auth.Listen)
	shake := kmsg.NewPtrSASLHandshakeRequest()
	shake.Mechanism = "SCRAM-SHA-512"
	testkit.Equal(t, ask[*kmsg.SASLHandshakeResponse](y.client(), 1, shake).ErrorCode, codeNone, "code of the handshake")
	h := testkit.Value(New(Config{Broker: y.broker, Access: y.policies, Groups: y.groups, Transactions: y.transactions, Advertise: func(*kafka.Conn) (string, int32) { return "", 0 }}))(t)
	keys := testkit.Value(h.Passwords(t.Context(), "", "SENDS"))(t)
	slices.Sort(keys)
	want := []string{keyOf("sends"), keyOf("sends") + "2", keyOf("Sends"), keyOf("Sends") + "2"}
	slices.Sort(want)
	testkit.Slices(t, keys, want, "keys")
	testkit.Equal(t, len(testkit.Value(h.Passwords(t.Context(), "", "nobody"))(t)), 0, "keys of nobody")
}

// K5: a token for one publisher or one consumer group lets in, and is no right to any hub: without one there are no ids for
// producers, with a transactional id or without, and no groups.
func TestTokensForPartsOfHubs(t *testing.T) {
	y := newClosedYard(t)
	y.hub("orders", 1)
	shown := func(path string) *client {
		c := y.client()
		token := auth.Sign("sb://localhost/orders"+path, auth.RootPolicy, keyOf(auth.RootPolicy), time.Now().Add(time.Hour))
		testkit.MustEqual(t, c.plain(connectionString, "Endpoint=sb://localhost/;SharedAccessSignature="+token), codeNone)
		return c
	}
	for path, code := range map[string]int16{"": codeNone, "/publishers/dev1": codeClusterRights, "/consumergroups/readers": codeClusterRights} {
		c := shown(path)
		testkit.Equal(t, ask[*kmsg.InitProducerIDResponse](c, 5, kmsg.NewPtrInitProducerIDRequest()).ErrorCode, code, "an id, %q", path)
		testkit.Equal(t, initTransactional(c, "app"+path).ErrorCode, code, "with a transactional id, %q", path)
		testkit.Equal(t, ask[*kmsg.ListTransactionsResponse](c, 1, kmsg.NewPtrListTransactionsRequest()).ErrorCode, code, "transactions, %q", path)
		refused := codeNone
		if code != codeNone {
			refused = codeGroupRights
		}
		testkit.Equal(t, ask[*kmsg.ListGroupsResponse](c, 5, kmsg.NewPtrListGroupsRequest()).ErrorCode, refused, "groups, %q", path)
	}
}

// What a signature gives ends with its time, and the connection with it.
func TestRightsEndWithTheirTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		y := newClosedYard(t)
		y.hub("orders", 1)
		c := y.client()
		signature := auth.Sign("sb://localhost/orders", auth.RootPolicy, keyOf(auth.RootPolicy), time.Now().Add(time.Minute))
		testkit.MustEqual(t, c.plain(connectionString, "Endpoint=sb://localhost/;SharedAccessSignature="+signature), codeNone)
		testkit.Equal(t, ask[*kmsg.MetadataResponse](c, 13, metadataOf("orders")).Topics[0].ErrorCode, codeNone)
		start := time.Now()
		c.ended()
		testkit.That(t, time.Since(start) <= 2*time.Minute, "it ended after %v", time.Since(start))
	})
}

// Without identity there is no right where somebody is asked for one.
func TestNobodyHasNoRights(t *testing.T) {
	for _, open := range []bool{true, false} {
		r := rights{open: open}
		testkit.Equal(t, r.allow("orders", anyRight), open, fmt.Sprint("a hub, open: ", open))
		testkit.Equal(t, r.everywhere(auth.Manage), open, fmt.Sprint("the namespace, open: ", open))
		testkit.Equal(t, r.anywhere(auth.Send), open, fmt.Sprint("any hub, open: ", open))
	}
}
