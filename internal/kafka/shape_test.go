package kafka

import (
	"encoding/binary"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/testkit"
)

// own are the requests that the server reads by itself.
var own = []int16{keyProduce, keySASLHandshake, keyApiVersions, keySASLAuthenticate}

// K1: what is offered is in order, exists, and has the form that kmsg gives it.
func TestOffered(t *testing.T) {
	last := int16(-1)
	for _, o := range Offered {
		name := kmsg.NameForKey(o.Key)
		testkit.That(t, o.Key > last, "%s is not in order", name)
		last = o.Key
		r := kmsg.RequestForKey(o.Key)
		testkit.That(t, o.Lowest <= o.From && o.From <= o.Highest && o.Highest <= r.MaxVersion(), "%s: %+v, kmsg has up to %d", name, o, r.MaxVersion())
		for version := o.From; version <= o.Highest; version++ {
			r.SetVersion(version)
			testkit.Equal(t, r.IsFlexible(), version >= o.Flexible, "%s %d is flexible", name, version)
			testkit.Equal(t, r.ResponseKind().IsFlexible(), version >= o.Flexible, "the response of %s %d is flexible", name, version)
		}
		_, shaped := shapes[o.Key]
		testkit.Equal(t, shaped, !slices.Contains(own, o.Key), "%s has a shape", name)
	}
}

// filler fills requests with anything.
type filler struct{ *rand.Rand }

func (f filler) fill(v reflect.Value, tags bool) {
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(f.IntN(2) == 0)
	case reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(int64(f.IntN(100)))
	case reflect.Uint8:
		v.SetUint(uint64(f.IntN(256)))
	case reflect.String:
		v.SetString("abcdefghij"[:f.IntN(10)])
	case reflect.Pointer:
		if f.IntN(3) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			f.fill(v.Elem(), tags)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), f.IntN(4), 4))
		fallthrough
	case reflect.Array:
		for i := range v.Len() {
			f.fill(v.Index(i), tags)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			switch name := v.Type().Field(i).Name; {
			case name == "UnknownTags":
				if tags && f.IntN(2) == 0 {
					v.Field(i).Addr().Interface().(*kmsg.Tags).Set(uint32(50+f.IntN(1000)), []byte("tag"))
				}
			case name != "ReplicaState": // a follower's
				f.fill(v.Field(i), tags)
			}
		}
	}
}

// K6: each shape is that of its request, in every version.
func TestShapes(t *testing.T) {
	f := filler{rand.New(rand.NewPCG(1, 2))}
	for _, key := range slices.Sorted(maps.Keys(shapes)) {
		for version := range kmsg.RequestForKey(key).MaxVersion() + 1 {
			for range 30 {
				r := kmsg.RequestForKey(key)
				f.fill(reflect.ValueOf(r).Elem(), true)
				r.SetVersion(version)
				w := walk{body: r.AppendTo(nil), version: version, flexible: r.IsFlexible()}
				if w.structure(shapes[key]); w.bad || len(w.body) > 0 {
					t.Fatalf("%s %d: refused: %v, %d bytes are left of %+v", kmsg.NameForKey(key), version, w.bad, len(w.body), r)
				}
			}
		}
	}
}

func decoded(key, version int16, body []byte) (kmsg.Request, int, error) {
	took := 0
	offer, ok := offerOf(key)
	if !ok {
		return nil, 0, errKey
	}
	r, err := decode(offer, version, body, func(bytes int) error { took = bytes; return nil })
	return r, took, err
}

// K1: a request is decoded as it was sent, and what is decoded does not lie in what is read with.
func TestDecode(t *testing.T) {
	f := filler{rand.New(rand.NewPCG(3, 4))}
	for _, o := range Offered {
		if slices.Contains(own, o.Key) {
			continue
		}
		for version := o.From; version <= o.Highest; version++ {
			r := kmsg.RequestForKey(o.Key)
			f.fill(reflect.ValueOf(r).Elem(), false)
			r.SetVersion(version)
			body := r.AppendTo(nil)
			got, took, err := decoded(o.Key, version, body)
			testkit.Must(t, err)
			testkit.Equal(t, got.GetVersion(), version)
			testkit.Slices(t, got.AppendTo(nil), body)
			testkit.That(t, took >= len(body), "%d bytes were taken for %d", took, len(body))
		}
	}
}

// K6: what a request claims to hold is held against what is there, before anything is made of it.
func TestCountsAreHeldAgainstTheBytes(t *testing.T) {
	huge := []byte{0xff, 0xff, 0xff, 0xff, 0x0f} // of four billion
	fetch := make([]byte, 4*3+1+4*2)             // up to the topics, from version 15 on
	zeros := make([]byte, 1<<20)
	for name, test := range map[string]struct {
		key, version int16
		body         []byte
	}{
		"many topics, old":           {3, 1, binary.BigEndian.AppendUint32(nil, 1<<31-1)},
		"many topics":                {3, 12, huge},
		"as many topics as bytes":    {3, 1, append(binary.BigEndian.AppendUint32(nil, 1<<20), zeros...)},
		"a long name, old":           {3, 1, append([]byte{0, 0, 0, 1}, 0x7f, 0xff, 'a')},
		"a long name":                {10, 3, append(huge, 'a')},
		"many tagged fields":         {60, 1, append([]byte{0, 0}, huge...)},
		"a large tagged field":       {60, 1, append([]byte{0, 0, 1, 9}, huge...)},
		"more tagged fields than we": {60, 1, append([]byte{0, 0, maxTags + 1}, zeros[:100]...)},
		"many partitions of a topic": {1, 18, append(append(append(fetch, 2), make([]byte, 16)...), huge...)},
		"a follower's state":         {1, 18, append(fetch, 1, 1, 1, 1, 1, 18, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x0f, 0)},
		"nothing":                    {1, 18, nil},
		"a number that has no end":   {3, 12, []byte{0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01}},
	} {
		t.Run(name, func(t *testing.T) {
			var err error
			var took int
			allocs := allocatedBy(func() { _, took, err = decoded(test.key, test.version, test.body) })
			testkit.ErrorIs(t, err, errMalformed)
			testkit.Equal(t, took, 0, "taken")
			testkit.That(t, allocs < 1<<16, "%d bytes were allocated", allocs)
		})
	}
}

// K6: what is taken for a request is about what it costs when it is decoded.
func TestMeasure(t *testing.T) {
	names := kmsg.NewPtrDeleteTopicsRequest()
	names.TopicNames = make([]string, 100_000)
	topics := kmsg.NewPtrMetadataRequest()
	topics.Topics = make([]kmsg.MetadataRequestTopic, 30_000)
	for i := range topics.Topics {
		topics.Topics[i].UnknownTags.Set(1, nil)
	}
	for name, test := range map[string]struct {
		r       kmsg.Request
		version int16
	}{"many names": {names, 4}, "many tagged fields": {topics, 12}} {
		t.Run(name, func(t *testing.T) {
			test.r.SetVersion(test.version)
			body := test.r.AppendTo(nil)
			var took int
			cost := allocatedBy(func() { _, took, _ = decoded(test.r.Key(), test.version, body) })
			if uint64(took)*3/2 < cost || uint64(took) > 4*cost {
				t.Errorf("%d bytes were taken for %d, which cost %d", took, len(body), cost)
			}
		})
	}
}
