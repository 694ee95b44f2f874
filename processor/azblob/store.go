package azblob

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/eventyard/eventyard/processor"
)

// Config is how the records are kept. The zero Config is the contract between the SDKs.
type Config struct {
	// PathCase is the letter case of namespace, hub and group in blob names.
	PathCase PathCase
	// Namespace is what blob names begin with; empty means that of the hub, which has no port. The
	// SDK for Go takes along the port that a connection string has, as a yard's may:
	// "localhost:5673".
	Namespace string
	// Legacy also reads the checkpoints that Azure Functions before version 5 left
	// at {namespace}/{hub}/{group}/{partition}, for partitions that have no newer one. They are
	// never written.
	Legacy bool
	// APIVersion is the version of the storage service's API, such as "2021-12-02", for
	// services that do not know the newest; empty means the client library's. It is for
	// FromConnectionString; a client of your own takes it as a policy, see APIVersion.
	APIVersion string
}

// PathCase is a letter case of blob names.
type PathCase int

const (
	// Lower is what the SDKs for .NET, JavaScript and Python write. Groups that differ in nothing
	// but case would share their blobs: the second one is refused.
	Lower PathCase = iota
	// AsGiven is what the SDKs for Go and Java write.
	AsGiven
)

// New keeps records in a container, which has to exist. The client's retry
// options hold for reads; how writes are repeated is the store's business.
func New(c *container.Client, cfg Config) processor.Store {
	return &store{blobs: blobs{c}, cfg: cfg, mine: map[string]processor.Lease{}, named: map[processor.Group]bool{}}
}

// FromConnectionString is New for the connection string of a storage account.
func FromConnectionString(connection, containerName string, cfg Config) (processor.Store, error) {
	options := &container.ClientOptions{}
	if cfg.APIVersion != "" {
		options.PerCallPolicies = []policy.Policy{APIVersion(cfg.APIVersion)}
	}
	c, err := container.NewClientFromConnectionString(connection, containerName, options)
	if err != nil {
		return nil, fmt.Errorf("storage connection string: %w", err)
	}
	return New(c, cfg), nil
}

type store struct {
	blobs blobs
	cfg   Config

	mu sync.Mutex
	// mine are the leases this store has written last, by name of the ownership blob:
	// their renewals need not look at the epoch blob. Guarded by mu.
	mine map[string]processor.Lease
	// named are the groups whose spelling is known to be the right one. Guarded by mu.
	named map[processor.Group]bool
}

// folder is where a group's records are, with a slash at its end.
func (s *store) folder(g processor.Group) string {
	f := s.olderFolder(g)
	if s.cfg.PathCase == Lower {
		f = strings.ToLower(f)
	}
	return f
}

// olderFolder is in the case given: the older programs knew no other.
func (s *store) olderFolder(g processor.Group) string {
	return s.namespace(g) + "/" + g.Hub + "/" + g.Group + "/"
}

func (s *store) namespace(g processor.Group) string { return cmp.Or(s.cfg.Namespace, g.Namespace) }

// APIVersion makes a client speak a version of the storage service's API. It belongs into
// ClientOptions.PerCallPolicies: those run before the request is signed.
func APIVersion(version string) policy.Policy { return apiVersion(version) }

type apiVersion string

func (v apiVersion) Do(r *policy.Request) (*http.Response, error) {
	// The client library sets the header in this very spelling; another would make two.
	r.Raw().Header["x-ms-version"] = []string{string(v)}
	return r.Next()
}
