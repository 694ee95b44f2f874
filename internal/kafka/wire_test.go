package kafka

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/testkit"
)

// stream is a connection on which something comes, in pieces of that size.
type stream struct {
	net.Conn
	rest  io.Reader
	piece int
}

func (s *stream) Read(p []byte) (int, error) {
	if s.piece > 0 {
		p = p[:min(len(p), s.piece)]
	}
	return s.rest.Read(p)
}

func (*stream) SetReadDeadline(time.Time) error { return nil }

func (*stream) RemoteAddr() net.Addr { return nil }

// cutOf is a request of these bytes, on a connection that ends behind them.
func cutOf(p []byte, piece int) *cut {
	in := newInput(&stream{rest: bytes.NewReader(p), piece: piece}, func(int) {})
	in.pool = newBufferPool(largeReadBytes)
	return &cut{in: in, left: len(p)}
}

// K1: the head of a request is read in every form.
func TestHeader(t *testing.T) {
	name := strings.Repeat("n", 300)
	for _, key := range []int16{keyProduce, keyApiVersions, keySASLHandshake, 1, 60} {
		offer, _ := offerOf(key)
		for version := offer.Lowest; version <= offer.Highest; version++ {
			for _, id := range []*string{nil, kmsg.StringPtr(""), &name} {
				form := &kmsg.RequestFormatter{}
				want := ""
				if id != nil {
					want = *id
					form = kmsg.NewRequestFormatter(kmsg.FormatterClientID(*id))
				}
				r := request(key, version)
				b := cutOf(form.AppendRequest(nil, r, -7)[4:], 3)
				h, _, err := readHeader(b, "another")
				testkit.Must(t, err)
				testkit.Equal(t, h, header{key: key, version: version, correlation: -7, clientID: want, flexible: r.IsFlexible()})
				testkit.Equal(t, b.left, len(r.AppendTo(nil)), "the rest of %s %d is its body", kmsg.NameForKey(key), version)
			}
		}
	}
}

func TestHeadersThatMakeNoSense(t *testing.T) {
	head := func(key, version int16, rest ...byte) []byte {
		p := binary.BigEndian.AppendUint16(nil, uint16(key))
		p = binary.BigEndian.AppendUint16(p, uint16(version))
		return append(binary.BigEndian.AppendUint32(p, 1), rest...)
	}
	for name, test := range map[string]struct {
		bytes []byte
		want  error
	}{
		"nothing":                      {nil, errMalformed},
		"half a head":                  {head(3, 1)[:5], errMalformed},
		"a request that nobody knows":  {head(999, 0, 0xff, 0xff), errKey},
		"one that is not offered":      {head(27, 0, 0xff, 0xff), errKey},
		"a name that is not there":     {head(3, 1, 0, 5, 'a'), errMalformed},
		"a name that is far too long":  {head(3, 1, append([]byte{0x7f, 0xff}, make([]byte, 1<<15)...)...), errMalformed},
		"tagged fields that are not":   {head(3, 12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f), errMalformed},
		"a tagged field that is short": {head(3, 12, 0xff, 0xff, 1, 0, 9, 1), errMalformed},
		"no tagged fields at all":      {head(3, 12, 0xff, 0xff), errMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := readHeader(cutOf(test.bytes, 0), "")
			testkit.ErrorIs(t, err, test.want)
		})
	}
}

// The name of a client is the same string as before, where it is the same.
func TestNamesAreNotCopied(t *testing.T) {
	before := "a client"
	p := kmsg.NewRequestFormatter(kmsg.FormatterClientID(before)).AppendRequest(nil, request(3, 1), 1)[4:]
	in := newInput(&stream{rest: bytes.NewReader(p)}, func(int) {})
	testkit.Must(t, in.fill(len(p), 0))
	allocs := testing.AllocsPerRun(100, func() {
		in.begin = 0
		b := cut{in: in, left: len(p)}
		if h, _, err := readHeader(&b, before); err != nil || h.clientID != before {
			t.Errorf("%+v, %v", h, err)
		}
	})
	testkit.That(t, allocs <= 1, "a head costs %v allocations", allocs)
}

func TestUvarints(t *testing.T) {
	for _, v := range []uint32{0, 1, 127, 128, 300, 1 << 21, 1<<32 - 1} {
		testkit.Equal(t, cutOf(binary.AppendUvarint(nil, uint64(v)), 1).uvarint(), v)
	}
	for name, p := range map[string][]byte{
		"beyond 32 bits": binary.AppendUvarint(nil, 1<<32), "without an end": bytes.Repeat([]byte{0x80}, 9), "cut off": {0x80},
	} {
		b := cutOf(p, 0)
		testkit.Equal(t, b.uvarint(), 0, name)
		testkit.ErrorIs(t, b.err, errMalformed, name)
	}
}

// What follows a request is another's.
func TestReadingStopsAtTheEndOfTheRequest(t *testing.T) {
	b := cutOf([]byte("abcdef"), 0)
	b.left = 3
	testkit.Equal(t, string(b.next(2)), "ab")
	testkit.Slices(t, b.next(2), []byte{0, 0})
	testkit.ErrorIs(t, b.err, errMalformed)

	b = cutOf([]byte("abcdef"), 0)
	b.left = 3
	b.full(make([]byte, 4))
	testkit.ErrorIs(t, b.err, errMalformed)

	b = cutOf([]byte("abcdef"), 0)
	b.left = 9
	b.skip(9, time.Second)
	testkit.ErrorIs(t, b.err, io.ErrUnexpectedEOF)
}

// Whatever the pieces, and whichever buffer they go through, the bytes are those that came.
func TestInput(t *testing.T) {
	want := make([]byte, 3*largeReadBytes)
	for i := range want {
		want[i] = byte(i * 7)
	}
	for _, piece := range []int{0, 1000, smallReadBytes, 50_000} {
		b := cutOf(want, piece)
		var got []byte
		for _, n := range []int{1, 4, 3000, largeReadBytes + 5, 16, 2 * smallReadBytes, 4096} {
			if n <= smallReadBytes {
				got = append(got, b.next(n)...)
				continue
			}
			p := make([]byte, n)
			b.full(p)
			got = append(got, p...)
		}
		rest := make([]byte, b.left)
		b.full(rest)
		testkit.Must(t, b.err)
		testkit.That(t, bytes.Equal(append(got, rest...), want), "in pieces of %d: other bytes", piece)
		testkit.ErrorIs(t, b.in.fill(1, 0), io.EOF)
		testkit.That(t, b.in.large == nil, "the large buffer was not given back")
	}
}

// R2: strangers are lent nothing.
func TestStrangersReadWithTheSmallBuffer(t *testing.T) {
	b := cutOf(make([]byte, 50_000), 0)
	b.in.pool = nil
	b.full(make([]byte, 40_000))
	b.skip(b.left, time.Second)
	testkit.Must(t, b.err)
	testkit.Equal(t, len(b.in.buf), smallReadBytes)
}
