package spec

import (
	"reflect"

	"github.com/eventyard/eventyard/admin"
	"github.com/eventyard/eventyard/internal/config/quantity"
	"github.com/eventyard/eventyard/internal/quota"
)

// BlobAccount is the account of the blob endpoint. It is none of the Definitions: every yard has
// one, which nobody makes or names.
var BlobAccount = Definition{
	Name: "blob account", Type: reflect.TypeFor[admin.BlobAccountRequest](),
	Fields: []Field{
		{Name: "rootKeys", Help: "whether the keys of the root policy open blobs, too", Not: File | Create | Update, Because: "it has a command and a setting of its own"},
		{Name: "quota.requests", Value: "number", Help: "requests a second that are taken; 0: no limit", Max: 1_000_000_000, Default: "0", Not: File | Create, Because: "nobody makes it"},
		{Name: "quota.bytes", Value: "size", Help: "bytes a second that may be written, like 1MiB; 0: no limit", Max: maxQuotaBytes, Default: "0", set: setBlobBytes, Not: File | Create, Because: "nobody makes it"},
	},
}

func setBlobBytes(definition any, text string) error {
	bytes, err := quantity.ParseSize(text)
	if err != nil {
		return err
	}
	account := definition.(*admin.BlobAccountRequest)
	if account.Quota == nil {
		account.Quota = new(admin.BlobQuotaRequest)
	}
	account.Quota.Bytes = &bytes
	return nil
}

// ApplyBlobQuota writes a request over a limit.
func ApplyBlobQuota(r *admin.BlobQuotaRequest, l *quota.Limit) {
	ApplyQuota(&admin.QuotaRequest{Events: r.Requests, Bytes: r.Bytes}, l)
}

// ShowBlobQuota is a limit as the API shows it.
func ShowBlobQuota(l quota.Limit) admin.BlobQuota {
	return admin.BlobQuota{Requests: int(l.Events), Bytes: l.Bytes}
}
