package schema

import (
	"net/http"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

const domainID = "/subscriptions/00000000-0000-0000-0000-000000000001/resourceGroups/yard/providers/Microsoft.EventGrid/domains/shop"

// toDomain makes a publication one to the domain shop.
func toDomain(p Publication) Publication {
	p.TopicID, p.TopicName, p.Domain = domainID, "shop", true
	return p
}

const (
	domainGridEvent  = `{"topic":"TOPIC","id":"1","subject":"s","eventType":"t","eventTime":"2017-08-10T21:03:07Z","data":1}`
	domainCloudEvent = `{"specversion":"1.0","id":"1","source":"TOPIC","type":"t","data":1}`
)

// G9, G12: an event of a domain names one of its topics, by name or resource id, in every schema;
// its receivers see the domain topic's id, and a filter finds it.
func TestEventsOfADomainNameTheirTopic(t *testing.T) {
	mapped := publish(Custom, "application/json", `{"tenant":"TOPIC"}`)
	mapped.Mapping = Mapping{Topic: Field{Source: "tenant"}}
	binary := publish(CloudEvents, "application/json", "1")
	for name, value := range map[string]string{"id": "1", "source": "TOPIC", "type": "t", "specversion": "1.0"} {
		binary.Header.Set("ce-"+name, value)
	}
	kinds := map[string]Publication{"Event Grid": grid(domainGridEvent), "CloudEvents": clouds(domainCloudEvent), "custom": mapped, "binary": binary}
	says := func(p Publication, topic string) Publication {
		p = toDomain(p)
		p.Body = []byte(strings.ReplaceAll(string(p.Body), "TOPIC", topic))
		p.Header = p.Header.Clone()
		if p.Header.Get("ce-source") != "" {
			p.Header.Set("ce-source", topic)
		}
		return p
	}
	for name, p := range kinds {
		for _, topic := range []string{"eu.west_1", domainID + "/topics/eu.west_1", "/subscriptions/x/resourcegroups/y/providers/microsoft.eventgrid/DOMAINS/Shop/Topics/eu.west_1"} {
			t.Run(name+" "+topic, func(t *testing.T) {
				var e Envelope
				testkit.Must(t, e.Scan(p.Kind.Form(), []byte(mustRead(t, says(p, topic))[0])))
				e.Topic = domainID
				a, _, _ := FindAttribute(DomainTopicKey)
				text, _ := e.Text(a)
				testkit.Equal(t, string(text), "eu.west_1", "the domain topic")
				if p.Kind == CloudEvents {
					testkit.Equal(t, string(e.Source), topic, "the source, as published")
					return
				}
				for _, out := range []Kind{EventGrid, CloudEvents} {
					delivered, err := AppendEvent(nil, &e, out)
					testkit.Must(t, err)
					if !strings.Contains(string(delivered), `"`+domainID+`/topics/eu.west_1"`) || strings.Contains(string(delivered), `"topic":"eu.west_1"`) {
						t.Errorf("delivered as %s", delivered)
					}
				}
				header, _, err := Binary(&e)
				testkit.Must(t, err)
				testkit.Equal(t, header.Get("ce-source"), domainID+"/topics/eu.west_1", "the source in binary mode")
				testkit.Equal(t, string(e.Field("topic")), `"`+domainID+`/topics/eu.west_1"`, "the field topic")
			})
		}
		for _, topic := range []string{"https://example.com/eu", "/eu", "a b c", "..", "eu", "a..b", ".abc", domainID, domainID + "/topics/", strings.Repeat("x", 129),
			"/subscriptions/x/resourceGroups/y/providers/Microsoft.EventGrid/domains/other/topics/eu-west"} {
			t.Run(name+" is refused with "+topic, func(t *testing.T) {
				got := refused(t, says(p, topic))
				testkit.Equal(t, got.Status, http.StatusBadRequest, "status")
				if !strings.Contains(got.Message, "Required property 'topic' needs to either be a full resource id or should be just the name of the domain topic. Found: "+topic[:2]) {
					t.Errorf("refused with %s", got.Message)
				}
			})
		}
	}
}

// An event of a domain that says nothing is refused, and so is one whose domain maps nothing.
func TestEventsOfADomainWithoutATopicAreRefused(t *testing.T) {
	for name, p := range map[string]Publication{
		"Event Grid": grid(gridEvent), "null": grid(strings.Replace(domainGridEvent, `"TOPIC"`, "null", 1)),
		"custom": publish(Custom, "application/json", `{"a":1}`),
	} {
		t.Run(name, func(t *testing.T) {
			if got := refused(t, toDomain(p)); !strings.HasPrefix(got.Message, "Required property 'topic' ") {
				t.Errorf("refused with %s", got.Message)
			}
		})
	}
}

// G8: a dead letter of a domain's event has the domain topic's id.
func TestDeadLettersOfADomain(t *testing.T) {
	var e Envelope
	testkit.Must(t, e.Scan(EventGridForm, []byte(mustRead(t, toDomain(grid(strings.Replace(domainGridEvent, "TOPIC", "eu-west", 1))))[0])))
	e.Topic = domainID
	letter, err := AppendDeadLetter(nil, &e, EventGrid, DeadLetter{Reason: "r", Published: now})
	testkit.Must(t, err)
	if !strings.HasPrefix(string(letter), `{"topic":"`+domainID+`/topics/eu-west",`) {
		t.Errorf("written as %s", letter)
	}
}
