package schema

import (
	"cmp"
	"strings"
)

// A domain is a topic whose events name the topic that they are for, one of the domain's: by topic
// or, as CloudEvents, by source (reference §17). In Event Grid's form its bare name is stored;
// CloudEvents keep their source as it was published.

// Bounds of a domain topic's name.
const (
	MinDomainTopic = 3
	MaxDomainTopic = 128
)

// IsDomainTopic says whether a text can be a domain topic's name: 3 to 128 letters, digits, '-',
// '_' and '.', but for dots at either end and side by side.
func IsDomainTopic(name string) bool {
	return len(name) >= MinDomainTopic && len(name) <= MaxDomainTopic && strings.TrimLeft(name, alphanumeric+"-_.") == "" &&
		strings.Trim(name, ".") == name && !strings.Contains(name, "..")
}

// domainTopic finds the topic's name in what an event of a domain says: it is that, or the end of
// its resource id, in whatever group the publisher takes the domain to be.
func domainTopic(text, domain string) (name string, ok bool) {
	at := strings.LastIndexByte(text, '/') + 1
	scope, name := text[:at], text[at:]
	if scope != "" {
		suffix := "/providers/Microsoft.EventGrid/domains/" + domain + "/topics/"
		begin := len(scope) - len(suffix)
		if begin < 0 || !strings.EqualFold(scope[begin:], suffix) {
			return "", false
		}
	}
	return name, IsDomainTopic(name)
}

// address finds which of the domain's topics an event is for, and refuses one that does not say, in
// Event Grid's words.
func (p *Publication) address(d *draft) error {
	member := spell(attrTopic, "topic")
	switch {
	case p.Kind == CloudEvents:
		member = spell(attrSource, "source")
	case p.Kind == Custom:
		member.name = p.Mapping.Topic.Source
	}
	said, err := d.text(member)
	if err != nil {
		return err
	}
	name, ok := domainTopic(string(said), p.TopicName)
	if !ok {
		if member.name == "" { // nothing is mapped to it
			return refuse("Required property 'topic' is not mapped: map the topic of domain %s to a property of its events", p.TopicName)
		}
		return refuse("Required property 'topic' needs to either be a full resource id or should be just the name of the domain topic. Found: %s. Set '%s' to the name of a topic of domain %s",
			cmp.Or(brief(said), "null"), member.name, p.TopicName)
	}
	if p.Kind != CloudEvents {
		d.domainTopic = name
	}
	return nil
}

// DomainTopicKey is how filters ask for the topic of a domain's event. As what users write it leads
// nowhere: only data has parts.
const DomainTopicKey = "domain.topic"

// domainTopic is the bare name of the topic of a domain's event.
func (e *Envelope) domainTopic() []byte {
	if e.Form != CloudEventForm {
		return e.DomainTopic
	}
	for i := len(e.Source); i > 0; i-- {
		if e.Source[i-1] == '/' {
			return e.Source[i:]
		}
	}
	return e.Source
}

// TopicID is the resource id of the topic: of a domain's event, that of the domain topic.
func (e *Envelope) TopicID() string {
	if e.DomainTopic == nil || e.Topic == "" {
		return e.Topic
	}
	return e.Topic + "/topics/" + string(e.DomainTopic)
}
