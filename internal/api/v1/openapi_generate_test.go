package v1

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/spec"
	"github.com/eventyard/eventyard/internal/testkit"
)

var update = flag.Bool("update", false, "write openapi.json anew")

// The description is openapi.template.json, which has the paths, with the schemas of package
// admin's types filled in; go test -update writes it. What the template says of such a schema,
// descriptions as a rule, is kept.
func TestTheDescriptionIsUpToDate(t *testing.T) {
	template, err := os.ReadFile("openapi.template.json")
	testkit.Must(t, err)
	dec := json.NewDecoder(bytes.NewReader(template))
	dec.UseNumber()
	document, err := readOrdered(dec)
	testkit.Must(t, err)
	schemas := document.(*ordered).at("components").at("schemas")
	for _, c := range components {
		said, found := schemas.members[c.name]
		if !found {
			t.Errorf("the template has no place for %s", c.name)
			continue
		}
		schemas.set(c.name, merged(c.schema(), said))
	}
	var indented bytes.Buffer
	enc := json.NewEncoder(&indented)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	testkit.Must(t, enc.Encode(document))
	if *update {
		testkit.Must(t, os.WriteFile("openapi.json", indented.Bytes(), 0o644))
		return
	}
	testkit.Slices(t, indented.Bytes(), openAPIDocument,
		"openapi.json is out of date; go test ./internal/api/v1 -run UpToDate -update writes it")
}

// component is a schema that follows from a Go type.
type component struct {
	name string
	of   reflect.Type
	// rows describe its fields, which are those below prefix. request: each of them may be left
	// out, or null.
	rows    spec.Definition
	prefix  string
	request bool
	// list is the name of the only member of a list of such types.
	list string
}

var components = []component{
	{name: "Info", of: reflect.TypeFor[admin.Info]()},
	{name: "Cluster", of: reflect.TypeFor[admin.Cluster]()},
	{name: "ClusterNode", of: reflect.TypeFor[admin.ClusterNode]()},
	{name: "ClusterScrub", of: reflect.TypeFor[admin.ClusterScrub]()},
	{name: "NATSServers", of: reflect.TypeFor[admin.NATSServers]()},
	{name: "NATSServer", of: reflect.TypeFor[admin.NATSServer]()},
	{name: "Streams", of: reflect.TypeFor[admin.Streams]()},
	{name: "Stream", of: reflect.TypeFor[admin.Stream]()},
	{name: "StreamReplica", of: reflect.TypeFor[admin.StreamReplica]()},
	{name: "ScrubRequest", of: reflect.TypeFor[admin.ScrubRequest]()},
	{name: "ScrubProgress", of: reflect.TypeFor[admin.ScrubProgress]()},
	{name: "ScrubFinding", of: reflect.TypeFor[admin.ScrubFinding]()},
	{name: "Scrub", of: reflect.TypeFor[admin.Scrub]()},
	{name: "ScrubLine", of: reflect.TypeFor[admin.ScrubLine]()},
	{name: "ReplicasRequest", of: reflect.TypeFor[admin.ReplicasRequest]()},
	{name: "ReplicasProgress", of: reflect.TypeFor[admin.ReplicasProgress]()},
	{name: "Replicas", of: reflect.TypeFor[admin.Replicas]()},
	{name: "ReplicasLine", of: reflect.TypeFor[admin.ReplicasLine]()},
	{name: "Activity", of: reflect.TypeFor[admin.Activity]()},
	{name: "OwnershipMove", of: reflect.TypeFor[admin.OwnershipMove]()},
	{name: "ActivityPage", of: reflect.TypeFor[admin.ActivityPage]()},
	{name: "Storage", of: reflect.TypeFor[admin.Storage]()},
	{name: "NodeStorage", of: reflect.TypeFor[admin.NodeStorage]()},
	{name: "StorageCheck", of: reflect.TypeFor[admin.StorageCheck]()},
	{name: "StorageCheckRequest", of: reflect.TypeFor[admin.StorageCheckRequest]()},
	{name: "Certificates", of: reflect.TypeFor[admin.Certificates]()},
	{name: "NodeCertificate", of: reflect.TypeFor[admin.NodeCertificate]()},
	{name: "Certificate", of: reflect.TypeFor[admin.Certificate]()},
	{name: "Connections", of: reflect.TypeFor[admin.Connections]()},
	{name: "Connection", of: reflect.TypeFor[admin.Connection]()},
	{name: "KeyUse", of: reflect.TypeFor[admin.KeyUse]()},
	{name: "GroupHistory", of: reflect.TypeFor[admin.GroupHistory]()},
	{name: "OwnershipSpan", of: reflect.TypeFor[admin.OwnershipSpan]()},
	{name: "Hub", of: reflect.TypeFor[admin.Hub](), rows: spec.Hub},
	{name: "HubList", of: reflect.TypeFor[admin.Hub](), list: "hubs"},
	{name: "HubRequest", of: reflect.TypeFor[admin.HubRequest](), rows: spec.Hub, request: true},
	{name: "Retention", of: reflect.TypeFor[admin.Retention](), rows: spec.Hub, prefix: "retention."},
	{name: "RetentionRequest", of: reflect.TypeFor[admin.RetentionRequest](), rows: spec.Hub, prefix: "retention.", request: true},
	{name: "HubChange", of: reflect.TypeFor[admin.HubRequest]()},
	{name: "Group", of: reflect.TypeFor[admin.Group]()},
	{name: "GroupList", of: reflect.TypeFor[admin.Group](), list: "groups"},
	{name: "GroupRequest", of: reflect.TypeFor[admin.GroupRequest]()},
	{name: "KafkaGroup", of: reflect.TypeFor[admin.KafkaGroup]()},
	{name: "KafkaGroupList", of: reflect.TypeFor[admin.KafkaGroup](), list: "groups"},
	{name: "KafkaGroupTable", of: reflect.TypeFor[admin.KafkaGroupTable]()},
	{name: "KafkaMember", of: reflect.TypeFor[admin.KafkaMember]()},
	{name: "KafkaPartition", of: reflect.TypeFor[admin.KafkaPartition]()},
	{name: "KafkaCopy", of: reflect.TypeFor[admin.KafkaCopy]()},
	{name: "Checkpoint", of: reflect.TypeFor[admin.Checkpoint]()},
	{name: "CheckpointList", of: reflect.TypeFor[admin.Checkpoints]()},
	{name: "CheckpointImport", of: reflect.TypeFor[admin.CheckpointImport]()},
	{name: "CheckpointTarget", of: reflect.TypeFor[admin.Target]()},
	{name: "CheckpointMove", of: reflect.TypeFor[admin.CheckpointMove]()},
	{name: "Moved", of: reflect.TypeFor[admin.Moved]()},
	{name: "Released", of: reflect.TypeFor[admin.Released]()},
	{name: "MovedList", of: reflect.TypeFor[admin.MovedList]()},
	{name: "OwnedPartition", of: reflect.TypeFor[admin.OwnedPartition]()},
	{name: "Instance", of: reflect.TypeFor[admin.Instance]()},
	{name: "Ownership", of: reflect.TypeFor[admin.Ownership]()},
	{name: "Partition", of: reflect.TypeFor[admin.Partition]()},
	{name: "PartitionList", of: reflect.TypeFor[admin.PartitionPage]()},
	{name: "Sent", of: reflect.TypeFor[admin.Sent]()},
	{name: "End", of: reflect.TypeFor[endJSON]()},
	{name: "Policy", of: reflect.TypeFor[admin.Policy](), rows: spec.Policy},
	{name: "PolicyList", of: reflect.TypeFor[admin.Policy](), list: "policies"},
	{name: "PolicyRequest", of: reflect.TypeFor[admin.PolicyRequest](), rows: spec.Policy, request: true},
	{name: "PolicyChange", of: reflect.TypeFor[admin.PolicyChange]()},
	{name: "KeyChoice", of: reflect.TypeFor[admin.KeyChoice]()},
	{name: "ConnectionString", of: reflect.TypeFor[admin.ConnectionString]()},
	{name: "BlobAccount", of: reflect.TypeFor[admin.BlobAccount]()},
	{name: "BlobAccountRequest", of: reflect.TypeFor[admin.BlobAccountRequest](), rows: spec.BlobAccount, request: true},
	{name: "Problem", of: reflect.TypeFor[admin.Problem]()},
	{name: "ProblemLine", of: reflect.TypeFor[admin.ProblemLine]()},
	{name: "Topic", of: reflect.TypeFor[admin.Topic](), rows: spec.Topic},
	{name: "TopicList", of: reflect.TypeFor[admin.Topic](), list: "topics"},
	{name: "TopicRequest", of: reflect.TypeFor[admin.TopicRequest](), rows: spec.Topic, request: true},
	{name: "TopicKeyChoice", of: reflect.TypeFor[admin.KeyChoice]()},
	{name: "DeliveryHeader", of: reflect.TypeFor[admin.Header]()},
	{name: "OAuthClient", of: reflect.TypeFor[admin.OAuth](), rows: spec.Subscription, prefix: "oauth.", request: true},
	{name: "PullSettings", of: reflect.TypeFor[admin.Pull](), rows: spec.Subscription, prefix: "pull.", request: true},
	{name: "SubscriptionRequest", of: reflect.TypeFor[admin.SubscriptionRequest](), rows: spec.Subscription, request: true},
	{name: "GridStats", of: reflect.TypeFor[admin.DeliveryStats]()},
	{name: "Subscription", of: reflect.TypeFor[admin.Subscription](), rows: spec.Subscription},
	{name: "SubscriptionList", of: reflect.TypeFor[admin.Subscription](), list: "subscriptions"},
	{name: "Attempt", of: reflect.TypeFor[admin.Attempt]()},
	{name: "AttemptList", of: reflect.TypeFor[admin.Attempt](), list: "attempts"},
	{name: "DeadLetter", of: reflect.TypeFor[admin.DeadLetter]()},
	{name: "DeadLetterPage", of: reflect.TypeFor[admin.DeadLetterPage]()},
	{name: "DeadLetterChoice", of: reflect.TypeFor[admin.DeadLetterChoice]()},
	{name: "RedriveRequest", of: reflect.TypeFor[admin.RedriveRequest]()},
	{name: "Redriven", of: reflect.TypeFor[admin.Redriven]()},
	{name: "Purged", of: reflect.TypeFor[admin.Purged]()},
	{name: "KeyRotation", of: reflect.TypeFor[admin.KeyRotation]()},
	{name: "FunctionRequest", of: reflect.TypeFor[admin.FunctionRequest](), rows: spec.Function, request: true},
	{name: "Failure", of: reflect.TypeFor[admin.Failure]()},
	{name: "CircuitState", of: reflect.TypeFor[admin.CircuitState]()},
	{name: "Circuit", of: reflect.TypeFor[admin.Circuit]()},
	{name: "CircuitList", of: reflect.TypeFor[admin.Circuit](), list: "circuits"},
	{name: "CircuitRequest", of: reflect.TypeFor[admin.CircuitRequest]()},
	{name: "FunctionCounts", of: reflect.TypeFor[admin.FunctionCounts]()},
	{name: "Function", of: reflect.TypeFor[admin.Function](), rows: spec.Function},
	{name: "FunctionList", of: reflect.TypeFor[admin.Function](), list: "functions"},
	{name: "PoisonEvent", of: reflect.TypeFor[admin.PoisonEvent]()},
	{name: "PoisonList", of: reflect.TypeFor[admin.PoisonEvent](), list: "poison"},
	{name: "PoisonRedriveRequest", of: reflect.TypeFor[admin.PoisonRedriveRequest]()},
	{name: "PoisonRedriven", of: reflect.TypeFor[admin.PoisonRedriven]()},
	{name: "NoticeTest", of: reflect.TypeFor[admin.NoticeTest]()},
	{name: "Series", of: reflect.TypeFor[admin.Series]()},
	{name: "Overview", of: reflect.TypeFor[admin.Overview]()},
	{name: "OverviewTotals", of: reflect.TypeFor[admin.OverviewTotals]()},
	{name: "OverviewRates", of: reflect.TypeFor[admin.OverviewRates]()},
	{name: "GroupLag", of: reflect.TypeFor[admin.GroupLag]()},
	{name: "Need", of: reflect.TypeFor[admin.Need]()},
	{name: "NeedObject", of: reflect.TypeFor[admin.NeedObject]()},
	{name: "HubStats", of: reflect.TypeFor[admin.HubStats]()},
	{name: "TopicStats", of: reflect.TypeFor[admin.TopicStats]()},
	{name: "FunctionStats", of: reflect.TypeFor[admin.FunctionStats]()},
	{name: "TopicEvent", of: reflect.TypeFor[admin.TopicEvent]()},
	{name: "TopicEvents", of: reflect.TypeFor[admin.TopicEvents]()},
	{name: "SeriesList", of: reflect.TypeFor[admin.SeriesList]()},
	{name: "Finding", of: reflect.TypeFor[admin.Finding]()},
	{name: "Explanation", of: reflect.TypeFor[admin.Explanation]()},
	{name: "Looked", of: reflect.TypeFor[admin.Looked]()},
	{name: "JourneyTry", of: reflect.TypeFor[admin.JourneyTry]()},
	{name: "JourneyTo", of: reflect.TypeFor[admin.JourneyTo]()},
	{name: "JourneyGroup", of: reflect.TypeFor[admin.JourneyGroup]()},
	{name: "JourneyFunction", of: reflect.TypeFor[admin.JourneyFunction]()},
	{name: "Journey", of: reflect.TypeFor[admin.Journey]()},
	{name: "Journeys", of: reflect.TypeFor[admin.Journeys]()},
	{name: "Density", of: reflect.TypeFor[admin.Density]()},
	{name: "DensityBucket", of: reflect.TypeFor[admin.DensityBucket]()},
	{name: "BusyKeys", of: reflect.TypeFor[admin.BusyKeys]()},
	{name: "BusyKey", of: reflect.TypeFor[admin.BusyKey]()},
	{name: "CircuitHistory", of: reflect.TypeFor[admin.CircuitHistory]()},
	{name: "CircuitChange", of: reflect.TypeFor[admin.CircuitChange]()},
	{name: "CircuitSecond", of: reflect.TypeFor[admin.CircuitSecond]()},
}

// schema is that of the component's type.
func (c component) schema() *ordered {
	if c.list != "" {
		items := newOrdered("type", "array", "items", schemaOf(c.of))
		return newOrdered("type", "object", "properties", newOrdered(c.list, items), "required", []any{c.list}, "additionalProperties", false)
	}
	return c.structure(c.of)
}

func (c component) structure(t reflect.Type) *ordered {
	properties, required := newOrdered(), []any{}
	for _, f := range reflect.VisibleFields(t) {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" {
			continue
		}
		property := schemaOf(f.Type)
		if _, isRef := property.members["$ref"]; !isRef {
			c.describe(property, name, f.Type)
		}
		properties.set(name, property)
		if !strings.Contains(options, "omit") && !c.request {
			required = append(required, name)
		}
	}
	shape := newOrdered("type", "object", "properties", properties)
	if len(required) > 0 {
		shape.set("required", required)
	}
	shape.set("additionalProperties", false)
	return shape
}

// describe adds what the row says.
func (c component) describe(property *ordered, name string, t reflect.Type) {
	row, ok := c.rows.Field(c.prefix + name)
	switch {
	case ok && c.request:
		property.set("description", row.Sentence())
	case ok:
		property.set("description", row.Meaning())
	}
	if ok && len(row.OneOf) > 0 {
		words := make([]any, len(row.OneOf))
		for i, word := range row.OneOf {
			words[i] = word
		}
		property.set("enum", words)
	}
	if ok && c.request {
		c.bound(property, row)
	}
	if c.request && (c.prefix == "" || t.Kind() == reflect.Pointer) {
		property.set("nullable", true)
	}
}

// bound adds the range of the row, of each element where there are several. Where zero is allowed
// besides, it is the minimum.
func (c component) bound(property *ordered, row spec.Field) {
	if items, isList := property.members["items"].(*ordered); isList {
		property = items
	}
	if row.Min != 0 {
		property.set("minimum", row.Min)
		if row.Zero != "" {
			property.set("minimum", 0)
		}
	}
	if row.Max != 0 {
		property.set("maximum", row.Max)
	}
	if row.Length != 0 {
		property.set("maxLength", row.Length)
	}
}

// schemaOf refers to the types that are components, and writes out the others.
func schemaOf(t reflect.Type) *ordered {
	if t.Kind() == reflect.Pointer {
		return schemaOf(t.Elem())
	}
	i := slices.IndexFunc(components, func(c component) bool { return c.of == t && c.list == "" })
	switch {
	case t == reflect.TypeFor[time.Time](), t == reflect.TypeFor[admin.Time]():
		return newOrdered("type", "string", "format", "date-time")
	case t == reflect.TypeFor[json.RawMessage](), t == reflect.TypeFor[admin.Filter]():
		return newOrdered() // anything
	case i >= 0:
		return newOrdered("$ref", "#/components/schemas/"+components[i].name)
	}
	switch t.Kind() {
	case reflect.Struct:
		return component{}.structure(t)
	case reflect.Slice:
		return newOrdered("type", "array", "items", schemaOf(t.Elem()))
	case reflect.Map:
		return newOrdered("type", "object", "additionalProperties", schemaOf(t.Elem()))
	case reflect.Int64:
		return newOrdered("type", "integer", "format", "int64")
	case reflect.Int:
		return newOrdered("type", "integer")
	case reflect.Float64:
		return newOrdered("type", "number")
	case reflect.Bool:
		return newOrdered("type", "boolean")
	}
	return newOrdered("type", "string")
}

// merged puts what the template says over what follows from the type.
func merged(from, said any) any {
	over, ok := said.(*ordered)
	under, also := from.(*ordered)
	if !ok || !also {
		return said
	}
	for _, name := range over.names {
		if was, there := under.members[name]; there {
			under.set(name, merged(was, over.members[name]))
		} else {
			under.set(name, over.members[name])
		}
	}
	return under
}

// ordered is a JSON object whose members keep their order.
type ordered struct {
	names   []string
	members map[string]any
}

// newOrdered takes names and values in turn.
func newOrdered(pairs ...any) *ordered {
	o := &ordered{members: map[string]any{}}
	for i := 0; i < len(pairs); i += 2 {
		o.set(pairs[i].(string), pairs[i+1])
	}
	return o
}

func (o *ordered) set(name string, value any) {
	if _, there := o.members[name]; !there {
		o.names = append(o.names, name)
	}
	o.members[name] = value
}

func (o *ordered) at(name string) *ordered { return o.members[name].(*ordered) }

func (o *ordered) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	for i, name := range o.names {
		b.WriteByte("{,"[min(i, 1)])
		if err := enc.Encode(name); err != nil {
			return nil, err
		}
		b.WriteByte(':')
		if err := enc.Encode(o.members[name]); err != nil {
			return nil, err
		}
	}
	if len(o.names) == 0 {
		b.WriteByte('{')
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// readOrdered reads the next JSON value.
func readOrdered(dec *json.Decoder) (any, error) {
	token, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch token {
	case json.Delim('{'):
		o := newOrdered()
		for dec.More() {
			name, err := dec.Token()
			if err != nil {
				return nil, err
			}
			value, err := readOrdered(dec)
			if err != nil {
				return nil, err
			}
			o.set(name.(string), value)
		}
		_, err := dec.Token()
		return o, err
	case json.Delim('['):
		list := []any{}
		for dec.More() {
			value, err := readOrdered(dec)
			if err != nil {
				return nil, err
			}
			list = append(list, value)
		}
		_, err := dec.Token()
		return list, err
	}
	return token, nil
}
