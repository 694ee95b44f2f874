package eventgrid

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/grid/topickey"
	"github.com/eventyard/eventyard/internal/hubs/auth"
)

// Why a request is not let in, besides what is wrong with a token.
var (
	// errNoCredential: it shows nothing.
	errNoCredential = errors.New("the request shows neither a key nor a token")
	// errKey: the key is none of the topic's.
	errKey = errors.New("the key is none of the topic's")
	// errKeysDisabled: the topic takes no keys, nor what is made with them.
	errKeysDisabled = errors.New("the topic takes neither access keys nor signatures made with them")
	// errResource: the signature is good, but for something else.
	errResource = errors.New("the token was made for another resource")
	// errRights: the policy is good, but may not do this.
	errRights = errors.New("the policy gives too few rights")
)

// challenges are the ways to be let in that the header has words for.
var challenges = []string{`SharedAccessSignature realm="eventyard"`, `Bearer realm="eventyard"`, `Basic realm="eventyard", charset="UTF-8"`}

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

// admit lets a call in or says why not. It is the one place where that is decided, and comes
// before anything is read of the request but its head.
func (c *call) admit() error {
	switch c.route.need {
	case nothing:
		return nil
	case toManage:
		return c.admitPolicy()
	}
	shown, err := credentialOf(c.r)
	if err != nil {
		return err
	}
	if c.topic, err = c.handler.cfg.Topics.Topic(c.names.topic); err != nil {
		return err
	}
	switch shown.scheme {
	case byKey:
		return c.admitKey(shown.text)
	case byNamespaceKey:
		return c.admitNamespaceKey(shown.text)
	case byToken:
		return c.admitToken(shown.text)
	}
	return c.admitPolicy()
}

// credentialOf finds what a request shows (reference §2 and §19). The first that is there
// counts.
func credentialOf(r *http.Request) (credential, error) {
	if key, ok := r.Header["Aeg-Sas-Key"]; ok {
		return shownKey(key[0])
	}
	if token, ok := r.Header["Aeg-Sas-Token"]; ok {
		return credential{byToken, token[0]}, nil
	}
	if r.Header.Get("Authorization") != "" {
		return authorizationOf(r)
	}
	if query := r.URL.Query(); query.Has("aeg-sas-key") {
		return shownKey(query.Get("aeg-sas-key"))
	}
	return credential{}, errNoCredential
}

// shownKey refuses an empty one the way that Event Grid does.
func shownKey(key string) (credential, error) {
	if key == "" {
		return credential{}, &fault{status: http.StatusBadRequest, code: "InvalidSas", message: "aeg-sas-key is empty", next: "send one of the topic's keys in it"}
	}
	return credential{byKey, key}, nil
}

// authorizationOf reads the Authorization header: which of the schemes it is, and of signatures
// whose. Those of the namespace name their resource sr, those of a topic r.
func authorizationOf(r *http.Request) (credential, error) {
	word, rest, _ := strings.Cut(strings.TrimSpace(r.Header.Get("Authorization")), " ")
	rest = strings.TrimSpace(rest)
	switch auth.Fold(word) {
	case "sharedaccesskey":
		return credential{byNamespaceKey, rest}, nil
	case "sharedaccesssignature":
		if !strings.HasPrefix(rest, "sr=") && !strings.Contains(rest, "&sr=") {
			return credential{byToken, rest}, nil
		}
	}
	return credential{scheme: byPolicy}, nil
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

// admitNamespaceKey takes the keys of the root policy, too: for those who use this form, keys
// are a namespace's.
func (c *call) admitNamespaceKey(key string) error {
	if c.admitKey(key) == nil {
		return nil
	}
	grant, err := c.handler.cfg.Access.Key(auth.RootPolicy, key)
	if err != nil {
		return c.admitKey(key)
	}
	return c.allow(grant)
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
	return fmt.Errorf("%w: it is for %.128q", errResource, token.Resource)
}

// urls are those by which what is asked for is known, here and to the outside: a signature is
// good for any of them.
func (c *call) urls() (urls []string) {
	here := "https://" + c.r.Host
	bases := []string{here + "/topics/" + c.topic.Name}
	if public := c.handler.cfg.Endpoint(c.r, c.topic.Name); public != "" {
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
		urls = append(urls, here+c.r.URL.EscapedPath())
	}
	return urls
}

// admitPolicy lets in who has the right by a policy of the namespace, or a bearer token.
func (c *call) admitPolicy() error {
	grant, err := c.authenticate()
	if err != nil {
		return err
	}
	return c.allow(grant)
}

// authenticate reads the Authorization header as the HTTP listener does.
func (c *call) authenticate() (auth.Grant, error) {
	given := c.r.Header.Values("Authorization")
	switch len(given) {
	case 0:
		return auth.Grant{}, errNoCredential
	case 1:
	default:
		return auth.Grant{}, fmt.Errorf("%w: the request has %d Authorization headers", auth.ErrMalformed, len(given))
	}
	word, rest, _ := strings.Cut(strings.TrimSpace(given[0]), " ")
	access := c.handler.cfg.Access
	switch auth.Fold(word) {
	case "":
		return auth.Grant{}, errNoCredential
	case "basic":
		name, key, ok := c.r.BasicAuth()
		if !ok {
			return auth.Grant{}, fmt.Errorf("%w: Basic wants the base64 of a policy's name, a colon and its key", auth.ErrMalformed)
		}
		return access.Key(name, key)
	case "bearer":
		return access.Token(c.r.Context(), strings.TrimSpace(rest), "")
	case "sharedaccesssignature":
		return access.Token(c.r.Context(), "SharedAccessSignature "+strings.TrimSpace(rest), "")
	}
	return auth.Grant{}, fmt.Errorf("%w: the Authorization header begins with %.32q", auth.ErrUnsupported, word)
}

// allow tells whether a grant is enough. Topics belong to the namespace.
func (c *call) allow(grant auth.Grant) error {
	now, need := time.Now(), c.route.need.rights()
	switch {
	case grant.Allows(auth.Entity{}, need, now):
		return nil
	case grant.Allows(auth.Entity{}, 0, now):
		return fmt.Errorf("%w: it takes %s, and %q gives %s to the namespace", errRights, strings.Join(need.Names(), " and "), grant.Holder, grant.Rights(auth.Entity{}))
	}
	return fmt.Errorf("%w: what %q shows is not for the whole namespace", auth.ErrAudience, grant.Holder)
}
