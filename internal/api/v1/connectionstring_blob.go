package v1

import (
	"cmp"
	"encoding/base64"
	"net/http"
	"path"
	"strings"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/hubs/access"
	"github.com/eventyard/eventyard/internal/hubs/auth"
)

// getBlobConnectionString writes what clients of blob storage take. The account's keys are
// those of the root policy, so there is no policy and no hub to choose.
func (d *Handler) getBlobConnectionString(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	if query.Get("hub") != "" || cmp.Or(query.Get("policy"), auth.RootPolicy) != auth.RootPolicy {
		return badRequest("leave out hub and policy", "the blob account is the whole yard's, and has the keys of %s", auth.RootPolicy)
	}
	which, err := parseKey(cmp.Or(query.Get("key"), string(access.PrimaryKey)))
	if err != nil {
		return err
	}
	root, err := d.cfg.Access.Policy("", auth.RootPolicy)
	if err != nil {
		return err
	}
	key := root.Primary
	if which == access.SecondaryKey {
		key = root.Secondary
	}
	if _, err := base64.StdEncoding.Strict().DecodeString(key); err != nil {
		return &frame.Refusal{
			Status: http.StatusConflict, Code: "no-account-key", Title: "The key cannot be that of a blob account",
			Detail: "the " + string(which) + " key of " + auth.RootPolicy + " was chosen by somebody and is no base64, as storage clients want it",
			Next:   "make it anew, or use the other one",
		}
	}
	at, err := d.choose(r, d.cfg.BlobEndpoint, "HTTP listener")
	if err != nil {
		return err
	}
	scheme, _, _ := strings.Cut(at.address, "://")
	return writeJSON(w, http.StatusOK, admin.ConnectionString{
		ConnectionString: "DefaultEndpointsProtocol=" + scheme + ";AccountName=" + path.Base(at.address) + // which the account's name ends
			";AccountKey=" + key + ";BlobEndpoint=" + at.address + ";",
	})
}
