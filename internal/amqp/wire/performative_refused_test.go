package wire

import (
	"errors"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
)

func TestPerformativesThatAreNoneAreRefused(t *testing.T) {
	for _, c := range []struct {
		name string
		hex  string
		err  error
	}{
		{"open of nothing", "00 53 10 45", ErrMissing},
		{"open without container-id", "00 53 10 c0 05 02 40 a1 01 68", ErrMissing},
		{"open that is a map", "00 53 10 c1 01 00", ErrType},
		{"open that is null", "00 53 10 40", ErrType},
		{"open that is described again", "00 53 10 00 53 10 45", ErrType},
		{"open whose container-id is a symbol", "00 53 10 c0 04 01 a3 01 63", ErrType},
		{"open whose container-id is of no type", "00 53 10 c0 04 01 3f 01 63", ErrMalformed},
		{"open whose frame size is a ulong", "00 53 10 c0 06 03 a1 01 63 40 44", ErrType},
		{"open whose channel-max is a uint", "00 53 10 c0 07 04 a1 01 63 40 40 43", ErrType},
		{"open whose capabilities are strings", "00 53 10 c0 0f 08 a1 01 63 40 40 40 40 40 40 e0 04 01 a1 01 61", ErrType},
		{"open whose capabilities are described", "00 53 10 c0 12 08 a1 01 63 40 40 40 40 40 40 e0 07 01 00 53 01 a3 01 61", ErrType},
		{"open whose capability is a string", "00 53 10 c0 0d 08 a1 01 63 40 40 40 40 40 40 a1 01 61", ErrType},
		{"open whose capabilities are a list of nulls", "00 53 10 c0 0e 08 a1 01 63 40 40 40 40 40 40 c0 02 01 40", ErrType},
		{"open whose properties are a list", "00 53 10 c0 0d 0a a1 01 63 40 40 40 40 40 40 40 40 45", ErrType},
		{"open whose list ends inside a field", "00 53 10 c0 03 01 a1 01 63", ErrMalformed},
		{"open whose list goes on behind its fields", "00 53 10 c0 05 01 a1 01 63 40", ErrMalformed},
		{"open with more fields than bytes", "00 53 10 c0 04 04 a1 01 63", ErrMalformed},
		{"open that is larger than the frame", "00 53 10 c0 ff 01 a1 01 63", ErrTruncated},
		{"begin without next-outgoing-id", "00 53 11 c0 05 04 40 40 43 43", ErrMissing},
		{"begin without incoming-window", "00 53 11 c0 05 04 40 43 40 43", ErrMissing},
		{"begin without outgoing-window", "00 53 11 c0 04 03 40 43 43", ErrMissing},
		{"attach without name", "00 53 12 c0 04 03 40 43 41", ErrMissing},
		{"attach without handle", "00 53 12 c0 06 03 a1 01 6e 40 41", ErrMissing},
		{"attach without role", "00 53 12 c0 05 02 a1 01 6e 43", ErrMissing},
		{"attach with a sender's mode of 3", "00 53 12 c0 08 04 a1 01 6e 43 41 50 03", ErrMalformed},
		{"attach with a receiver's mode of 2", "00 53 12 c0 09 05 a1 01 6e 43 41 40 50 02", ErrMalformed},
		{"attach with a target for a source", "00 53 12 c0 0c 06 a1 01 6e 43 41 40 40 00 53 29 45", ErrMalformed},
		{"attach with a source for a target", "00 53 12 c0 0d 07 a1 01 6e 43 41 40 40 40 00 53 28 45", ErrMalformed},
		{"attach with a source of unknown name", "00 53 12 c0 0d 06 a1 01 6e 43 41 40 40 00 a3 01 78 45", ErrMalformed},
		{"attach with a target that is not described", "00 53 12 c0 0a 07 a1 01 6e 43 41 40 40 40 45", ErrType},
		{"attach with a filter that is a list", "00 53 12 c0 15 06 a1 01 6e 43 41 40 40 00 53 28 c0 09 08 40 40 40 40 40 40 40 45", ErrType},
		{"attach with an address that is a number", "00 53 12 c0 0e 06 a1 01 6e 43 41 40 40 00 53 28 c0 02 01 43", ErrType},
		{"attach with a coordinator that is no list", "00 53 12 c0 0d 07 a1 01 6e 43 41 40 40 40 00 53 30 40", ErrType},
		{"flow without incoming-window", "00 53 13 c0 05 04 43 40 43 43", ErrMissing},
		{"flow without next-outgoing-id", "00 53 13 c0 05 04 43 43 40 43", ErrMissing},
		{"flow without outgoing-window", "00 53 13 c0 04 03 43 43 43", ErrMissing},
		{"flow whose properties are no value", "00 53 13 c0 0c 0b 40 43 43 43 40 40 40 40 40 40 3f", ErrMalformed},
		{"transfer without handle", "00 53 14 c0 03 02 40 43", ErrMissing},
		{"transfer whose tag is a string", "00 53 14 c0 06 03 43 43 a1 01 61", ErrType},
		{"transfer whose state is no value", "00 53 14 c0 09 08 43 40 40 40 40 40 40 3f", ErrMalformed},
		{"disposition without role", "00 53 15 c0 03 02 40 43", ErrMissing},
		{"disposition without first", "00 53 15 c0 02 01 41", ErrMissing},
		{"disposition whose role is a number", "00 53 15 c0 03 02 43 43", ErrType},
		{"disposition with a state that is not described", "00 53 15 c0 06 05 41 43 40 41 45", ErrType},
		{"disposition with a state that is no list", "00 53 15 c0 09 05 41 43 40 41 00 53 24 40", ErrType},
		{"disposition with a state that is no value", "00 53 15 c0 09 05 41 43 40 41 00 53 99 3f", ErrMalformed},
		{"disposition whose error is no error", "00 53 15 c0 0f 05 41 43 40 41 00 53 25 c0 05 01 00 53 24 45", ErrMalformed},
		{"detach without handle", "00 53 16 45", ErrMissing},
		{"end whose error has no condition", "00 53 17 c0 05 01 00 53 1d 45", ErrMissing},
		{"close whose condition is a string", "00 53 18 c0 0a 01 00 53 1d c0 04 01 a1 01 61", ErrType},
		{"sasl-mechanisms without mechanisms", "00 53 40 c0 02 01 40", ErrMissing},
		{"sasl-init without mechanism", "00 53 41 45", ErrMissing},
		{"sasl-outcome without code", "00 53 44 45", ErrMissing},
	} {
		t.Run(c.name, func(t *testing.T) {
			v, k, _, err := readBody(unhex(t, c.hex))
			testkit.ErrorIs(t, err, c.err, "%s: read %+v", c.name, v)
			var where *DecodeError
			if !errors.As(err, &where) || !strings.HasPrefix(err.Error(), "read "+k.name+": ") {
				t.Errorf("%s: error %q does not tell what and where", c.name, err)
			}
		})
	}
}

func TestNoPrefixOfAPerformativeIsOne(t *testing.T) {
	for _, v := range exactVectors() {
		encoded := unhex(t, v.hex)
		for n := range encoded {
			if got, _, _, err := readBody(encoded[:n:n]); err == nil {
				t.Errorf("%s: the first %d bytes read as %+v", v.name, n, got)
			}
		}
	}
}

// Whatever byte is changed to whatever, it is an error or a performative.
func TestChangedBytesDoNoHarm(t *testing.T) {
	for _, v := range exactVectors() {
		encoded := unhex(t, v.hex)
		for i, was := range encoded {
			for b := range 256 {
				encoded[i] = byte(b)
				if got, c, _, err := readBody(encoded); err == nil {
					c.append(nil, got)
				}
			}
			encoded[i] = was
		}
	}
}
