package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/eventyard/eventyard/internal/quota"
	"github.com/eventyard/eventyard/internal/storage/eventlog"
	"github.com/eventyard/eventyard/internal/storage/meta"
	"github.com/eventyard/eventyard/internal/storage/meta/mirror"
)

// Retention says when events may be removed; its size is per partition. Zero fields keep for ever.
type Retention = eventlog.Retention

// FrameRules is what a hub wants of frames, beyond what every hub does. They are kept here for the listener
// that takes frames, which sees to it that they can be and that they hold. The zero value wants nothing.
type FrameRules struct {
	// MaxBytes is the most that a frame may measure; zero: as much as the listener takes.
	MaxBytes int `json:"maxBytes,omitempty"`
	// AppendTime: events of frames have the time at which they are stored, whatever their producer says.
	AppendTime bool `json:"appendTime,omitempty"`
}

// HubConfig describes a hub to be made.
type HubConfig struct {
	// Name is 1 to 256 letters, digits, '-', '_', '.' and '/', beginning with a letter, a digit or
	// '_' and ending with a letter or digit. Case does not tell hubs apart, but is kept for show.
	Name string
	// Partitions is 1 to MaxPartitions; zero means DefaultPartitions.
	Partitions int
	// Age and Bytes are those of the retention; nil means DefaultRetentionAge, and any size.
	Age   *time.Duration
	Bytes *int64
	// QuotaEvents and QuotaBytes bound what is published; nil means no limit.
	QuotaEvents, QuotaBytes *int64
	// MaxFrameBytes and AppendTime are as in FrameRules; nil means zero, and no.
	MaxFrameBytes *int
	AppendTime    *bool
}

// settings gives what is said of a hub's settings: EnsureHub changes these of one that exists, and
// nothing else.
func (c HubConfig) settings() HubChange {
	return HubChange{Age: c.Age, Bytes: c.Bytes, QuotaEvents: c.QuotaEvents, QuotaBytes: c.QuotaBytes, MaxFrameBytes: c.MaxFrameBytes, AppendTime: c.AppendTime}
}

// HubChange says what to change of a hub; nil fields stay.
type HubChange struct {
	// Age and Bytes are those of the retention, each changed by itself.
	Age   *time.Duration
	Bytes *int64
	// QuotaEvents and QuotaBytes are those of the quota, likewise.
	QuotaEvents, QuotaBytes *int64
	// MaxFrameBytes and AppendTime are the rules of frames, each changed by itself.
	MaxFrameBytes *int
	AppendTime    *bool
	// Partitions other than the present number are refused with ErrPartitionsFixed:
	// keys would move and order would be lost.
	Partitions *int
}

// over gives the retention as it is after the change.
func (c HubChange) over(r Retention) Retention {
	if c.Age != nil {
		r.Age = *c.Age
	}
	if c.Bytes != nil {
		r.Bytes = *c.Bytes
	}
	return r
}

// overQuota gives the quota as it is after the change.
func (c HubChange) overQuota(l quota.Limit) quota.Limit {
	if c.QuotaEvents != nil {
		l.Events = *c.QuotaEvents
	}
	if c.QuotaBytes != nil {
		l.Bytes = *c.QuotaBytes
	}
	return l
}

// overFrames gives the rules of frames as they are after the change.
func (c HubChange) overFrames(r FrameRules) FrameRules {
	if c.MaxFrameBytes != nil {
		r.MaxBytes = *c.MaxFrameBytes
	}
	if c.AppendTime != nil {
		r.AppendTime = *c.AppendTime
	}
	return r
}

// Hub is what there is to know of a hub.
type Hub struct {
	// Name is the spelling it was created with.
	Name string
	// ID is another for each hub, also for one that is made later under the same name.
	ID         [16]byte
	Partitions int
	Created    time.Time
	Retention  Retention
	Quota      quota.Limit
	Frames     FrameRules
}

// PartitionIDs are "0" to "n-1".
func (h Hub) PartitionIDs() []string {
	ids := make([]string, h.Partitions)
	for i := range ids {
		ids[i] = strconv.Itoa(i)
	}
	return ids
}

// Hub gives the hub of that name, in any case; a *NotFoundError if this node knows of none. It does
// no I/O.
func (b *Broker) Hub(name string) (Hub, error) {
	h, err := b.hubs.known(name)
	if err != nil {
		return Hub{}, err
	}
	return h.Hub, nil
}

// Hubs gives all hubs, by name.
func (b *Broker) Hubs() []Hub {
	all := b.hubs.all()
	hubs := make([]Hub, 0, len(all))
	for _, h := range all {
		hubs = append(hubs, h.Hub)
	}
	slices.SortFunc(hubs, func(x, y Hub) int { return cmp.Compare(fold(x.Name), fold(y.Name)) })
	return hubs
}

// CreateHub makes a hub; it is durable and ready for events when the call returns. If
// the name is taken it is ErrHubExists; if a hub of that name is still being deleted,
// its deletion is finished first. After eventlog.ErrUnavailable the hub may be there all the same,
// and becomes ready by itself once storage can be reached.
func (b *Broker) CreateHub(ctx context.Context, cfg HubConfig) (Hub, error) {
	def, err := define(cfg)
	if err != nil {
		return Hub{}, fmt.Errorf("create hub: %w", err)
	}
	if err := checkNewName(def.Name); err != nil {
		if _, missing := b.Hub(def.Name); missing != nil { // one from before keeps its name
			return Hub{}, fmt.Errorf("create hub: hub %w", err)
		}
	}
	err = mirror.Uncontested(ctx, func() error {
		// The store decides who is first. Only when the name is taken, look at by whom.
		_, conflict := b.definitions.Put(ctx, mirror.Item[definition]{Key: hubKey(fold(def.Name)), Value: def})
		if !errors.Is(conflict, meta.ErrConflict) {
			return conflict
		}
		there, err := b.read(ctx, def.Name)
		switch {
		case errors.Is(err, meta.ErrNotFound): // it is gone by now
			return conflict
		case err != nil:
			return err
		case !there.Value.deleting():
			return fmt.Errorf("%w: choose another name, or delete the hub first", ErrHubExists)
		}
		if err := b.finishDeletion(ctx, there); err != nil {
			return fmt.Errorf("finish deletion of the hub that had this name: %w", err)
		}
		return conflict
	})
	if err == nil {
		err = b.provide(ctx, def.Log)
	}
	if err != nil {
		return Hub{}, fmt.Errorf("create hub %q: %w", cfg.Name, err)
	}
	b.log.Info("hub created", "hub", def.Name, "partitions", def.Partitions, "log", def.Log)
	return def.hub(), nil
}

// define checks what was asked for and fills in the rest.
func define(cfg HubConfig) (definition, error) {
	if err := checkHubName(cfg.Name); err != nil {
		return definition{}, err
	}
	partitions := cmp.Or(cfg.Partitions, DefaultPartitions)
	if partitions < 1 || partitions > MaxPartitions {
		return definition{}, fmt.Errorf("hub %q: %w: %d, use 1 to %d", cfg.Name, ErrInvalidPartitionCount, partitions, MaxPartitions)
	}
	retention, limit := cfg.settings().over(Retention{Age: DefaultRetentionAge}), cfg.settings().overQuota(quota.Limit{})
	if err := checkRetention(retention); err != nil {
		return definition{}, fmt.Errorf("hub %q: %w", cfg.Name, err)
	}
	if err := checkQuota(limit); err != nil {
		return definition{}, fmt.Errorf("hub %q: %w", cfg.Name, err)
	}
	return definition{
		Name:       cfg.Name,
		Log:        logName(cfg.Name),
		Partitions: partitions,
		Created:    now(),
		Retention:  storeRetention(retention),
		Quota:      limit,
		Frames:     cfg.settings().overFrames(FrameRules{}),
	}, nil
}

func checkQuota(l quota.Limit) error {
	if l.Events < 0 || l.Bytes < 0 {
		return fmt.Errorf("%w: %d events, %d bytes: use zero for no limit", ErrInvalidQuota, l.Events, l.Bytes)
	}
	return nil
}

func checkRetention(r Retention) error {
	if r.Age < 0 || r.Bytes < 0 {
		return fmt.Errorf("%w: age %v, %d bytes: use zero to keep for ever", ErrInvalidRetention, r.Age, r.Bytes)
	}
	return nil
}

// now has the precision that clients are shown.
func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// read reads from the store, since only its revision is good for a change.
func (b *Broker) read(ctx context.Context, name string) (mirror.Item[definition], error) {
	return b.definitions.Read(ctx, hubKey(fold(name)))
}

// UpdateHub changes a hub's settings. Changes of different settings at the same time all last.
func (b *Broker) UpdateHub(ctx context.Context, name string, change HubChange) (Hub, error) {
	if err := checkRetention(change.over(Retention{})); err != nil {
		return Hub{}, fmt.Errorf("update hub %q: %w", name, err)
	}
	if err := checkQuota(change.overQuota(quota.Limit{})); err != nil {
		return Hub{}, fmt.Errorf("update hub %q: %w", name, err)
	}
	if !wellFormed(name) {
		return Hub{}, hubNotFound(name)
	}
	unchanged := false
	there, err := b.definitions.Change(ctx, hubKey(fold(name)), func(d *definition) error {
		present := d.hub()
		retention, limit, frames := change.over(present.Retention), change.overQuota(present.Quota), change.overFrames(present.Frames)
		unchanged = retention == present.Retention && limit == present.Quota && frames == present.Frames
		switch {
		case d.deleting():
			return meta.ErrNotFound
		case change.Partitions != nil && *change.Partitions != present.Partitions:
			return fmt.Errorf("%w: it has %d, not %d: keep %[2]d, or create another hub", ErrPartitionsFixed, present.Partitions, *change.Partitions)
		case unchanged:
			return mirror.ErrUnchanged
		}
		d.Retention, d.Quota, d.Frames = storeRetention(retention), limit, frames
		return nil
	})
	if errors.Is(err, meta.ErrNotFound) {
		return Hub{}, hubNotFound(name)
	}
	if err == nil {
		err = b.provide(ctx, there.Value.Log)
	}
	if err != nil {
		return Hub{}, fmt.Errorf("update hub %q: %w", name, err)
	}
	h := there.Value.hub()
	if !unchanged {
		b.log.Info("settings of hub changed", "hub", h.Name, "age", h.Retention.Age, "bytes", h.Retention.Bytes,
			"quotaEvents", h.Quota.Events, "quotaBytes", h.Quota.Bytes, "maxFrameBytes", h.Frames.MaxBytes, "appendTime", h.Frames.AppendTime)
	}
	return h, nil
}

// EnsureHub sees to it that a hub from a configuration file exists, with its groups.
// What is missing is made, each part of the retention and the quota that is given and differs is
// changed, a differing number of partitions is ErrPartitionsFixed. Nothing is deleted.
func (b *Broker) EnsureHub(ctx context.Context, cfg HubConfig, groups []string) (Hub, error) {
	h, err := b.CreateHub(ctx, cfg)
	if errors.Is(err, ErrHubExists) {
		// Only what the configuration gives explicitly is changed.
		change := cfg.settings()
		if cfg.Partitions != 0 {
			change.Partitions = &cfg.Partitions
		}
		h, err = b.UpdateHub(ctx, cfg.Name, change)
	}
	if err != nil {
		return Hub{}, err
	}
	for _, group := range groups {
		if _, err := b.CreateGroup(ctx, cfg.Name, group); err != nil && !errors.Is(err, ErrGroupExists) {
			return Hub{}, err
		}
	}
	return h, nil
}
