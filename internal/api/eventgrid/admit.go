package eventgrid

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/grid/topickey"
	"github.com/eventyard/eventyard/internal/hubs/auth"
)

// Why a request is not let in, besides what is wrong with a token.
var (
	errNoCredential = notLetIn("the request shows neither a key nor a token",
		"show one of the topic's keys in the header aeg-sas-key, a token made with one in aeg-sas-token, or a policy of the namespace or a bearer token in Authorization")
	errKey = notLetIn("the key is none of the topic's",
		"use key1 or key2 of this topic: eventyard topic show NAME, or POST /topics/NAME/listKeys, shows them to who may manage; a key that was made anew ended the old one")
	errKeysDisabled = notLetIn("the topic takes neither access keys nor signatures made with them",
		"use a policy of the namespace or a bearer token, or set disableLocalAuth of the topic to false")
)

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
		return c.admitPolicy()
	}
	shown, err := credentialOf(c.R)
	if err != nil {
		return err
	}
	if c.topic, err = c.handler.cfg.Topics.Topic(c.names.topic); err != nil {
		return err
	}
	switch shown.scheme {
	case byKey:
		return c.admitKey(shown.text)
	case byNamespaceKey: // for those who use this form keys are a namespace's: those of the root policy, too
		wrong := c.admitKey(shown.text)
		if wrong == nil {
			return nil
		}
		grant, err := c.handler.cfg.Access.Key(auth.RootPolicy, shown.text)
		if err != nil {
			return wrong
		}
		return c.allow(grant)
	case byToken:
		return c.admitToken(shown.text)
	}
	return c.admitPolicy()
}

// credentialOf finds what a request shows (reference §2 and §19). The first that is there counts.
func credentialOf(r *http.Request) (credential, error) {
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

func (c *call) admitKey(key string) error {
	if c.topic.DisableKeys {
		return errKeysDisabled
	}
	if !topickey.Equal(key, c.topic.Key1, c.topic.Key2) {
		return errKey
	}
	return nil
}

func (c *call) admitToken(text string) error {
	if c.topic.DisableKeys {
		return errKeysDisabled
	}
	token, err := topickey.Check(text, time.Now(), c.topic.Key1, c.topic.Key2)
	if err != nil {
		return err
	}
	for _, url := range c.urls() {
		if token.Covers(url) {
			return nil
		}
	}
	return notLetIn(fmt.Sprintf("the token was made for another resource: it is for %.128q", token.Resource), "make one for the URL that you publish to")
}

// urls are those by which what is asked for is known, here and to the outside: a signature is
// good for any of them.
func (c *call) urls() (urls []string) {
	here := "https://" + c.R.Host
	bases := []string{here + "/topics/" + c.topic.Name}
	if public := c.handler.cfg.Endpoint(c.R, c.topic.Name); public != "" {
		bases = append(bases, strings.TrimSuffix(public, "/api/events"))
	}
	for _, base := range bases {
		if c.names.subscription != "" {
			urls = append(urls, base+"/eventsubscriptions/"+c.names.subscription)
			continue
		}
		urls = append(urls, base+"/api/events", base+"/events")
	}
	if c.names.subscription == "" {
		urls = append(urls, here+c.R.URL.EscapedPath())
	}
	return urls
}

// admitPolicy lets in who has the right by a policy of the namespace, or a bearer token.
func (c *call) admitPolicy() error {
	grant, err := frame.Authenticate(c.handler.cfg.Access, c.R)
	if errors.Is(err, frame.ErrNoToken) {
		return errNoCredential
	}
	if err != nil {
		return err
	}
	return c.allow(grant)
}

// allow tells whether a grant is enough. Topics belong to the namespace.
func (c *call) allow(grant auth.Grant) error {
	now, need := time.Now(), c.Route.Need.OneOf[0]
	switch {
	case grant.Allows(auth.Entity{}, need, now):
		return nil
	case grant.Allows(auth.Entity{}, 0, now):
		return &frame.Refusal{
			Status: http.StatusForbidden, Code: "InsufficientRights", Next: "use a policy that has the right",
			Detail: fmt.Sprintf("the policy gives too few rights: it takes %s, and %q gives %s to the namespace",
				strings.Join(need.Names(), " and "), grant.Holder, grant.Rights(auth.Entity{})),
		}
	}
	return fmt.Errorf("%w: what %q shows is not for the whole namespace", auth.ErrAudience, grant.Holder)
}
