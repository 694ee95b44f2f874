package v1

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/config/quantity"
	"github.com/eventyard/eventyard/internal/hubs/access"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// What a signature for a container is, where the request says nothing else: all that a checkpoint
// store needs, for a quarter of a year.
const (
	usualPermissions = "rcwdl"
	usualSASLife     = "90d"
)

// getBlobConnectionString writes what clients of blob storage take. The account has keys of its
// own, so there is no policy and no hub to choose. For one container it holds a signature in place
// of a key.
func (d *Handler) getBlobConnectionString(w http.ResponseWriter, r *http.Request) error {
	query := r.URL.Query()
	if query.Get("hub") != "" || cmp.Or(query.Get("policy"), auth.RootPolicy) != auth.RootPolicy {
		return badRequest("leave out hub and policy", "the blob account is the whole yard's, and has keys of its own")
	}
	which, err := parseKey(cmp.Or(query.Get("key"), string(access.PrimaryKey)))
	if err != nil {
		return err
	}
	account := d.cfg.Access.Account()
	key := account.Primary
	if which == access.SecondaryKey {
		key = account.Secondary
	}
	if key == "" {
		return fmt.Errorf("%w: there was none to make the blob account: it is made at the next start", meta.ErrNoSpace)
	}
	at, err := d.choose(r, d.cfg.BlobEndpoint, "HTTP listener")
	if err != nil {
		return err
	}
	opens := "AccountKey=" + key
	if container := query.Get("container"); container != "" {
		life := cmp.Or(query.Get("expires"), usualSASLife)
		duration, err := quantity.ParseDuration(life)
		if err != nil || duration <= 0 {
			return badRequest("give a duration like 90d or 12h", "expires=%.32q is none", life)
		}
		signature, err := d.cfg.SignContainer(key, container, cmp.Or(query.Get("permissions"), usualPermissions), time.Now().Add(duration))
		if err != nil {
			return badRequest("give container a name of 3 to 63 small letters, digits and single hyphens, and permissions some of "+usualPermissions, "%v", err)
		}
		opens = "SharedAccessSignature=" + signature
	}
	scheme, _, _ := strings.Cut(at.address, "://")
	return writeJSON(w, http.StatusOK, admin.ConnectionString{
		ConnectionString: "DefaultEndpointsProtocol=" + scheme + ";AccountName=" + accountName(at.address) + ";" + opens + ";BlobEndpoint=" + at.address + ";",
	})
}
