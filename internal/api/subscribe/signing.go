package subscribe

import (
	"strings"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/spec"
	"github.com/eventyard/eventyard/internal/grid/signature"
	"github.com/eventyard/eventyard/internal/grid/topics"
)

func applySigning(r admin.SubscriptionRequest, s *topics.Settings) error {
	if r.SigningKeys != nil {
		s.Keys = nil
		for _, text := range r.SigningKeys {
			s.Keys = append(s.Keys, signature.Key{Text: text})
		}
	}
	if r.Sign == nil {
		return nil
	}
	if *r.Sign == "" || *r.Sign == "none" {
		s.Keys = nil
		return nil
	}
	key, err := signature.New(strings.ToLower(*r.Sign))
	if err != nil {
		return invalid("sign", "%q is no way to sign: write hmac, ed25519 or none", *r.Sign)
	}
	s.Keys = []signature.Key{key}
	return nil
}

func showSigning(s topics.Settings, secrets bool, shown *admin.Subscription) {
	shown.Signing = ShowKeys(s, secrets)
}

// ShowKeys gives what receivers check signatures with: of secret keys only that they are there,
// unless secrets are asked for.
func ShowKeys(s topics.Settings, secrets bool) []admin.SigningKey {
	var shown []admin.SigningKey
	for _, k := range s.Keys {
		key := admin.SigningKey{Algorithm: algorithm(k), Expires: spec.TimeIfAny(k.Expires)}
		if key.Algorithm == signature.Ed25519 {
			key.Text, _ = k.Public() // which is no secret
		} else if secrets {
			key.Text = k.Text
		}
		shown = append(shown, key)
	}
	return shown
}

// SameAlgorithm tells whether the newest of some keys signs as another does.
func SameAlgorithm(keys, others []signature.Key) bool {
	return len(keys) > 0 && len(others) > 0 && algorithm(keys[len(keys)-1]) == algorithm(others[0])
}

func algorithm(k signature.Key) string {
	if public, err := k.Public(); err == nil && public != k.Text {
		return signature.Ed25519
	}
	return signature.HMAC
}
