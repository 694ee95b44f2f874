package azureblob

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/hubs/blob"
)

// A shared-access signature is in the query of a request: what it permits, until when, and
// a signature of that by a key of the account. That of an account is for kinds of
// resources, that of the service for one container or blob.

// Versions since which more is signed.
const (
	oldestSAS    = "2015-04-05"
	resourceSAS  = "2018-11-09" // the resource's kind and its snapshot
	encryptedSAS = "2020-12-06" // the encryption scope
)

// admitSignature checks a shared-access signature.
func (d *Handler) admitSignature(c *call) (grant, error) {
	q := c.query
	version := q.Get("sv")
	switch {
	case !versionForm.MatchString(version) || version < oldestSAS:
		return grant{}, failed("signatures of a version before " + oldestSAS + " are not taken")
	case q.Has("skoid") || q.Has("sktid") || q.Has("skv"):
		return grant{}, failed("signatures by a user delegation key are not offered")
	case q.Get("si") != "":
		return grant{}, failed("stored access policies are not offered")
	}
	var g grant
	var text string
	var err error
	if q.Has("ss") || q.Has("srt") {
		g, text, err = accountSAS(q, c.at.Account)
	} else {
		g, text, err = serviceSAS(q, c)
	}
	if err != nil {
		return grant{}, err
	}
	if !signedBy(d.keysOf(c.at.Account), q.Get("sig"), text) {
		return grant{}, failed("the signature fits no key of the account, or what was signed is not what arrived")
	}
	return g, checkTerms(q, c)
}

// accountSAS gives what an account's signature permits, if it is one, and what was signed.
func accountSAS(q url.Values, account string) (grant, string, error) {
	if !strings.Contains(q.Get("ss"), "b") {
		return grant{}, "", failed("the signature is not for blobs")
	}
	fields := []string{account, q.Get("sp"), q.Get("ss"), q.Get("srt"), q.Get("st"), q.Get("se"), q.Get("sip"), q.Get("spr"), q.Get("sv")}
	if q.Get("sv") >= encryptedSAS {
		fields = append(fields, q.Get("ses"))
	}
	g := grant{permissions: q.Get("sp"), levels: q.Get("srt"), owner: true}
	return g, strings.Join(fields, "\n") + "\n", nil
}

// serviceSAS gives what a signature for one container or blob permits, if it is for that
// of the request, and what was signed.
func serviceSAS(q url.Values, c *call) (grant, string, error) {
	g := grant{permissions: q.Get("sp"), overrides: q}
	resource := containerResource(c.at.Account, c.at.Container)
	switch q.Get("sr") {
	case "b":
		g.levels = string(atBlob)
		resource += "/" + c.at.Blob
	case "c":
		g.levels = string(atBlob) + string(atContainer)
	default:
		return grant{}, "", failed("the signature is for neither a container nor a blob")
	}
	return g, serviceText(q, resource), nil
}

func containerResource(account, container string) string { return "/blob/" + account + "/" + container }

// serviceText is what is signed of a signature for one container or blob.
func serviceText(q url.Values, resource string) string {
	fields := []string{q.Get("sp"), q.Get("st"), q.Get("se"), resource, q.Get("si"), q.Get("sip"), q.Get("spr"), q.Get("sv")}
	if q.Get("sv") >= resourceSAS {
		fields = append(fields, q.Get("sr"), q.Get("snapshot"))
	}
	if q.Get("sv") >= encryptedSAS {
		fields = append(fields, q.Get("ses"))
	}
	fields = append(fields, q.Get("rscc"), q.Get("rscd"), q.Get("rsce"), q.Get("rscl"), q.Get("rsct"))
	return strings.Join(fields, "\n")
}

// containerPermissions are those that a signature for a container may have here: to read, write,
// create, delete and list blobs.
const containerPermissions = "rcwdl"

// SignContainer makes a shared-access signature for one container of the account, to be used as the
// query of URLs until it expires or the key is made anew.
func SignContainer(key, container, permissions string, expires time.Time) (string, error) {
	secret, err := DecodeKey(key)
	switch {
	case err != nil || len(secret) == 0:
		return "", errors.New("sign for a container: the key is none of a blob account")
	case permissions == "" || strings.Trim(permissions, containerPermissions) != "":
		return "", fmt.Errorf("sign for a container: permissions %.32q: use some of %s", permissions, containerPermissions)
	}
	if err := blob.CheckContainer(container); err != nil {
		return "", fmt.Errorf("sign for a container: %w", err)
	}
	q := url.Values{
		"sv": {encryptedSAS}, "sr": {"c"}, "sp": {permissions}, "se": {expires.UTC().Format("2006-01-02T15:04:05Z")},
	}
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(serviceText(q, containerResource(Account, container))))
	q.Set("sig", base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	return q.Encode(), nil
}

// checkTerms checks when, from where and how a signature may be used.
func checkTerms(q url.Values, c *call) error {
	now := time.Now()
	if text := q.Get("st"); text != "" {
		start, ok := parseSASTime(text)
		if !ok || now.Before(start) {
			return failed("the signature is not good yet")
		}
	}
	end, ok := parseSASTime(q.Get("se"))
	if !ok || !now.Before(end) {
		return fmt.Errorf("%w: %w", auth.ErrExpired, failed("the signature has expired"))
	}
	if text := q.Get("sip"); text != "" && !fromAddress(text, c.R.RemoteAddr) {
		return failed("the signature is not for this address")
	}
	switch q.Get("spr") {
	case "", "https,http", "http,https":
	case "https":
		if c.R.TLS == nil {
			return failed("the signature is for https only")
		}
	default:
		return failed("the signature names a protocol that there is not")
	}
	return nil
}

// parseSASTime reads a time of ISO 8601, down to the day, as signatures have it.
func parseSASTime(text string) (time.Time, bool) {
	for _, form := range []string{"2006-01-02T15:04:05.9999999Z07:00", "2006-01-02T15:04Z07:00", "2006-01-02"} {
		if t, err := time.Parse(form, text); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// fromAddress tells whether a client's address is the one, or in the range, that is named.
func fromAddress(named, remote string) bool {
	host, _, err := net.SplitHostPort(remote)
	if err != nil {
		return false
	}
	client, err := netip.ParseAddr(host)
	if err != nil {
		return false
	}
	first, last, ranged := strings.Cut(named, "-")
	if !ranged {
		last = first
	}
	low, err1 := netip.ParseAddr(first)
	high, err2 := netip.ParseAddr(last)
	client = client.Unmap()
	return err1 == nil && err2 == nil && !client.Less(low) && !high.Less(client)
}
