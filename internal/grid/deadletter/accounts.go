package deadletter

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/eventyard/eventyard/internal/grid/topics"
	"github.com/eventyard/eventyard/internal/hubs/blob"
)

// Blobs is what it asks of the yard's own blobs.
type Blobs interface {
	Put(ctx context.Context, at blob.Path, body io.Reader, content blob.Content, when blob.Conditions) (blob.Blob, error)
}

var _ Blobs = (*blob.Service)(nil)

// Account is a storage account that targets may name, so that they need no key of their own.
type Account struct {
	Name string
	// endpoint is its URL, key its key; signature stands in the key's stead.
	endpoint, key, signature string
}

// ParseAccount reads a connection string as storage clients do. Errors never repeat it.
func ParseAccount(connection string) (Account, error) {
	wrong := func(what string) (Account, error) {
		return Account{}, fmt.Errorf("%w: a storage account %s: give its connection string, as in AccountName=NAME;AccountKey=KEY", topics.ErrInvalid, what)
	}
	parts := map[string]string{"defaultendpointsprotocol": "https", "endpointsuffix": "core.windows.net"}
	for part := range strings.SplitSeq(connection, ";") {
		name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok && name != "" {
			return wrong("has a part without =")
		}
		parts[strings.ToLower(name)] = value
	}
	a := Account{parts["accountname"], parts["blobendpoint"], parts["accountkey"], strings.TrimPrefix(parts["sharedaccesssignature"], "?")}
	if a.endpoint == "" {
		a.endpoint = parts["defaultendpointsprotocol"] + "://" + a.Name + ".blob." + parts["endpointsuffix"]
	}
	if !topics.IsAccount(a.Name) {
		return wrong("has no AccountName")
	}
	if u, err := url.Parse(a.endpoint); err != nil || u.Host == "" {
		return wrong("has a BlobEndpoint that is no URL")
	}
	_, err := newContainer(a.target("container"), http.DefaultTransport)
	return a, err
}

// target is a container of the account by its URL.
func (a Account) target(container string) topics.Target {
	where := strings.TrimSuffix(a.endpoint, "/") + "/" + container
	if a.signature != "" {
		where += "?" + a.signature
	}
	return topics.Target{Kind: topics.TargetBlob, Where: where, Key: a.key}
}

// named finds a container by its account's name.
func (c Config) named(account, container string) (target, error) {
	if c.Blobs != nil && account == c.BlobAccount {
		return ownTarget{c.Blobs, blob.Path{Account: account, Container: container}}, nil
	}
	for _, a := range c.Accounts {
		if a.Name == account {
			return newContainer(a.target(container), c.Transport)
		}
	}
	return nil, fmt.Errorf("%w: the yard knows no storage account %q, and has no identity in Azure: name its own, %s, add the account's connection string to grid.deadAccounts, "+
		"or give the container's whole URL with a signature (blobContainerUrl), or the account's key (accountKey)", topics.ErrInvalid, account, c.BlobAccount)
}

// ownTarget writes to a container of the yard itself, whatever its keys are by then.
type ownTarget struct {
	blobs Blobs
	at    blob.Path
}

func (o ownTarget) write(ctx context.Context, name string, l load) (put, error) {
	body, at := l.array(), o.at
	at.Blob = name
	content := blob.Content{Properties: blob.Properties{ContentType: "application/json"}}
	if _, err := o.blobs.Put(ctx, at, bytes.NewReader(body), content, blob.Conditions{}); err != nil {
		advice := ""
		if errors.Is(err, blob.ErrContainerNotFound) {
			advice = ": create the container, or name another target"
		}
		return put{}, fmt.Errorf("write dead letters to %s: %w%s", o.at, err, advice)
	}
	return put{
		show: "blob " + at.String(), url: "/blob/" + at.String(),
		subject: "/blobServices/default/containers/" + at.Container + "/blobs/" + name, bytes: len(body),
	}, nil
}
