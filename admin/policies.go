package admin

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
)

// Policy is a shared-access policy with its keys, as the yard shows it.
type Policy struct {
	// Hub is empty for a policy of the namespace.
	Hub          string   `json:"hub,omitempty"`
	Name         string   `json:"name"`
	Rights       []string `json:"rights"`
	Created      Time     `json:"created"`
	PrimaryKey   string   `json:"primaryKey,omitempty"`
	SecondaryKey string   `json:"secondaryKey,omitempty"`
	// ConnectionStrings is nil where the yard has no AMQP listener.
	ConnectionStrings *ConnectionStrings `json:"connectionStrings,omitempty"`
	Quota             Quota              `json:"quota,omitzero"`
}

// ConnectionStrings are ready to be used, one with each key.
type ConnectionStrings struct {
	Primary   string `json:"primary"`
	Secondary string `json:"secondary"`
}

// PolicyRequest creates a policy. Keys left empty are made by the yard.
type PolicyRequest struct {
	Name         string   `json:"name"`
	Rights       []string `json:"rights"`
	PrimaryKey   string   `json:"primaryKey,omitempty"`
	SecondaryKey string   `json:"secondaryKey,omitempty"`
	// Quota bounds what all who show its keys publish together.
	Quota *QuotaRequest `json:"quota,omitempty"`
	// Hub is the hub that it is for, empty: the namespace. It is for the configuration of a yard:
	// calls name it in their path.
	Hub string `json:"-" key:"hub"`
}

// PolicyChange has what can be changed of a policy.
type PolicyChange struct {
	Quota *QuotaRequest `json:"quota,omitempty"`
}

// KeyChoice names one of two keys: primary or secondary of a policy, key1 or key2 of a topic.
type KeyChoice struct {
	Key string `json:"key"`
}

// policyPath names policies of a hub, or of the namespace for "".
func policyPath(hub string, rest ...string) []string {
	path := []string{"policies"}
	if hub != "" {
		path = []string{"hubs", hub, "policies"}
	}
	return append(path, rest...)
}

// Policies lists those of a hub, or of the namespace for "", by name.
func (c *Client) Policies(ctx context.Context, hub string) ([]Policy, error) {
	return list[Policy](ctx, c, "policies", request{method: http.MethodGet, path: policyPath(hub)})
}

// PoliciesWithoutKeys lists the same without keys and connection strings, so that the yard's journal
// does not say that somebody has seen them.
func (c *Client) PoliciesWithoutKeys(ctx context.Context, hub string) ([]Policy, error) {
	all, err := list[Policy](ctx, c, "policies", request{method: http.MethodGet, path: policyPath(hub), query: withoutKeys()})
	for i := range all { // an older yard gives them all the same
		all[i].PrimaryKey, all[i].SecondaryKey, all[i].ConnectionStrings = "", "", nil
	}
	return all, err
}

func withoutKeys() url.Values { return url.Values{"keys": {"false"}} }

// Policy shows one.
func (c *Client) Policy(ctx context.Context, hub, name string) (Policy, error) {
	return one[Policy](ctx, c, request{method: http.MethodGet, path: policyPath(hub, name)})
}

// CreatePolicy makes one.
func (c *Client) CreatePolicy(ctx context.Context, hub string, r PolicyRequest) (Policy, error) {
	return one[Policy](ctx, c, request{method: http.MethodPost, path: policyPath(hub), body: r})
}

// UpdatePolicy changes one.
func (c *Client) UpdatePolicy(ctx context.Context, hub, name string, change PolicyChange) (Policy, error) {
	return one[Policy](ctx, c, request{method: http.MethodPatch, path: policyPath(hub, name), body: change})
}

// RegeneratePolicy replaces one of its keys: primary or secondary.
func (c *Client) RegeneratePolicy(ctx context.Context, hub, name, key string) (Policy, error) {
	return one[Policy](ctx, c, request{method: http.MethodPost, path: policyPath(hub, name, "regenerate"), body: KeyChoice{key}})
}

// DeletePolicy removes one.
func (c *Client) DeletePolicy(ctx context.Context, hub, name string) error {
	return c.call(ctx, http.MethodDelete, policyPath(hub, name), nil, nil)
}

// ConnectionStringQuery says which connection string is wanted.
type ConnectionStringQuery struct {
	// Hub is what it is for; empty means the namespace.
	Hub string
	// Policy is looked for in the hub, then in the namespace; empty means the root's.
	Policy string
	// Key is primary or secondary; empty means primary.
	Key string
	// TLS asks for a listener with or without; nil means what is usual for the yard.
	TLS *bool
	// Blob asks for that of the blob account, which has no hub and no policy. With Container it
	// holds a signature for that container alone, with Permissions (empty: rcwdl) for a time of
	// Expires, a duration (empty: 90d).
	Blob                            bool
	Container, Permissions, Expires string
}

func (q ConnectionStringQuery) values() url.Values {
	v := url.Values{}
	for name, value := range map[string]string{
		"hub": q.Hub, "policy": q.Policy, "key": q.Key, "container": q.Container, "permissions": q.Permissions, "expires": q.Expires,
	} {
		if value != "" {
			v.Set(name, value)
		}
	}
	if q.Blob {
		v.Set("blob", "true")
	}
	if q.TLS != nil {
		v.Set("tls", strconv.FormatBool(*q.TLS))
	}
	return v
}

// ConnectionString asks the yard for one.
func (c *Client) ConnectionString(ctx context.Context, q ConnectionStringQuery) (string, error) {
	answer, err := one[ConnectionString](ctx, c, request{method: http.MethodGet, path: []string{"connection-string"}, query: q.values()})
	return answer.ConnectionString, err
}

// ConnectionString is what clients are configured with.
type ConnectionString struct {
	ConnectionString string `json:"connectionString"`
}
