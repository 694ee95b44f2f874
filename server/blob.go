package server

import (
	"cmp"
	"net/http"
	"path/filepath"
	"strings"

	"github.com/eventyard/eventyard/internal/api/azureblob"
	"github.com/eventyard/eventyard/internal/api/frame"
	"github.com/eventyard/eventyard/internal/hubs/blob"
	"github.com/eventyard/eventyard/internal/service"
	"github.com/eventyard/eventyard/internal/storage/vfs"
)

// blobDir has the larger bodies of blobs, in the data folder.
const blobDir = "blobs"

// openBlobs opens the blob store, whose entries are in the meta store.
func (y *yard) openBlobs(cfg Config) (err error) {
	y.blobs, err = blob.Open(blob.Config{Meta: y.storage.Meta, FS: vfs.OS(filepath.Join(cfg.DataDir, blobDir)), Log: cfg.Log})
	return err
}

// blobPart clears away what blobs leave.
func (y *yard) blobPart() service.Part { return service.Part{Name: "blobs", Run: y.blobs.Run} }

// blobAPI is what the HTTP listeners serve of blobs.
func (y *yard) blobAPI(cfg Config) frame.API {
	return azureblob.New(azureblob.Config{Blobs: y.blobs, Access: y.access, Log: cfg.Log, Metrics: y.registry}).API()
}

// blobEndpointFor gives the HTTP listener what it writes into connection strings for storage
// clients: the account's URL, by the same rules as endpointFor.
func (o openListeners) blobEndpointFor(host string) func(*http.Request, bool) string {
	return func(r *http.Request, tls bool) string {
		for _, d := range o {
			if d.TLS == tls && strings.HasPrefix(d.Name, "http") {
				at := d.connectTo(cmp.Or(host, d.reachedBy(r))).Endpoint
				return d.Name + strings.TrimPrefix(at, "sb") + strings.TrimPrefix(azureblob.Prefix, "/") + azureblob.Account
			}
		}
		return ""
	}
}
