package access

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/quota"
	"github.com/eventyard/eventyard/internal/storage/meta"
)

// Keys of the store. Those of a hub have the time at which it was created in them: a hub made anew
// under the same name has other keys and meets no policy of the old one. The name of a hub is one
// segment: its slashes are escaped, and no name holds a '%' of its own.
const (
	policiesPrefix  = "policies/"
	namespacePrefix = policiesPrefix + "namespace/"
	hubsPrefix      = policiesPrefix + "hubs/"
)

// level is the namespace, or one incarnation of a hub: what names of policies are unique in.
type level struct {
	hub     string // folded; empty for the namespace
	created time.Time
}

func (l level) prefix() string {
	if l.hub == "" {
		return namespacePrefix
	}
	return hubsPrefix + strings.ReplaceAll(l.hub, "/", "%2F") + "/" + strconv.FormatInt(l.incarnation(), 10) + "/"
}

// incarnation distinguishes a hub from others of that name; zero for the namespace.
func (l level) incarnation() int64 {
	if l.hub == "" {
		return 0
	}
	return l.created.UnixMilli()
}

func (l level) key(name string) string { return l.prefix() + auth.Fold(name) }

// record is a policy as this package handles it.
type record struct {
	Policy
	// level is where it belongs.
	level level
	// quota is the same as long as the policy is, whatever its limits; nil but in a snapshot.
	quota *quota.Meter
	// renewed is why both keys were last made anew at once, as RegenerateRoot was told it; empty if
	// they never were.
	renewed string
}

func (r record) key() string { return r.level.key(r.Name) }

// storedPolicy is a policy as the store keeps it.
type storedPolicy struct {
	Name string `json:"name"`
	Hub  string `json:"hub,omitempty"`
	// HubCreated is that of the hub, to distinguish its incarnations.
	HubCreated *time.Time `json:"hubCreated,omitempty"`
	Rights     []string   `json:"rights"`
	Primary    string     `json:"primary"`
	Secondary  string     `json:"secondary"`
	Created    time.Time  `json:"created"`
	// Quota is absent where there is none.
	Quota quota.Limit `json:"quota,omitzero"`
	// Renewed is record's.
	Renewed string `json:"renewed,omitempty"`
}

// encode cannot fail: the fields are plain values.
func (r record) encode() []byte {
	stored := storedPolicy{
		Name: r.Name, Hub: r.Hub, Rights: r.Rights.Names(),
		Primary: r.Primary, Secondary: r.Secondary, Created: r.Created, Quota: r.Quota, Renewed: r.renewed,
	}
	if r.Hub != "" {
		stored.HubCreated = &r.level.created
	}
	value, err := json.Marshal(stored)
	if err != nil {
		panic(fmt.Sprintf("encode policy: %v", err))
	}
	return value
}

// decode's errors name the key, never the value.
func decode(e meta.Entry) (record, error) {
	var stored storedPolicy
	if err := json.Unmarshal(e.Value, &stored); err != nil {
		return record{}, fmt.Errorf("read policy %s: %w", e.Key, err)
	}
	rights, err := auth.ParseRights(stored.Rights)
	if err != nil {
		return record{}, fmt.Errorf("read policy %s: %w", e.Key, err)
	}
	r := record{
		Policy: Policy{
			Hub: stored.Hub, Name: stored.Name, Rights: rights,
			Primary: stored.Primary, Secondary: stored.Secondary, Created: stored.Created, Quota: stored.Quota,
		},
		level: level{hub: auth.Fold(stored.Hub)}, renewed: stored.Renewed,
	}
	if stored.HubCreated != nil {
		r.level.created = *stored.HubCreated
	}
	if r.key() != e.Key || r.Primary == "" || r.Secondary == "" {
		return record{}, fmt.Errorf("read policy %s: it names policy %q of hub %q, or lacks a key", e.Key, r.Name, r.Hub)
	}
	return r, nil
}
