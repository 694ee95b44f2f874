package topics

import (
	"fmt"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

func mustDomain(t testing.TB, k *Registry, name string, d Domain) Topic {
	t.Helper()
	made, err := k.CreateTopic(t.Context(), TopicConfig{Topic{Name: name, Domain: &d}})
	testkit.Must(t, err)
	return made
}

func of(domain, topic string) Source { return Source{Topic: domain, DomainTopic: topic} }

func domainTopics(t testing.TB, k *Registry, domain string) string {
	t.Helper()
	names, err := k.DomainTopics(domain)
	testkit.Must(t, err)
	return strings.Join(names, " ")
}

// setDomain changes how the topics of a domain come and go.
func setDomain(t testing.TB, k *Registry, name string, d Domain) {
	t.Helper()
	_, err := k.EnsureTopic(t.Context(), TopicConfig{Topic{Name: name, Domain: &d}})
	testkit.Must(t, err)
}

// G12: subscriptions of a domain and of its topics stand side by side, by the same name, also after
// a restart; a topic is there as long as somebody subscribes to it, and goes with the domain.
func TestSubscriptionsOfADomainAndOfItsTopics(t *testing.T) {
	y := newYard(t)
	k := y.open(t, Config{}, "plain")
	domain := mustDomain(t, k, "shop", Domain{})
	testkit.Equal(t, domain.Resource, domainResource("yard", "shop", ""), "the domain's id")
	for _, source := range []Source{topic("Shop"), of("shop", "eu.west"), of("shop", "us-east")} {
		mustCreate(t, k, source, "billing", hook("https://a.example"))
	}
	testkit.ErrorIs(t, testkit.Err(k.Create(t.Context(), of("SHOP", "EU.West"), "Billing", hook("https://a.example"))), ErrExists)
	for _, k := range []*Registry{k, y.open(t, Config{})} {
		testkit.Equal(t, domainTopics(t, k, "shop"), "eu.west us-east", "topics")
		for source, resource := range map[Source]string{
			topic("shop"): domain.Resource, of("shop", "EU.west"): domain.Resource + "/topics/eu.west", of("shop", "us-east"): domain.Resource + "/topics/us-east",
		} {
			testkit.Equal(t, mustFind(t, k, source, "billing").Resource, resource, "the id of %s", source)
		}
		for source, want := range map[Source]int{topic("shop"): 3, of("shop", "us-east"): 1, of("shop", "none"): 0, topic("plain"): 0} {
			its, err := k.Subscriptions(source)
			testkit.Must(t, err)
			testkit.Equal(t, len(its), want, "subscriptions of %s", source)
		}
		testkit.ErrorIs(t, testkit.Err(k.Find(Source{}, "billing")), ErrAmbiguous)
		testkit.ErrorIs(t, testkit.Err(k.Find(of("shop", "none"), "billing")), ErrNotFound)
	}
	_, err := k.Update(t.Context(), of("shop", "eu.west"), "billing", change(func(s *Settings) { s.Description = "x" }))
	testkit.Must(t, err)
	testkit.Equal(t, mustFind(t, k, topic("shop"), "billing").Description, "", "the domain's own")
	testkit.Must(t, k.Delete(t.Context(), of("shop", "eu.west"), "billing"))
	testkit.Equal(t, domainTopics(t, k, "shop"), "us-east", "topics")
	testkit.Must(t, k.DeleteTopic(t.Context(), "shop"))
	y.wantNoSubscriptions(t)
}

// Topics of a domain can be made by themselves, and where they have to be, subscriptions make none;
// where they stay without subscriptions, the first makes it for good.
func TestTopicsOfADomainByThemselves(t *testing.T) {
	k := newYard(t).open(t, Config{})
	mustDomain(t, k, "shop", Domain{Topics: []string{"eu-west"}, ManualCreate: true})
	mustCreate(t, k, of("shop", "EU-west"), "billing", hook("https://a.example"))
	testkit.ErrorIs(t, testkit.Err(k.Create(t.Context(), of("shop", "us-east"), "billing", hook("https://a.example"))), ErrTopicNotFound)
	_, err := k.EnsureTopic(t.Context(), TopicConfig{Topic{Name: "shop", Domain: &Domain{ManualDelete: true}}})
	testkit.Must(t, err)
	mustCreate(t, k, of("shop", "us-east"), "billing", hook("https://a.example"))
	testkit.Must(t, k.Delete(t.Context(), of("shop", "us-east"), "billing"))
	testkit.Equal(t, domainTopics(t, k, "shop"), "eu-west us-east", "topics")
	t1, err := k.UpdateTopic(t.Context(), "shop", func(t *Topic) error { t.Domain.Remove("US-east"); t.Domain.Add("eu-WEST"); return nil })
	testkit.Must(t, err)
	testkit.Slices(t, t1.Domain.Topics, []string{"eu-west"})
}

// G12: a topic that is there by its subscription is there for further ones, too, also where
// subscriptions make none any more, and however they write it.
func TestATopicThatASubscriptionMadeIsThere(t *testing.T) {
	k := newYard(t).open(t, Config{})
	mustDomain(t, k, "shop", Domain{})
	mustCreate(t, k, of("shop", "eu-west"), "billing", hook("https://a.example"))
	setDomain(t, k, "shop", Domain{ManualCreate: true})
	testkit.Equal(t, domainTopics(t, k, "shop"), "eu-west", "topics")
	made := mustCreate(t, k, of("shop", "EU-West"), "shipping", hook("https://a.example"))
	testkit.Equal(t, made.Source.DomainTopic, "eu-west", "its topic")
	testkit.Must(t, k.Delete(t.Context(), of("shop", "eu-west"), "billing"))
	mustCreate(t, k, of("shop", "eu-west"), "billing", hook("https://a.example"))
	testkit.ErrorIs(t, testkit.Err(k.Create(t.Context(), of("shop", "us-east"), "billing", hook("https://a.example"))), ErrTopicNotFound)
}

// G12: what happens to a topic when its last subscription goes is what the domain says then, however
// the topic was made.
func TestATopicAndItsLastSubscription(t *testing.T) {
	for name, c := range map[string]struct {
		topics      []string
		first, then Domain
		want        string
	}{
		"it goes":                             {want: ""},
		"it goes, though it was made":         {topics: []string{"eu-west"}, want: ""},
		"it stays where topics stay":          {first: Domain{ManualDelete: true}, then: Domain{ManualDelete: true}, want: "eu-west"},
		"it stays where they stay by now":     {then: Domain{ManualDelete: true}, want: "eu-west"},
		"it goes where they go by now":        {first: Domain{ManualDelete: true}, want: ""},
		"it stays where none is made, either": {topics: []string{"eu-west"}, then: Domain{ManualCreate: true, ManualDelete: true}, want: "eu-west"},
	} {
		t.Run(name, func(t *testing.T) {
			y := newYard(t)
			k := y.open(t, Config{})
			c.first.Topics = append([]string{"made"}, c.topics...)
			mustDomain(t, k, "shop", c.first)
			for _, name := range []string{"billing", "shipping"} {
				mustCreate(t, k, of("shop", "eu-west"), name, hook("https://a.example"))
			}
			testkit.Must(t, k.Delete(t.Context(), of("shop", "eu-west"), "billing"))
			testkit.Equal(t, domainTopics(t, k, "shop"), "eu-west made", "topics with one left")
			setDomain(t, k, "shop", c.then)
			testkit.ErrorIs(t, k.Delete(t.Context(), of("shop", "made"), "shipping"), ErrNotFound)
			testkit.Must(t, k.Delete(t.Context(), of("shop", "EU-WEST"), "shipping"))
			for _, k := range []*Registry{k, y.open(t, Config{})} {
				testkit.Equal(t, domainTopics(t, k, "shop"), strings.TrimSpace(c.want+" made"), "topics")
			}
		})
	}
}

// G11: an endpoint that refuses leaves no domain topic, either, and takes none along.
func TestEndpointRefusesADomainTopic(t *testing.T) {
	d := newDoorstep(t)
	d.listener.says(Agreement{Why: "no"})
	for name, flags := range map[string]Domain{"auto": {Topics: []string{"made"}}, "manual": {Topics: []string{"made"}, ManualDelete: true}} {
		mustDomain(t, d.Registry, name, flags)
		for _, topic := range []string{"made", "eu-west"} {
			testkit.ErrorIs(t, testkit.Err(d.Create(t.Context(), of(name, topic), "mailer", hook(example))), ErrHandshake)
		}
		testkit.Equal(t, domainTopics(t, d.Registry, name), "made", "topics of %s", name)
	}
}

// Where topics stay, those that subscriptions make count for the bound, too.
func TestTopicsThatStayAreBounded(t *testing.T) {
	k := newYard(t).open(t, Config{})
	var most []string
	for i := range MaxDomainTopics - 1 {
		most = append(most, fmt.Sprintf("topic-%d", i))
	}
	mustDomain(t, k, "shop", Domain{Topics: most})
	mustCreate(t, k, of("shop", "eu-west"), "billing", hook("https://a.example"))
	setDomain(t, k, "shop", Domain{ManualDelete: true})
	create := func() error {
		return testkit.Err(k.Create(t.Context(), of("shop", "us-east"), "billing", hook("https://a.example")))
	}
	wantError(t, create(), ErrInvalid, "1001 topics")
	setDomain(t, k, "shop", Domain{})
	testkit.Must(t, create())
	_, err := k.EnsureTopic(t.Context(), TopicConfig{Topic{Name: "shop", Domain: &Domain{ManualDelete: true}}})
	wantError(t, err, ErrInvalid, "1001 topics")
	_, err = k.UpdateTopic(t.Context(), "shop", func(t *Topic) error { t.Domain.ManualDelete = true; return nil })
	wantError(t, err, ErrInvalid, "1001 topics")
}

// What a domain cannot be, and what cannot be one, is refused.
func TestWhatDomainsRefuse(t *testing.T) {
	k := newYard(t).open(t, Config{}, "plain")
	mustDomain(t, k, "shop", Domain{})
	tooMany := &Domain{}
	for i := range MaxDomainTopics + 1 {
		tooMany.Topics = append(tooMany.Topics, fmt.Sprintf("topic-%d", i))
	}
	create := func(source Source, s Settings) error {
		return testkit.Err(k.Create(t.Context(), source, "billing", s))
	}
	for what, err := range map[string]error{
		"a domain topic of a topic":      create(of("plain", "eu-west"), hook("https://a.example")),
		"a name that is none":            create(of("shop", "eu west"), hook("https://a.example")),
		"a hub with a domain topic":      create(Source{Hub: "a", DomainTopic: "eu-west"}, hook("https://a.example")),
		"a domain topic without domain":  create(Source{DomainTopic: "eu-west"}, hook("https://a.example")),
		"pull from a domain topic":       create(of("shop", "eu-west"), Settings{Pull: &Pull{}}),
		"a topic that becomes a domain":  testkit.Err(k.EnsureTopic(t.Context(), TopicConfig{Topic{Name: "plain", Domain: &Domain{}}})),
		"a domain that becomes a topic":  testkit.Err(k.EnsureTopic(t.Context(), TopicConfig{Topic{Name: "shop"}})),
		"a domain that is made a topic":  testkit.Err(k.UpdateTopic(t.Context(), "shop", func(t *Topic) error { t.Domain = nil; return nil })),
		"too many topics":                testkit.Err(k.CreateTopic(t.Context(), TopicConfig{Topic{Name: "big", Domain: tooMany}})),
		"a topic's name that is none":    testkit.Err(k.CreateTopic(t.Context(), TopicConfig{Topic{Name: "big", Domain: &Domain{Topics: []string{"/"}}}})),
		"domain topics of a plain topic": testkit.Err(k.DomainTopics("plain")),
	} {
		testkit.ErrorIs(t, err, ErrInvalid, "%s", what)
	}
	testkit.ErrorIs(t, testkit.Err(k.DomainTopics("none")), ErrTopicNotFound)
	mustCreate(t, k, topic("shop"), "billing", Settings{Pull: &Pull{}})
}
