package azblob

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"

	"github.com/eventyard/eventyard/internal/hubs/groupentry"
	"github.com/eventyard/eventyard/processor"
)

const (
	// inMeta is up to how many bytes a value is kept in metadata, which one listing reads with all
	// others; metadata as a whole takes 8 KiB. Larger values are the blob's body.
	inMeta = 4 << 10
	// valueKey is the metadata key. Its value begins with a dot, as an empty one would not be
	// listed.
	valueKey = "value"
)

func (s *store) Entries(ctx context.Context, g processor.Group, prefix string) ([]processor.Entry, error) {
	folder, err := s.reading(ctx, g)
	if err == nil {
		err = groupentry.CheckPrefix(prefix)
	}
	var records []record
	if err == nil {
		records, err = s.blobs.list(ctx, entryBlob(folder, prefix))
	}
	if err != nil {
		return nil, fmt.Errorf("read entries %s: %w", prefix, err)
	}
	var entries []processor.Entry
	for _, r := range records {
		entry, found, err := s.entry(ctx, folder, r)
		if err != nil {
			return nil, fmt.Errorf("read entry %s: %w", r.name, err)
		}
		if found {
			entries = append(entries, entry)
		}
	}
	return entries, nil
}

// entry gives the entry that a record is, reading its body if the value is there. It may have been
// removed since it was listed.
func (s *store) entry(ctx context.Context, folder string, r record) (processor.Entry, bool, error) {
	var body []byte
	if _, short := r.meta[valueKey]; !short {
		var err error
		if r, body, err = s.blobs.get(ctx, r.name, groupentry.MaxValueBytes); err != nil || r.version == "" {
			return processor.Entry{}, false, err
		}
	}
	key := strings.ReplaceAll(strings.TrimPrefix(r.name, entryBlob(folder, "")), "~", ".")
	f := processor.Entry{Key: key, Value: body, Version: r.version}
	if text, short := r.meta[valueKey]; short {
		var err error
		if f.Value, err = base64.StdEncoding.DecodeString(strings.TrimPrefix(text, ".")); err != nil {
			return processor.Entry{}, false, err
		}
	}
	return f, true, nil
}

func (s *store) Put(ctx context.Context, g processor.Group, f processor.Entry) (processor.Entry, error) {
	var folder string
	err := groupentry.Check(f.Key, f.Value)
	if err == nil {
		folder, err = s.writing(ctx, g)
	}
	var r record
	switch name := entryBlob(folder, f.Key); {
	case err != nil:
	case len(f.Value) > inMeta:
		r, err = s.blobs.upload(ctx, name, nil, f.Value, f.Version)
	default:
		// A body that an earlier value left stays, and is not looked at.
		meta := map[string]string{valueKey: "." + base64.StdEncoding.EncodeToString(f.Value)}
		r, err = s.blobs.write(ctx, name, meta, f.Version)
	}
	if err != nil {
		return processor.Entry{}, fmt.Errorf("put entry %s: %w", f.Key, err)
	}
	f.Version = r.version
	return f, nil
}

func (s *store) Remove(ctx context.Context, g processor.Group, f processor.Entry) error {
	folder, err := s.writing(ctx, g)
	if err == nil && f.Version == "" {
		err = errors.New("without its version")
	}
	if err == nil {
		err = s.blobs.remove(ctx, entryBlob(folder, f.Key), f.Version)
	}
	if err != nil {
		return fmt.Errorf("remove entry %s: %w", f.Key, err)
	}
	return nil
}

// entryBlob names the blob of an entry, or the beginning of several. The service takes dots at the
// end of a segment away, so there they are written as a tilde, which no key has.
func entryBlob(folder, key string) string {
	segments := strings.Split(key, "/")
	for i, s := range segments {
		if strings.HasSuffix(s, ".") {
			segments[i] = s[:len(s)-1] + "~"
		}
	}
	return folder + "eventyard/fact/" + strings.Join(segments, "/")
}
