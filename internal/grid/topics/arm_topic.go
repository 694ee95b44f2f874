package topics

import (
	"bytes"
	"cmp"
	"encoding/json"
	"path"
	"strings"

	"github.com/eventyard/eventyard/internal/grid/schema"
)

// The management JSON of Event Grid (reference §18), both ways. Reading is lenient: members that
// mean nothing here are passed over, since templates and tools send many. What would change who
// may see or send events, and cannot be done here, is refused rather than passed over. Words come
// in any case.

// object is JSON that is written.
type object map[string]any

func isNull(raw json.RawMessage) bool { return string(bytes.TrimSpace(raw)) == "null" }

// read reads JSON of strangers.
func read(what string, raw []byte, into any) error { return invalidIf(what, json.Unmarshal(raw, into)) }

// parser puts a member of a subscription's properties into the settings.
type parser func(json.RawMessage, *Settings) error

// reads makes the parser of a member that is read as a T, as whose zero value null is.
func reads[T any](what string, take func(T, *Settings) error) parser {
	return func(raw json.RawMessage, s *Settings) error {
		var value T
		if err := read(what, raw, &value); err != nil {
			return err
		}
		return take(value, s)
	}
}

// ParseTopicARM reads a topic as management calls write it. What it leaves out is empty in the
// configuration: its name, too, which is in the path there. The path also says whether it
// is a domain: Domain is there only where the body has words for it.
func ParseTopicARM(body []byte) (TopicConfig, error) {
	var doc struct {
		Name       string            `json:"name"`
		Location   string            `json:"location"`
		Tags       map[string]string `json:"tags"`
		Properties struct {
			InputSchema        string `json:"inputSchema"`
			InputSchemaMapping *struct {
				Type       string         `json:"inputSchemaMappingType"`
				Properties schema.Mapping `json:"properties"`
			} `json:"inputSchemaMapping"`
			DisableLocalAuth    bool              `json:"disableLocalAuth"`
			AutoCreate          *bool             `json:"autoCreateTopicWithFirstSubscription"`
			AutoDelete          *bool             `json:"autoDeleteTopicWithLastSubscription"`
			PublicNetworkAccess string            `json:"publicNetworkAccess"`
			InboundIPRules      []json.RawMessage `json:"inboundIpRules"`
		} `json:"properties"`
	}
	if len(bytes.TrimSpace(body)) > 0 {
		if err := read("topic", body, &doc); err != nil {
			return TopicConfig{}, err
		}
	}
	if p := doc.Properties; p.PublicNetworkAccess != "" && !strings.EqualFold(p.PublicNetworkAccess, "Enabled") || len(p.InboundIPRules) > 0 {
		return TopicConfig{}, invalid("publicNetworkAccess and inboundIpRules: a topic is open to all addresses that reach the yard: leave them out, and keep others off by a firewall")
	}
	if strings.EqualFold(doc.Location, DefaultLocation) {
		doc.Location = ""
	}
	cfg := TopicConfig{Topic{Name: doc.Name, Tags: doc.Tags, Location: doc.Location, DisableKeys: doc.Properties.DisableLocalAuth}}
	if create, del := doc.Properties.AutoCreate, doc.Properties.AutoDelete; create != nil || del != nil {
		cfg.Domain = &Domain{ManualCreate: create != nil && !*create, ManualDelete: del != nil && !*del}
	}
	if m := doc.Properties.InputSchemaMapping; m != nil {
		if m.Type != "" && !strings.EqualFold(m.Type, "Json") {
			return TopicConfig{}, invalid("inputSchemaMappingType %.32q: write Json", m.Type)
		}
		cfg.Mapping = m.Properties
	}
	var err error
	if name := doc.Properties.InputSchema; name != "" {
		cfg.Schema, err = schema.ParseKind(name)
	}
	return cfg, invalidIf("inputSchema", err)
}

// DefaultLocation is that of what was given none.
const DefaultLocation = "local"

// MoveResource gives a resource id another beginning, /subscriptions/ID/resourceGroups/NAME, and
// another namespace; empty ones stay as they are. A topic gets into a namespace by it.
func MoveResource(resource, group, namespace string) string {
	present, rest, _ := strings.Cut(resource, "/providers/")
	if kind, name, ok := strings.Cut(rest, "/topics/"); ok && namespace != "" {
		rest = kind + "/namespaces/" + namespace + "/topics/" + name
	} else if kind, name, ok := strings.Cut(rest, "/eventhubs/"); ok && namespace != "" {
		rest = path.Dir(kind) + "/" + namespace + "/eventhubs/" + name
	}
	return cmp.Or(group, present) + "/providers/" + rest
}

// typeOf is the type in a resource id: every other word behind the provider.
func typeOf(resource string) string {
	_, rest, _ := strings.Cut(resource, "/providers/")
	words := strings.Split(rest, "/")
	kind := words[0]
	for i := 1; i < len(words); i += 2 {
		kind += "/" + words[i]
	}
	return kind
}

// RenderTopicARM shows a topic as management calls do, without its keys; endpoint is where it is
// published to.
func RenderTopicARM(t Topic, endpoint string) any {
	properties := object{
		"provisioningState":   "Succeeded",
		"endpoint":            endpoint,
		"inputSchema":         t.Schema.InputName(),
		"metricResourceId":    t.ID,
		"publicNetworkAccess": "Enabled",
		"disableLocalAuth":    t.DisableKeys,
	}
	if t.Domain != nil {
		properties["autoCreateTopicWithFirstSubscription"] = !t.Domain.ManualCreate
		properties["autoDeleteTopicWithLastSubscription"] = !t.Domain.ManualDelete
	}
	if t.Mapping != (schema.Mapping{}) {
		properties["inputSchemaMapping"] = object{"inputSchemaMappingType": "Json", "properties": t.Mapping}
	}
	tags := t.Tags
	if tags == nil {
		tags = map[string]string{}
	}
	return object{
		"id": t.Resource, "name": t.Name, "type": typeOf(t.Resource), "location": cmp.Or(t.Location, DefaultLocation),
		"tags": tags, "properties": properties,
	}
}

// RenderDomainTopicARM shows a topic of the domain with a resource id.
func RenderDomainTopicARM(domain, name string) any {
	id := domain + "/topics/" + name
	return object{"id": id, "name": name, "type": typeOf(id), "properties": object{"provisioningState": "Succeeded"}}
}
