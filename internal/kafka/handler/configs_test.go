package handler

import (
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/kafka/record"
	"github.com/eventyard/eventyard/internal/testkit"
)

// set is a change of a setting, unset one to its default.
func set(name, value string) configChange { return configChange{name, &value} }
func unset(name string) configChange      { return configChange{name, nil} }

// The few settings that change something do, and no other is accepted but as it is.
func TestConfigsApplied(t *testing.T) {
	week, forever := defaultRetention(), broker.Retention{}
	tests := []struct {
		what    string
		from    broker.Retention
		changes []configChange
		want    broker.Retention
		frames  broker.FrameRules // that are wanted, where there were none
		refused bool
	}{
		{what: "nothing", from: week, want: week},
		{what: "an age", from: week, changes: []configChange{set("retention.ms", "1000")}, want: broker.Retention{Age: time.Second}},
		{what: "for ever", from: week, changes: []configChange{set("retention.ms", "-1")}, want: forever},
		{what: "longer than there is time", from: week, changes: []configChange{set("retention.ms", "9223372036854775807")}, want: forever},
		{what: "a size", from: week, changes: []configChange{set("retention.bytes", "77")}, want: broker.Retention{Age: week.Age, Bytes: 77}},
		{what: "the defaults", from: broker.Retention{Age: 1, Bytes: 2}, changes: []configChange{unset("retention.ms"), unset("retention.bytes")}, want: week},
		{what: "compact", from: week, changes: []configChange{set("cleanup.policy", "compact")}, want: forever},
		{what: "compact, whatever the age", from: week, changes: []configChange{set("retention.ms", "5"), set("cleanup.policy", "compact")}, want: forever},
		{what: "compact and delete", from: week, changes: []configChange{set("retention.ms", "5"), set("cleanup.policy", "compact,delete")}, want: broker.Retention{Age: 5 * time.Millisecond}},
		{what: "delete again", from: forever, changes: []configChange{set("cleanup.policy", "delete")}, want: week},
		{what: "delete as it was", from: broker.Retention{Bytes: 9}, changes: []configChange{set("cleanup.policy", " delete ")}, want: broker.Retention{Bytes: 9}},
		{what: "how files are laid out", from: week, changes: []configChange{set("segment.bytes", "52428800")}, want: week},
		{what: "what it is anyway", from: week, changes: []configChange{set("message.timestamp.type", "CreateTime"), unset("compression.type")}, want: week},
		{what: "smaller batches", from: week, changes: []configChange{set("max.message.bytes", "1048588")}, want: week, frames: broker.FrameRules{MaxBytes: 1048588}},
		{what: "smaller batches, where all is kept", from: week, changes: []configChange{set("max.message.bytes", "5"), set("cleanup.policy", "compact")}, want: forever, frames: broker.FrameRules{MaxBytes: 5}},
		{what: "the largest batches", from: week, changes: []configChange{set("max.message.bytes", "5"), set("max.message.bytes", "1572864")}, want: week},
		{what: "batches as by default", from: week, changes: []configChange{set("max.message.bytes", "5"), unset("max.message.bytes")}, want: week},
		{what: "larger batches than can be", from: week, changes: []configChange{set("max.message.bytes", "1572865")}, refused: true},
		{what: "batches of nothing", from: week, changes: []configChange{set("max.message.bytes", "0")}, refused: true},
		{what: "other timestamps", from: week, changes: []configChange{set("message.timestamp.type", "LogAppendTime")}, want: week, frames: broker.FrameRules{AppendTime: true}},
		{what: "timestamps that are none", from: week, changes: []configChange{set("message.timestamp.type", "Noon")}, refused: true},
		{what: "another compression", from: week, changes: []configChange{set("compression.type", "zstd")}, refused: true},
		{what: "no setting", from: week, changes: []configChange{set("retention.msec", "5")}, refused: true},
		{what: "no number", from: week, changes: []configChange{set("retention.bytes", "many")}, refused: true},
		{what: "no number, where all is kept", from: week, changes: []configChange{set("cleanup.policy", "compact"), set("retention.ms", "x")}, refused: true},
	}
	for _, tt := range tests {
		t.Run(tt.what, func(t *testing.T) {
			got, err := applyConfigs(settings{retention: tt.from}, tt.changes)
			testkit.Equal(t, errors.Is(err, errConfig), tt.refused, "it is refused")
			if !tt.refused {
				testkit.Equal(t, got, settings{tt.want, tt.frames})
			}
		})
	}
}

// shown gives the settings of a topic that are not the defaults.
func (c *client) shown(kind kmsg.ConfigResourceType, name string, wanted ...string) (code int16, all map[string]string) {
	c.t.Helper()
	r := kmsg.NewPtrDescribeConfigsRequest()
	r.IncludeSynonyms, r.IncludeDocumentation = true, true
	one := kmsg.NewDescribeConfigsRequestResource()
	one.ResourceType, one.ResourceName, one.ConfigNames = kind, name, wanted
	r.Resources = append(r.Resources, one)
	answer := ask[*kmsg.DescribeConfigsResponse](c, 4, r).Resources[0]
	all = map[string]string{}
	for _, config := range answer.Configs {
		all[config.Name] = *config.Value
	}
	return answer.ErrorCode, all
}

// K1: what is changed by a client is shown to it, and so for every other listener.
func TestConfigsOfTopics(t *testing.T) {
	y := newYard(t)
	y.hub("orders", 1)
	c := y.client()
	code, all := c.shown(kmsg.ConfigResourceTypeTopic, "orders")
	testkit.Equal(t, code, codeNone)
	testkit.Equal(t, len(all), len(configs), "settings")
	testkit.Equal(t, all["retention.ms"], "604800000")
	testkit.Equal(t, all["retention.bytes"], "-1")
	testkit.Equal(t, all["cleanup.policy"], "delete")

	change := func(validate bool, op kmsg.IncrementalAlterConfigOp, name, value string) int16 {
		r := kmsg.NewPtrIncrementalAlterConfigsRequest()
		r.ValidateOnly = validate
		one := kmsg.NewIncrementalAlterConfigsRequestResource()
		one.ResourceType, one.ResourceName = kmsg.ConfigResourceTypeTopic, "orders"
		one.Configs = []kmsg.IncrementalAlterConfigsRequestResourceConfig{{Name: name, Op: op, Value: &value}}
		r.Resources = append(r.Resources, one)
		return ask[*kmsg.IncrementalAlterConfigsResponse](c, 1, r).Resources[0].ErrorCode
	}
	retention := func() broker.Retention { return testkit.Value(y.broker.Hub("orders"))(t).Retention }
	testkit.Equal(t, change(true, kmsg.IncrementalAlterConfigOpSet, "retention.ms", "60000"), codeNone)
	testkit.Equal(t, retention(), defaultRetention(), "retention when it was only checked")
	testkit.Equal(t, change(false, kmsg.IncrementalAlterConfigOpSet, "retention.ms", "60000"), codeNone)
	testkit.Equal(t, change(false, kmsg.IncrementalAlterConfigOpSet, "retention.bytes", "1000"), codeNone)
	testkit.Equal(t, retention(), broker.Retention{Age: time.Minute, Bytes: 1000})
	testkit.Equal(t, change(false, kmsg.IncrementalAlterConfigOpDelete, "retention.ms", ""), codeNone)
	testkit.Equal(t, retention(), broker.Retention{Age: broker.DefaultRetentionAge, Bytes: 1000})
	testkit.Equal(t, change(false, kmsg.IncrementalAlterConfigOpAppend, "cleanup.policy", "compact"), codeInvalidConfig)
	testkit.Equal(t, change(false, kmsg.IncrementalAlterConfigOpSet, "max.message.bytes", "9999999"), codeInvalidConfig)
	testkit.Equal(t, change(false, kmsg.IncrementalAlterConfigOpSet, "cleanup.policy", "compact"), codeNone)
	_, all = c.shown(kmsg.ConfigResourceTypeTopic, "orders", "cleanup.policy", "retention.ms")
	testkit.Diff(t, map[string]string{"cleanup.policy": "compact", "retention.ms": "-1"}, all)

	whole := kmsg.NewPtrAlterConfigsRequest()
	one := kmsg.NewAlterConfigsRequestResource()
	one.ResourceType, one.ResourceName = kmsg.ConfigResourceTypeTopic, "orders"
	one.Configs = []kmsg.AlterConfigsRequestResourceConfig{{Name: "retention.bytes", Value: kmsg.StringPtr("5")}}
	broken := one
	broken.ResourceName = "nobody"
	nodes := one
	nodes.ResourceType = kmsg.ConfigResourceTypeBroker
	whole.Resources = append(whole.Resources, one, broken, nodes)
	got := ask[*kmsg.AlterConfigsResponse](c, 2, whole).Resources
	testkit.Equal(t, got[0].ErrorCode, codeNone)
	testkit.Equal(t, got[1].ErrorCode, codeUnknownTopic)
	testkit.Equal(t, got[2].ErrorCode, codeInvalidRequest)
	testkit.Equal(t, retention(), broker.Retention{Age: broker.DefaultRetentionAge, Bytes: 5}, "retention when all else becomes the default")
}

func TestConfigsOfOtherThings(t *testing.T) {
	y := newYard(t)
	c := y.client()
	code, all := c.shown(kmsg.ConfigResourceTypeBroker, "1")
	testkit.Equal(t, code, codeNone)
	testkit.Equal(t, all["auto.create.topics.enable"], "true")
	code, _ = c.shown(kmsg.ConfigResourceTypeTopic, "nobody")
	testkit.Equal(t, code, codeUnknownTopic)
	code, _ = c.shown(kmsg.ConfigResourceTypeClientMetrics, "x")
	testkit.Equal(t, code, codeInvalidRequest)
}

// K1: how large a batch may be is a setting of its topic, from its making on and at once when it is changed.
func TestLargestBatchOfATopic(t *testing.T) {
	y := newYard(t)
	c := y.client()
	testkit.MustEqual(t, ask[*kmsg.CreateTopicsResponse](c, 7, creation("orders", 1, "max.message.bytes", "400")).Topics[0].ErrorCode, codeNone)
	hub := testkit.Value(y.broker.Hub("orders"))(t)
	large := values(strings.Repeat("x", 1000))
	size := len(large.raw(t))
	wantShown := func(want string) {
		t.Helper()
		_, all := c.shown(kmsg.ConfigResourceTypeTopic, "orders", "max.message.bytes")
		testkit.Equal(t, all["max.message.bytes"], want, "what is shown")
	}
	alter := func(op kmsg.IncrementalAlterConfigOp, value string) {
		t.Helper()
		r := kmsg.NewPtrIncrementalAlterConfigsRequest()
		one := kmsg.NewIncrementalAlterConfigsRequestResource()
		one.ResourceType, one.ResourceName = kmsg.ConfigResourceTypeTopic, "orders"
		one.Configs = []kmsg.IncrementalAlterConfigsRequestResourceConfig{{Name: "max.message.bytes", Op: op, Value: &value}}
		r.Resources = append(r.Resources, one)
		testkit.MustEqual(t, ask[*kmsg.IncrementalAlterConfigsResponse](c, 1, r).Resources[0].ErrorCode, codeNone)
	}
	wantShown("400")
	testkit.Equal(t, c.produce(hub, 0, large).ErrorCode, codeTooLarge, "a batch that is larger")
	testkit.Equal(t, c.produce(hub, 0, values("small")).ErrorCode, codeNone, "a batch that is not")
	alter(kmsg.IncrementalAlterConfigOpSet, strconv.Itoa(size-1))
	testkit.Equal(t, c.produce(hub, 0, large).ErrorCode, codeTooLarge, "a batch of one byte too many")
	alter(kmsg.IncrementalAlterConfigOpSet, strconv.Itoa(size))
	wantShown(strconv.Itoa(size))
	testkit.Equal(t, c.produce(hub, 0, large).ErrorCode, codeNone, "a batch as large as may be")
	alter(kmsg.IncrementalAlterConfigOpDelete, "")
	wantShown(strconv.Itoa(record.MaxBatchBytes))
	testkit.Equal(t, c.produce(hub, 0, values(strings.Repeat("x", 1<<20))).ErrorCode, codeNone, "a large batch where nothing is said")
}
