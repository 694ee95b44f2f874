package eventgrid

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/activity"
	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/grid/topickey"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/caller"
)

// Why a request is not let in, besides what is wrong with a token.
var (
	errNoCredential = notLetIn("the request shows neither a key nor a token",
		"show one of the topic's keys in the header aeg-sas-key, a token made with one in aeg-sas-token, or a policy of the namespace or a bearer token in Authorization")
	errKey = notLetIn("the key is none of the topic's, or there is no such topic",
		"use key1 or key2 of this topic: eventyard topic show NAME, or POST /topics/NAME/listKeys, shows them to who may manage; a key that was made anew ended the old one")
	errKeysDisabled = notLetIn("the topic takes neither access keys nor signatures made with them",
		"use a policy of the namespace or a bearer token, or set disableLocalAuth of the topic to false")
)

// errYardsOwn: nobody may publish there, whatever is shown.
var errYardsOwn = &frame.Refusal{
	Status: http.StatusForbidden, Code: "ResourceReserved", Detail: "only the yard itself publishes to " + topics.YardEvents,
	Next: "publish to a topic of your own; receiving from this one is as with any other",
}

func notLetIn(detail, next string) error {
	return &frame.Refusal{Status: http.StatusUnauthorized, Code: "Unauthorized", Detail: detail, Next: next}
}

// howToEnter ends what a client is told that showed nothing good. Where the well-known key works
// it is no secret.
func (d *Handler) howToEnter() string {
	if !d.cfg.Access.Development() {
		return ""
	}
	return "; with curl on this machine: curl -u " + auth.RootPolicy + ":" + auth.DevelopmentKey + " URL"
}

// scheme is a way to be let in.
type scheme byte

const (
	byKey          scheme = iota // one of the topic's keys
	byNamespaceKey               // one of the topic's, or of the namespace's root policy
	byToken                      // signed with one of the topic's keys
	byPolicy                     // a policy of the namespace, or a bearer token
)

// credential is what a request shows.
type credential struct {
	scheme scheme
	text   string
}

// Admit lets a call in or says why not. It is the one place where that is decided.
func (c *call) Admit() error {
	switch {
	case c.Route.Need.Reach == frame.Nobody:
		return nil
	case !c.Route.Need.TopicKey:
		return c.admitPolicy(c.Route.Need)
	}
	return c.admitTo(c.Route.Need)
}

// admitTo lets in to the topic of the path. Whoever shows nothing that is good hears the same of
// every name, whether it is a topic's or not, and waits as long: in place of a topic that is not
// there stands one whose keys nobody knows. Before a topic or a key is said to be none, this node looks
// whether another has made it a moment ago.
func (c *call) admitTo(need frame.Need) error {
	shown, err := credentialOf(c.R)
	if err != nil {
		return err
	}
	topic, missing := c.handler.cfg.Topics.Topic(c.names.topic)
	err = c.admitAs(shown, topic, missing, need)
	unknown := errors.Is(err, errKey) || errors.Is(err, topickey.ErrSignature) || err != nil && missing != nil
	if unknown && c.handler.cfg.Access.MayLook(c.R.Context()) {
		topic, missing = c.handler.cfg.Topics.LookUpTopic(c.R.Context(), c.names.topic)
		if missing != nil && !errors.Is(missing, topics.ErrTopicNotFound) {
			return missing // nobody can tell just now
		}
		err = c.admitAs(shown, topic, missing, need)
	}
	return err
}

// admitAs is admitTo of a topic as it is known; missing: it is not.
func (c *call) admitAs(shown credential, topic topics.Topic, missing error, need frame.Need) error {
	if missing != nil {
		topic = c.handler.nowhere
	} else {
		c.topic = topic
	}
	c.Holder = "topic " + c.names.topic // unless it is a policy's
	if err := c.admitShown(shown, &topic, need); err != nil {
		return err
	}
	if missing == nil && topic.Name == topics.YardEvents && need.OneOf[0] == auth.Send {
		return errYardsOwn
	}
	return missing
}

func (c *call) admitShown(shown credential, topic *topics.Topic, need frame.Need) error {
	switch shown.scheme {
	case byKey:
		return c.admitKey(shown.text, topic)
	case byNamespaceKey: // for those who use this form keys are a namespace's: those of the root policy, too
		wrong := c.admitKey(shown.text, topic)
		grant, err := c.handler.cfg.Access.Key(c.R.Context(), auth.RootPolicy, shown.text)
		if wrong != nil && errors.Is(err, auth.ErrUnavailable) {
			return err
		}
		if wrong == nil || err != nil {
			return wrong
		}
		return c.admitGrant(grant, need)
	case byToken:
		return c.admitToken(shown.text, topic)
	}
	return c.admitPolicy(need)
}

// credentialOf finds what a request shows (reference §2 and §19). The first that is there counts.
func credentialOf(r *http.Request) (credential, error) {
	if frame.FromInside(r) {
		return credential{scheme: byPolicy}, nil
	}
	if key, ok := r.Header["Aeg-Sas-Key"]; ok {
		return shownKey(key[0])
	}
	if token, ok := r.Header["Aeg-Sas-Token"]; ok {
		return credential{byToken, token[0]}, nil
	}
	if authorization := strings.TrimSpace(r.Header.Get("Authorization")); r.Header.Get("Authorization") != "" {
		word, rest, _ := strings.Cut(authorization, " ")
		rest = strings.TrimSpace(rest)
		switch auth.Fold(word) {
		case "sharedaccesskey":
			return credential{byNamespaceKey, rest}, nil
		case "sharedaccesssignature": // those of the namespace name their resource sr, those of a topic r
			if !strings.HasPrefix(rest, "sr=") && !strings.Contains(rest, "&sr=") {
				return credential{byToken, rest}, nil
			}
		}
		return credential{scheme: byPolicy}, nil
	}
	if query := r.URL.Query(); query.Has("aeg-sas-key") {
		return shownKey(query.Get("aeg-sas-key"))
	}
	return credential{}, errNoCredential
}

// shownKey refuses an empty one the way that Event Grid does.
func shownKey(key string) (credential, error) {
	if key == "" {
		return credential{}, &frame.Refusal{Status: http.StatusBadRequest, Code: "InvalidSas", Detail: "aeg-sas-key is empty", Next: "send one of the topic's keys in it"}
	}
	return credential{byKey, key}, nil
}

// admitKey tells of keys that are disabled only to who has one.
func (c *call) admitKey(key string, topic *topics.Topic) error {
	switch {
	case !topickey.Equal(key, topic.Key1, topic.Key2):
		return errKey
	case topic.DisableKeys:
		return errKeysDisabled
	}
	c.calledBy(caller.Digest(key), time.Time{}, topic)
	return nil
}

// calledBy takes note of which key of a topic was shown, for who receives: another node may have to
// judge that, too.
func (c *call) calledBy(key [sha256.Size]byte, expires time.Time, topic *topics.Topic) {
	if c.names.subscription != "" {
		c.caller = caller.Caller{Topic: &caller.TopicKey{Topic: topic.Name, Subscription: c.names.subscription, Key: key, Expires: expires}}
	}
}

func (c *call) admitToken(text string, topic *topics.Topic) error {
	token, err := topickey.Check(text, time.Now(), topic.Key1, topic.Key2)
	switch {
	case err != nil:
		return err
	case topic.DisableKeys:
		return errKeysDisabled
	case !token.Covers(c.target(topic)):
		return notLetIn(fmt.Sprintf("the token was made for another resource: it is for %.128q", token.Resource), "make one for the URL that you publish to")
	}
	c.calledBy(token.Key, token.Expires, topic)
	return nil
}

// target is what the route is for, and by which names: the one that the client uses, and the one
// that clients are told.
func (c *call) target(topic *topics.Topic) topickey.Target {
	at := topickey.Target{Topic: topic.Name, Subscription: c.names.subscription, Hosts: []string{c.R.Host}}
	if public, err := url.Parse(c.handler.cfg.Endpoint(c.R, topic.Name)); err == nil && public.Host != "" {
		at.Hosts = append(at.Hosts, public.Host)
		at.Prefix = strings.TrimSuffix(strings.TrimSuffix(public.Path, "/api/events"), "/topics/"+topic.Name)
	}
	return at
}

// admitPolicy lets in who has the right by a policy of the namespace, or a bearer token.
func (c *call) admitPolicy(need frame.Need) error {
	grant, err := frame.Authenticate(c.handler.cfg.Access, c.R)
	if errors.Is(err, frame.ErrNoToken) {
		return errNoCredential
	}
	if err != nil {
		return err
	}
	return c.admitGrant(grant, need)
}

func (c *call) admitGrant(grant auth.Grant, need frame.Need) error {
	c.Holder, c.caller = grant.Account(), caller.Caller{Grant: grant}
	if need.OneOf[0] == auth.Manage {
		c.R = c.R.WithContext(activity.By(c.R.Context(), grant.Holder, frame.Address(c.R)))
	}
	return allow(grant, need)
}

// allow tells whether a grant is enough. Topics belong to the namespace.
func allow(grant auth.Grant, need frame.Need) error {
	now, right := time.Now(), need.OneOf[0]
	switch {
	case grant.Allows(auth.Entity{}, right, now):
		return nil
	case grant.Allows(auth.Entity{}, 0, now):
		return &frame.Refusal{
			Status: http.StatusForbidden, Code: "InsufficientRights", Next: "use a policy that has the right",
			Detail: fmt.Sprintf("the policy gives too few rights: it takes %s, and %q gives %s to the namespace",
				strings.Join(right.Names(), " and "), grant.Holder, grant.Rights(auth.Entity{})),
		}
	}
	return fmt.Errorf("%w: what %q shows is not for the whole namespace", auth.ErrAudience, grant.Holder)
}
