package subscribe

import (
	"strings"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/transport/egress"
)

// applyTrust says how a webhook is reached and how the yard is let in there.
func applyTrust(r admin.SubscriptionRequest, s *topics.Settings) error {
	if r.CA == nil && r.SkipVerify == nil && r.Cert == nil && r.Key == nil && r.OAuth == nil && r.MinTLS == nil {
		return nil
	}
	if s.Webhook == nil {
		return invalid("endpoint", "certificates, authorities and OAuth are for webhooks: give an endpoint")
	}
	hook := *s.Webhook
	set(r.CA, &hook.CA)
	set(r.SkipVerify, &hook.SkipVerify)
	set(r.Cert, &hook.Cert)
	set(r.Key, &hook.Key)
	set(r.MinTLS, &hook.MinTLS)
	if r.OAuth != nil {
		var err error
		if hook.OAuth, err = newOAuth(*r.OAuth, hook.OAuth); err != nil {
			return err
		}
	}
	s.Webhook = &hook
	return nil
}

// newOAuth keeps a secret that was not given where it is asked for by the same client at the same
// place, and the query of that place where it is written as Show shows it.
func newOAuth(given admin.OAuth, present *egress.OAuth) (*egress.OAuth, error) {
	if given == (admin.OAuth{}) {
		return nil, nil
	}
	o := egress.OAuth(given)
	if strings.HasSuffix(o.TokenURL, admin.HiddenQuery) {
		if present == nil || o.TokenURL != hideQuery(present.TokenURL) {
			return nil, invalid("oauth.tokenUrl", "the query is hidden, and that of another URL is not known: write the whole URL")
		}
		o.TokenURL = present.TokenURL
	}
	if present != nil && o.Secret == "" && o.TokenURL == present.TokenURL && o.ClientID == present.ClientID {
		o.Secret = present.Secret
	}
	return &o, nil
}

func showTrust(s topics.Settings, _ bool, shown *admin.Subscription) {
	hook := s.Webhook
	if hook == nil {
		return
	}
	shown.MutualTLS, shown.CustomCA, shown.SkipVerify, shown.MinTLS = hook.Cert != "", hook.CA != "", hook.SkipVerify, hook.MinTLS
	if hook.OAuth != nil {
		shown.OAuth = new(admin.OAuth(*hook.OAuth))
		shown.OAuth.TokenURL, shown.OAuth.Secret = hideQuery(hook.OAuth.TokenURL), ""
	}
}
