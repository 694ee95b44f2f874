package topics

import (
	"net/url"
	"slices"
	"strings"

	"github.com/eventyard/eventyard/internal/transport/egress"
)

// armDestination is where events go.
type armDestination struct {
	EndpointType string `json:"endpointType"`
	Properties   struct {
		EndpointURL     string         `json:"endpointUrl"`
		EndpointBaseURL string         `json:"endpointBaseUrl"`
		MaxEvents       int            `json:"maxEventsPerBatch"`
		PreferredKiB    int            `json:"preferredBatchSizeInKilobytes"`
		MinTLS          string         `json:"minimumTlsVersionAllowed"`
		EntraTenant     string         `json:"azureActiveDirectoryTenantId"`
		EntraApp        string         `json:"azureActiveDirectoryApplicationIdOrUri"`
		Attributes      []armAttribute `json:"deliveryAttributeMappings"`
		ResourceID      string         `json:"resourceId"`
		EventHub        string         `json:"eventHub"`
	} `json:"properties"`
}

// armAttribute is a delivery property.
type armAttribute struct {
	Name       string `json:"name"`
	Type       string `json:"type"`
	Properties struct {
		Value       string `json:"value"`
		IsSecret    bool   `json:"isSecret"`
		SourceField string `json:"sourceField"`
	} `json:"properties"`
}

// hidden is what reads show in place of a secret.
const hidden = "Hidden"

// The defaults of Event Grid's API, which tools send along: together they mean no batching.
const (
	defaultMaxEvents    = 1
	defaultPreferredKiB = 64
)

// tidyBatches stores nothing of what means nothing.
func (s *Settings) tidyBatches() {
	if s.MaxEvents == defaultMaxEvents && s.PreferredKiB == defaultPreferredKiB {
		s.MaxEvents, s.PreferredKiB = 0, 0
	}
}

// parseDestination replaces the target and what belongs to it. Null leaves it: a target there
// has to be.
func parseDestination(d *armDestination, s *Settings) error {
	if d == nil {
		return nil
	}
	present := *s
	var err error
	switch {
	case strings.EqualFold(d.EndpointType, "WebHook"):
		err = d.webhook(s)
	case !strings.EqualFold(d.EndpointType, "EventHub"):
		err = invalid("endpointType %.40q: events go to a WebHook or an EventHub; a function or another service is reached by its URL, as a WebHook", d.EndpointType)
	default:
		err = d.hub(s)
	}
	if err == nil {
		s.Headers, err = d.headers(present, *s)
	}
	s.MaxEvents, s.PreferredKiB = d.Properties.MaxEvents, d.Properties.PreferredKiB
	s.tidyBatches()
	return err
}

// armIdentityDestination has a destination with an Azure identity, which has no meaning here.
type armIdentityDestination struct {
	Destination *armDestination `json:"destination"`
}

func parseIdentityDestination(d armIdentityDestination, s *Settings) error {
	return parseDestination(d.Destination, s)
}

func (d *armDestination) hub(s *Settings) error {
	p := d.Properties
	name := hubName(p.EventHub, p.ResourceID)
	if name == "" {
		return invalid("an EventHub destination names no hub: give eventHub, a hub of this yard, or a resourceId that ends in its name")
	}
	s.HubResource = givenHub(p.EventHub, p.ResourceID, s.HubResource)
	s.Hub, s.Webhook, s.Pull, s.Keys, s.Binary = name, nil, nil, nil, false
	return nil
}

func (d *armDestination) webhook(s *Settings) error {
	var hook egress.Endpoint
	if s.Webhook != nil {
		hook = *s.Webhook // certificates and the like, of which Event Grid knows nothing
	}
	p := d.Properties
	if (p.EntraTenant != "" || p.EntraApp != "") && hook.OAuth == nil {
		return invalid("azureActiveDirectoryTenantId: the yard has no identity there; give the webhook OAuth (token URL, client id and secret) by the yard's own API")
	}
	switch {
	case p.EndpointURL != "":
		if err := CheckMove(hook, p.EndpointURL); err != nil {
			return err
		}
		hook.URL = p.EndpointURL
	case p.EndpointBaseURL != "" && p.EndpointBaseURL != baseURL(hook.URL):
		return invalid("endpointBaseUrl is not that of the present endpoint: give the whole endpointUrl")
	}
	switch p.MinTLS {
	case "":
	case "1.0", "1.1", "1.2":
		hook.MinTLS = "1.2" // older ones are never spoken
	default:
		hook.MinTLS = p.MinTLS
	}
	s.Webhook, s.Hub, s.Pull = &hook, "", nil
	return nil
}

// CheckMove keeps tokens that OAuth gets for one server from another: the secret that gets them is
// never shown, and who moves a webhook need not know it.
func CheckMove(present egress.Endpoint, to string) error {
	if present.OAuth == nil || serverOf(present.URL) == serverOf(to) {
		return nil
	}
	return invalid("endpoint: the webhook has OAuth, whose tokens are not sent elsewhere unless its secret is given again: give oauth with the endpoint, or an empty one")
}

// CheckHeaderMove keeps the value of a secret header from another receiver than the one it was given
// for. It is asked of each that a change of the target does not give again.
func CheckHeaderMove(present, changed Settings, name string) error {
	if present.receiver() == changed.receiver() {
		return nil
	}
	return invalid("headers: the value of %.64q is secret and is not sent to another receiver unless it is given again: give it together with the new target, or leave the header out", name)
}

// receiver tells who gets what is sent: a server, or those who read a hub or pull.
func (s Settings) receiver() string {
	switch {
	case s.Webhook != nil:
		return serverOf(s.Webhook.URL)
	case s.Hub != "":
		return "hub " + strings.ToLower(s.Hub)
	}
	return ""
}

// serverOf is the server of a URL; empty for what is none, which is refused elsewhere.
func serverOf(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return strings.ToLower(u.Scheme + "://" + u.Host)
}

// baseURL is what may be shown of a webhook's URL: keys are kept in the query.
func baseURL(text string) string {
	base, _, _ := strings.Cut(text, "?")
	base, _, _ = strings.Cut(base, "#")
	return base
}

// hubName takes the hub's own name, or what a resource id has behind eventhubs: slashes, too.
func hubName(name, resource string) string {
	const before = "/eventhubs/"
	if name != "" {
		return name
	}
	if at := strings.LastIndex(strings.ToLower(resource), before); at >= 0 {
		return resource[at+len(before):]
	}
	return resource[strings.LastIndexByte(resource, '/')+1:]
}

// givenHub is the id of a hub to be shown. One beside a hub's name, which only the yard writes, is
// what the yard has shown.
func givenHub(name, resource, present string) string {
	if name != "" {
		return present
	}
	return resource
}

// headers reads delivery properties. A secret that is hidden is the present one, if the receiver
// stays.
func (d *armDestination) headers(present, changed Settings) ([]Header, error) {
	var headers []Header
	for _, a := range d.Properties.Attributes {
		h := Header{Name: a.Name}
		switch {
		case strings.EqualFold(a.Type, "Static"):
			h.Value, h.Secret = a.Properties.Value, a.Properties.IsSecret
			if h.Secret && (h.Value == "" || h.Value == hidden) {
				h.Value = ""
				if i := slices.IndexFunc(present.Headers, func(p Header) bool { return p.Secret && strings.EqualFold(p.Name, h.Name) }); i >= 0 {
					if err := CheckHeaderMove(present, changed, h.Name); err != nil {
						return nil, err
					}
					h.Value = present.Headers[i].Value
				}
			}
		case strings.EqualFold(a.Type, "Dynamic"):
			h.Field = a.Properties.SourceField
		default:
			return nil, invalid("deliveryAttributeMappings: %.64q has type %.32q: write Static or Dynamic", a.Name, a.Type)
		}
		headers = append(headers, h)
	}
	return headers, nil
}
