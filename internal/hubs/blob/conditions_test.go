package blob

import (
	"errors"
	"testing"
	"time"
)

func TestConditions(t *testing.T) {
	modified := time.Date(2026, 1, 2, 3, 4, 5, 600e6, time.UTC)
	second := modified.Truncate(time.Second)
	there := &Blob{ETag: "0x8A", Modified: modified}
	tests := []struct {
		name             string
		when             Conditions
		put, write, read error
		create           error // where there is nothing yet
	}{
		{"no condition is always met", Conditions{}, nil, nil, nil, nil},
		{"the present ETag", Conditions{IfMatch: `"0x8A"`}, nil, nil, nil, ErrConditionNotMet},
		{"without quotes", Conditions{IfMatch: `0x8A`}, nil, nil, nil, ErrConditionNotMet},
		{"among others", Conditions{IfMatch: `"0x1", W/"0x8A"`}, nil, nil, nil, ErrConditionNotMet},
		{"an old ETag", Conditions{IfMatch: `"0x8"`}, ErrConditionNotMet, ErrConditionNotMet, ErrConditionNotMet, ErrConditionNotMet},
		{"any ETag", Conditions{IfMatch: `*`}, nil, nil, nil, ErrConditionNotMet},
		{"not if it exists", Conditions{IfNoneMatch: `*`}, ErrBlobExists, ErrConditionNotMet, ErrNotModified, nil},
		{"not the present ETag", Conditions{IfNoneMatch: `"0x8A"`}, ErrConditionNotMet, ErrConditionNotMet, ErrNotModified, nil},
		{"not another ETag", Conditions{IfNoneMatch: `"0x1"`}, nil, nil, nil, nil},
		{"modified since the same second", Conditions{IfModifiedSince: second}, ErrConditionNotMet, ErrConditionNotMet, ErrNotModified, nil},
		{"modified since before", Conditions{IfModifiedSince: second.Add(-time.Second)}, nil, nil, nil, nil},
		{"unmodified since the same second", Conditions{IfUnmodifiedSince: second}, nil, nil, nil, nil},
		{"unmodified since before", Conditions{IfUnmodifiedSince: second.Add(-time.Second)}, ErrConditionNotMet, ErrConditionNotMet, ErrConditionNotMet, nil},
		{"all of them count", Conditions{IfMatch: `"0x8A"`, IfModifiedSince: second}, ErrConditionNotMet, ErrConditionNotMet, ErrNotModified, ErrConditionNotMet},
		{"who may only create does not overwrite", Conditions{CreateOnly: true}, ErrOverwrite, nil, nil, nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			for what, outcome := range map[string]struct{ got, want error }{
				"put":    {test.when.forPut(there), test.put},
				"write":  {test.when.forWrite(there.ETag, there.Modified), test.write},
				"read":   {test.when.forRead(there.ETag, there.Modified), test.read},
				"create": {test.when.forPut(nil), test.create},
			} {
				if !errors.Is(outcome.got, outcome.want) || outcome.want == nil && outcome.got != nil {
					t.Errorf("%s: %v, want %v", what, outcome.got, outcome.want)
				}
			}
		})
	}
}
