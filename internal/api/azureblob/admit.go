package azureblob

import (
	"encoding/base64"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/auth"
)

// Account is the account of every yard. It has keys of its own.
const Account = "eventyard"

// DevelopmentAccount and DevelopmentAccountKey are those that everybody knows from the
// official storage emulator. They are good in development only.
const (
	DevelopmentAccount    = "devstoreaccount1"
	DevelopmentAccountKey = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)

// maxSkew is how far the time of a signed request may be off.
const maxSkew = 15 * time.Minute

// keysOf gives the keys of an account as they are now, so that one made anew is good, and
// the old one is not, from the next request on. Where the root policy's are good, too, one that
// somebody has chosen may be no base64: such a one cannot be an account's.
func (d *Handler) keysOf(account string) [][]byte {
	texts := []string{DevelopmentAccountKey}
	if account == Account {
		own := d.cfg.Access.Account()
		texts = []string{own.Primary, own.Secondary}
		if root, err := d.cfg.Access.Policy("", auth.RootPolicy); err == nil && own.RootKeys {
			texts = append(texts, root.Primary, root.Secondary)
		}
	}
	var keys [][]byte
	for _, text := range texts {
		if key, err := DecodeKey(text); err == nil && len(key) > 0 { // with no key at all everybody could sign
			keys = append(keys, key)
		}
	}
	return keys
}

// DecodeKey reads a key as storage clients do, if it is one that they can read.
func DecodeKey(text string) ([]byte, error) { return base64.StdEncoding.Strict().DecodeString(text) }

// grant is what a request was let in with.
type grant struct {
	// everything: the account's key, or who manages the namespace.
	everything bool
	// permissions of a shared-access signature, and the levels they are for: those of an
	// account's, or of a container's or blob's.
	permissions string
	levels      string
	// owner: it is an account's.
	owner bool
	// overrides are the headers that readers are to be told instead of the blob's own.
	overrides url.Values
}

// enterNext is what to do for who is not let in. The service has one text for what is wrong and for that.
const enterNext = "Use the connection string that eventyard connection-string --blob shows, and compare the clocks of both machines"

func failed(message string) error {
	return refusal(http.StatusForbidden, "AuthenticationFailed", "the request could not be authenticated: "+message+". "+enterNext)
}

// onlyInside is for a signature that is not the account's. With such a one Azure Storage, too, refuses to create a
// container that is there already, by this code, so that a store which creates its own needs to be told not to.
const onlyInside = "a signature for a container or a blob opens what is in it, and not the container itself, nor the account: " +
	"to create a container use eventyard blob create or the account's key, and have the store use it without creating it"

// Admit authenticates the request and checks that the grant covers the operation.
func (c *call) Admit() (err error) {
	if c.grant, err = c.handler.admit(c); err != nil || c.grant.everything {
		return err
	}
	need := c.operation.need
	if need.Account && !c.grant.owner {
		return refusal(http.StatusForbidden, "AuthorizationFailure", onlyInside)
	}
	if !strings.ContainsRune(c.grant.levels, rune(c.level)) {
		return refusal(http.StatusForbidden, "AuthorizationResourceTypeMismatch", "the signature is not for this kind of resource: make one for it, or use the account's key")
	}
	if !strings.ContainsAny(c.grant.permissions, need.Permissions) {
		return refusal(http.StatusForbidden, "AuthorizationPermissionMismatch", "the signature does not permit this: it takes one of "+need.Permissions+": make one that has it, or use the account's key")
	}
	return nil
}

func (d *Handler) admit(c *call) (grant, error) {
	shown := c.R.Header.Get("Authorization")
	scheme, rest, _ := strings.Cut(shown, " ")
	switch {
	case shown == "" && c.query.Has("sig"):
		return d.admitSignature(c)
	case shown == "":
		return grant{}, refusal(http.StatusUnauthorized, "NoAuthenticationInformation",
			"the request shows neither a shared key nor a shared-access signature nor a bearer token. "+enterNext)
	case strings.EqualFold(scheme, "SharedKey"):
		return d.admitSharedKey(c, rest, stringsToSign)
	case strings.EqualFold(scheme, "SharedKeyLite"):
		return d.admitSharedKey(c, rest, stringsToSignLite)
	case strings.EqualFold(scheme, "Bearer"):
		return d.admitBearer(c, strings.TrimSpace(rest))
	}
	return grant{}, refusal(http.StatusBadRequest, "InvalidAuthenticationInfo", "use SharedKey or Bearer, or a shared-access signature")
}

// admitBearer lets in who may manage the namespace: blobs belong to all of it.
func (d *Handler) admitBearer(c *call, token string) (grant, error) {
	given, err := d.cfg.Access.Token(c.R.Context(), token, "")
	if err != nil {
		return grant{}, refusal(http.StatusUnauthorized, "InvalidAuthenticationInfo", "the token is not good: "+err.Error()+": get a new one, from the issuer that the yard is told to trust")
	}
	if !given.Allows(auth.Entity{}, auth.Manage, time.Now()) {
		return grant{}, refusal(http.StatusForbidden, "AuthorizationPermissionMismatch", "blobs take the right to manage the namespace: use another token, or the account's key")
	}
	return grant{everything: true}, nil
}

// mayOnlyCreate: what is there must not be overwritten.
func (g *grant) mayOnlyCreate() bool { return !g.everything && !strings.Contains(g.permissions, "w") }
