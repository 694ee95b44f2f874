package admin

import (
	"context"
	"net/http"
)

// BlobAccount is the account of the yard's blob endpoint with its keys, as the yard shows it.
type BlobAccount struct {
	// Name and Endpoint are empty where the yard has no HTTP listener.
	Name     string `json:"name,omitempty"`
	Endpoint string `json:"endpoint,omitempty"`
	// RootKeys: the keys of the root policy open blobs, too, as they did before the account had
	// keys of its own.
	RootKeys     bool   `json:"rootKeys"`
	Created      Time   `json:"created"`
	PrimaryKey   string `json:"primaryKey,omitempty"`
	SecondaryKey string `json:"secondaryKey,omitempty"`
	// Quota is what the account takes in a second.
	Quota BlobQuota `json:"quota,omitzero"`
}

// BlobQuota is what a blob account takes in a second: requests, and bytes that are written. Zero:
// no limit.
type BlobQuota struct {
	Requests int   `json:"requests,omitempty"`
	Bytes    int64 `json:"bytes,omitempty"`
}

// BlobQuotaRequest has the parts of a quota that are to be set.
type BlobQuotaRequest struct {
	Requests *int   `json:"requests,omitempty"`
	Bytes    *int64 `json:"bytes,omitempty"`
}

// BlobAccountRequest changes the blob account. Nil says nothing.
type BlobAccountRequest struct {
	RootKeys *bool             `json:"rootKeys,omitempty"`
	Quota    *BlobQuotaRequest `json:"quota,omitempty"`
}

// BlobAccount shows the blob account.
func (c *Client) BlobAccount(ctx context.Context) (BlobAccount, error) {
	return one[BlobAccount](ctx, c, request{method: http.MethodGet, path: []string{"blob-account"}})
}

// BlobAccountWithoutKeys shows the same without its keys, so that the yard's journal does not say that
// somebody has seen them.
func (c *Client) BlobAccountWithoutKeys(ctx context.Context) (BlobAccount, error) {
	account, err := one[BlobAccount](ctx, c, request{method: http.MethodGet, path: []string{"blob-account"}, query: withoutKeys()})
	account.PrimaryKey, account.SecondaryKey = "", "" // an older yard gives them all the same
	return account, err
}

// UpdateBlobAccount changes the blob account.
func (c *Client) UpdateBlobAccount(ctx context.Context, r BlobAccountRequest) (BlobAccount, error) {
	return one[BlobAccount](ctx, c, request{method: http.MethodPatch, path: []string{"blob-account"}, body: r})
}

// RegenerateBlobKey replaces one of the account's keys: primary or secondary.
func (c *Client) RegenerateBlobKey(ctx context.Context, key string) (BlobAccount, error) {
	return one[BlobAccount](ctx, c, request{method: http.MethodPost, path: []string{"blob-account", "regenerate"}, body: KeyChoice{key}})
}
