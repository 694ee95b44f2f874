package runner

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/eventyard/eventyard/internal/functions/breaker"
	"github.com/eventyard/eventyard/internal/hubs/auth"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
)

// keyPrefix is where the definitions are. The key is the name in lower case, so that the store
// itself refuses one that differs in case alone.
const keyPrefix = "functions/"

func keyOf(name string) string { return keyPrefix + auth.Fold(name) }

// stored is a definition as the store keeps it.
type stored struct {
	Definition
	// Deleting is set from the moment a deletion is decided.
	Deleting bool `json:"deleting,omitempty"`
	// OwnRecords: hosts believe only what the yard itself wrote of its work, failures and circuit.
	// Functions from before such records were marked have it not set.
	OwnRecords bool `json:"ownRecords,omitempty"`
}

// entry is what is known of a key. It is never changed, only replaced.
type entry struct {
	stored
	key      string
	revision meta.Revision
	// raw is the value as it was read, with whatever a later version has put there.
	raw []byte
	// problem: it cannot be read; nothing but the name is known then.
	problem error
}

func (e *entry) item() mirror.Item[*entry] {
	return mirror.Item[*entry]{Key: e.key, Revision: e.revision, Value: e}
}

// decode reads what the store has. Errors name the key, never the value, which has secrets.
func decode(e meta.Entry) *entry {
	read := &entry{key: e.Key, revision: e.Revision, raw: e.Value}
	err := json.Unmarshal(e.Value, &read.stored)
	if err == nil && (keyOf(read.Name) != e.Key || !wellNamed(read.Name)) {
		err = fmt.Errorf("it names function %.120q", read.Name)
	}
	if err == nil && !read.Deleting {
		err = read.Definition.tidy().check()
	}
	if err != nil {
		read.problem = fmt.Errorf("read definition %s: %w: delete the function, or run the version that wrote it", e.Key, err)
		if keyOf(read.Name) != e.Key {
			read.Name = strings.TrimPrefix(e.Key, keyPrefix)
		}
	}
	read.Definition = read.Definition.tidy()
	return read
}

// encode writes a definition over what was read before: what this version does not know of stays.
func (e *entry) encode() []byte { return e.stored.encode(e.raw) }

func (s stored) encode(before []byte) []byte {
	value, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("encode function %s: %v", s.Name, err)) // the fields are plain values
	}
	return keepUnknown(before, value, knownFields)
}

// fields are the names of an object's members that are known, with those of members that are
// objects themselves.
type fields map[string]fields

var knownFields = func() fields {
	known := fieldsOf(reflect.TypeFor[stored]())
	known["breaker"] = fieldsOf(reflect.TypeFor[breaker.Policy]())
	return known
}()

func fieldsOf(t reflect.Type) fields {
	known := fields{}
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			for name, below := range fieldsOf(f.Type) {
				known[name] = below
			}
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		known[name] = nil
	}
	return known
}

// keepUnknown gives the new object with those members of the old one that are not known.
func keepUnknown(before, value []byte, known fields) []byte {
	var old, next map[string]json.RawMessage
	if json.Unmarshal(before, &old) != nil || json.Unmarshal(value, &next) != nil {
		return value
	}
	changed := false
	for name, raw := range old {
		below, isKnown := known[name]
		switch {
		case !isKnown:
			next[name], changed = raw, true
		case below != nil && next[name] != nil:
			merged := keepUnknown(raw, next[name], below)
			changed = changed || !bytes.Equal(merged, next[name])
			next[name] = merged
		}
	}
	if !changed {
		return value
	}
	merged, err := json.Marshal(next)
	if err != nil {
		return value
	}
	return merged
}

// sameDefinition tells whether two are the same but for when they were made.
func sameDefinition(a, b Definition) bool {
	a.Created = b.Created
	return bytes.Equal(stored{Definition: a}.encode(nil), stored{Definition: b}.encode(nil))
}

// sameWork tells whether a host that runs one runs the other as well.
func sameWork(a, b Definition) bool {
	a.Notify, a.Target = b.Notify, b.Target
	return sameDefinition(a, b)
}
