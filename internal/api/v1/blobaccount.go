package v1

import (
	"fmt"
	"net/http"
	"path"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/api/spec"
	"github.com/eventyard/eventyard/internal/hubs/access"
	"github.com/eventyard/eventyard/internal/quota"
)

// showBlobAccount shows the account with its keys: who may see it at all has Manage.
func (d *Handler) showBlobAccount(r *http.Request, a access.Account) admin.BlobAccount {
	at := d.usual(r, d.cfg.BlobEndpoint)
	return admin.BlobAccount{
		Name: accountName(at.address), Endpoint: at.address, RootKeys: a.RootKeys, Created: admin.Time{Time: a.Created},
		PrimaryKey: a.Primary, SecondaryKey: a.Secondary, Quota: spec.ShowBlobQuota(a.Quota),
	}
}

// accountName is that of the account whose URL ends with it; empty where there is none.
func accountName(endpoint string) string {
	if endpoint == "" {
		return ""
	}
	return path.Base(endpoint)
}

func (d *Handler) getBlobAccount(w http.ResponseWriter, r *http.Request) error {
	shown := d.showBlobAccount(r, d.cfg.Access.Account())
	if asksForKeys(r) {
		d.reveal(r, "blob-account")
	} else {
		shown.PrimaryKey, shown.SecondaryKey = "", ""
	}
	return writeJSON(w, http.StatusOK, shown)
}

func (d *Handler) updateBlobAccount(w http.ResponseWriter, r *http.Request) error {
	var q admin.BlobAccountRequest
	if err := readJSON(r, &q); err != nil {
		return err
	}
	if q.RootKeys == nil && q.Quota == nil {
		return badRequest(`send {"rootKeys":false} to end connection strings that hold a key of the root policy, or {"quota":{"requests":100}}`, "the request changes nothing")
	}
	if err := spec.BlobAccount.CheckFirst(&q); err != nil {
		return fmt.Errorf("limit the blob account: %w: %w", access.ErrInvalid, err)
	}
	a := d.cfg.Access.Account()
	var err error
	if q.Quota != nil {
		a, err = d.cfg.Access.LimitAccount(r.Context(), func(l *quota.Limit) { spec.ApplyBlobQuota(q.Quota, l) })
	}
	if q.RootKeys != nil && err == nil {
		a, err = d.cfg.Access.AllowRootKeys(r.Context(), *q.RootKeys)
	}
	return answer(w, d.showBlobAccount(r, a), err)
}

// regenerateBlobKey makes one key anew. The other goes on being good, so that clients can be moved
// over to it first.
func (d *Handler) regenerateBlobKey(w http.ResponseWriter, r *http.Request) error {
	var q admin.KeyChoice
	if err := readJSON(r, &q); err != nil {
		return err
	}
	key, err := parseKey(q.Key)
	if err != nil {
		return err
	}
	a, err := d.cfg.Access.RegenerateAccount(r.Context(), key)
	return answer(w, d.showBlobAccount(r, a), err)
}
