package v1

import (
	"encoding/base64"
	"github.com/eventyard/eventyard/internal/api/frame"
	"net/http"
	"path"
	"strings"

	"github.com/eventyard/eventyard/internal/hubs/access"
	"github.com/eventyard/eventyard/internal/hubs/auth"
)

// getBlobConnectionString writes what clients of blob storage take. The account's keys are
// those of the root policy, so there is no policy and no hub to choose.
func (d *Handler) getBlobConnectionString(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	if query.Get("hub") != "" || valueOr(query, "policy", auth.RootPolicy) != auth.RootPolicy {
		return badRequest("leave out hub and policy", "the blob account is the whole yard's, and has the keys of %s", auth.RootPolicy)
	}
	which, err := parseKey(valueOr(query, "key", string(access.PrimaryKey)))
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
	return writeConnectionString(w, at.blobConnectionString(key))
}

// blobConnectionString writes one; the account's name ends the address.
func (e endpoint) blobConnectionString(key string) string {
	scheme, _, _ := strings.Cut(e.address, "://")
	return "DefaultEndpointsProtocol=" + scheme + ";AccountName=" + path.Base(e.address) +
		";AccountKey=" + key + ";BlobEndpoint=" + e.address + ";"
}

func writeConnectionString(w http.ResponseWriter, text string) error {
	return writeJSON(w, http.StatusOK, struct {
		ConnectionString string `json:"connectionString"`
	}{text})
}
