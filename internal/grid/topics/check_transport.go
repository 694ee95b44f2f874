package topics

import (
	"net/netip"
	"net/url"
	"strings"
)

// checkTransport refuses a URL that is none, and what means nothing, or gives secrets away, without
// TLS. It never repeats the URL, which may have a secret in it.
func (s Settings) checkTransport() error {
	if s.Webhook == nil {
		return nil
	}
	u, err := url.Parse(s.Webhook.URL)
	if err != nil {
		return nil // who knows addresses says what is wrong with it
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return invalid("the webhook's URL does not begin with http:// or https://: write all of it, as in https://example.com/hook")
	}
	if u.Scheme == "http" && (s.Webhook.Cert != "" || s.Webhook.Key != "") {
		return invalid("the webhook's URL is plain http, where a client certificate is never shown: use https, or leave the certificate out")
	}
	if s.Webhook.OAuth == nil {
		if u.Scheme == "http" && s.Webhook.CA != "" {
			return invalid("the webhook's URL is plain http, where no certificate is checked: use https, or leave the authorities out")
		}
		return nil
	}
	token, err := url.Parse(s.Webhook.OAuth.TokenURL)
	if inTheClear(u) || err == nil && inTheClear(token) {
		return invalid("OAuth over plain http would give the token or the secret away: use https, for the webhook's URL and for the token's")
	}
	return nil
}

// inTheClear tells whether others than this machine could read what is sent.
func inTheClear(u *url.URL) bool {
	if u.Scheme != "http" {
		return false
	}
	name := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	address, err := netip.ParseAddr(name)
	return name != "localhost" && !strings.HasSuffix(name, ".localhost") && (err != nil || !address.Unmap().IsLoopback())
}
