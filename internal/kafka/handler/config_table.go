package handler

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/eventyard/eventyard/internal/hubs/broker"
	"github.com/eventyard/eventyard/internal/kafka/record"
)

// settings are what of a hub is a setting of a topic.
type settings struct {
	retention broker.Retention
	frames    broker.FrameRules
}

func settingsOf(hub broker.Hub) settings { return settings{hub.Retention, hub.Frames} }

// config is a setting of topics, as Kafka's clients know it. All here is pure.
type config struct {
	name string
	kind kmsg.ConfigType
	// fixed is the value of a setting that is the same for all hubs; others have show.
	fixed string
	show  func(settings) string
	// set changes settings by a value; nil: it cannot be changed, except to what it is.
	set func(s *settings, value string) error
	// hint: it is about how Kafka lays out its files, and any value is accepted without effect. Streams
	// creates topics with some of these.
	hint bool
	help string
}

// The settings that change something.
const (
	configPolicy         = "cleanup.policy"
	configRetentionAge   = "retention.ms"
	configRetentionBytes = "retention.bytes"
	configMaxBytes       = "max.message.bytes"
	configTimestamps     = "message.timestamp.type"
)

// The values of message.timestamp.type.
const (
	timestampsCreate = "CreateTime"
	timestampsAppend = "LogAppendTime"
)

// The values of cleanup.policy. What is to be compacted is kept for ever: nobody may rely on when an old
// value goes.
const (
	policyDelete  = "delete"
	policyCompact = "compact"
)

var configs = []config{
	{name: configPolicy, kind: kmsg.ConfigTypeList, show: showPolicy, set: setPolicy,
		help: "delete: events go by retention. compact: all of them are kept, and none is compacted."},
	{name: configRetentionAge, kind: kmsg.ConfigTypeLong, show: func(s settings) string { return orForever(s.retention.Age.Milliseconds()) },
		set: setAge, help: "How long events are kept, in milliseconds; -1 for ever."},
	{name: configRetentionBytes, kind: kmsg.ConfigTypeLong, show: func(s settings) string { return orForever(s.retention.Bytes) },
		set: setBytes, help: "How many bytes each partition keeps; -1 any number."},
	{name: configMaxBytes, kind: kmsg.ConfigTypeInt, show: func(s settings) string { return strconv.Itoa(maxBytesOf(s.frames)) },
		set: setMaxBytes, help: "The largest batch, as it is packed."},
	{name: configTimestamps, kind: kmsg.ConfigTypeString, show: showTimestamps, set: setTimestamps,
		help: "CreateTime: records keep the timestamps of their producers. LogAppendTime: they have the time at which they are stored."},
	{name: "compression.type", kind: kmsg.ConfigTypeString, fixed: "producer", help: "Batches are kept as their producers packed them."},
	{name: "min.insync.replicas", kind: kmsg.ConfigTypeInt, fixed: "1", help: "What is acknowledged is as durable as the storage of the yard."},
	{name: "unclean.leader.election.enable", kind: kmsg.ConfigTypeBoolean, fixed: "false", help: "What was acknowledged is never given up."},

	{name: "delete.retention.ms", kind: kmsg.ConfigTypeLong, fixed: "86400000", hint: true},
	{name: "file.delete.delay.ms", kind: kmsg.ConfigTypeLong, fixed: "60000", hint: true},
	{name: "flush.messages", kind: kmsg.ConfigTypeLong, fixed: strconv.Itoa(math.MaxInt64)},
	{name: "flush.ms", kind: kmsg.ConfigTypeLong, fixed: strconv.Itoa(math.MaxInt64)},
	{name: "index.interval.bytes", kind: kmsg.ConfigTypeInt, fixed: "4096", hint: true},
	{name: "max.compaction.lag.ms", kind: kmsg.ConfigTypeLong, fixed: strconv.Itoa(math.MaxInt64), hint: true},
	{name: "message.timestamp.after.max.ms", kind: kmsg.ConfigTypeLong, fixed: strconv.Itoa(math.MaxInt64)},
	{name: "message.timestamp.before.max.ms", kind: kmsg.ConfigTypeLong, fixed: strconv.Itoa(math.MaxInt64)},
	{name: "min.cleanable.dirty.ratio", kind: kmsg.ConfigTypeDouble, fixed: "0.5", hint: true},
	{name: "min.compaction.lag.ms", kind: kmsg.ConfigTypeLong, fixed: "0", hint: true},
	{name: "preallocate", kind: kmsg.ConfigTypeBoolean, fixed: "false", hint: true},
	{name: "segment.bytes", kind: kmsg.ConfigTypeInt, fixed: "1073741824", hint: true},
	{name: "segment.index.bytes", kind: kmsg.ConfigTypeInt, fixed: "10485760", hint: true},
	{name: "segment.jitter.ms", kind: kmsg.ConfigTypeLong, fixed: "0", hint: true},
	{name: "segment.ms", kind: kmsg.ConfigTypeLong, fixed: "604800000", hint: true},
}

// value is what a setting is in a hub with those settings.
func (c *config) value(s settings) string {
	if c.show != nil {
		return c.show(s)
	}
	return c.fixed
}

// defaultSettings are those of a hub made without any.
func defaultSettings() settings { return settings{retention: defaultRetention()} }

// defaultRetention is that of a hub made without one.
func defaultRetention() broker.Retention { return broker.Retention{Age: broker.DefaultRetentionAge} }

// maxBytesOf is the most that a batch may measure in a hub. One that says nothing takes all that can be stored,
// more than by Kafka's default of 1,048,588, which would refuse batches that always were accepted.
func maxBytesOf(r broker.FrameRules) int { return cmp.Or(r.MaxBytes, record.MaxBatchBytes) }

// configChange is what becomes of a setting; a nil value makes it the default.
type configChange struct {
	name  string
	value *string
}

// applyConfigs gives the settings after some changes. The policy comes first: what is said of the
// retention besides goes on top of it, and counts for nothing where everything is kept.
func applyConfigs(s settings, changes []configChange) (settings, error) {
	changes = slices.Clone(changes)
	slices.SortStableFunc(changes, func(x, y configChange) int { return turn(y.name == configPolicy) - turn(x.name == configPolicy) })
	kept := slices.ContainsFunc(changes, func(c configChange) bool {
		return c.name == configPolicy && c.value != nil && strings.TrimSpace(*c.value) == policyCompact
	})
	for _, change := range changes {
		at := slices.IndexFunc(configs, func(c config) bool { return c.name == change.name })
		if at < 0 {
			return s, fmt.Errorf("%w: there is no setting %.64q of topics here", errConfig, change.name)
		}
		c := &configs[at]
		value := c.value(defaultSettings())
		if change.value != nil {
			value = strings.TrimSpace(*change.value)
		}
		switch {
		case c.set == nil && !c.hint && value != c.fixed:
			return s, fmt.Errorf("%w: %s is %s for all topics, and cannot be %.64q", errConfig, c.name, c.fixed, value)
		case c.set != nil:
			if err := c.set(&s, value); err != nil {
				return s, err
			}
		}
	}
	if kept {
		s.retention = broker.Retention{}
	}
	return s, nil
}

// showPolicy: where everything is kept nothing tells the two apart, and those who ask whether a topic is
// compacted want to hear that nothing of it is lost.
func showPolicy(s settings) string {
	if s.retention == (broker.Retention{}) {
		return policyCompact
	}
	return policyDelete
}

func setPolicy(s *settings, value string) error {
	deletes := false
	for policy := range strings.SplitSeq(value, ",") {
		switch strings.TrimSpace(policy) {
		case policyDelete:
			deletes = true
		case policyCompact:
		default:
			return fmt.Errorf("%w: %s is %.64q, use %s or %s", errConfig, configPolicy, value, policyDelete, policyCompact)
		}
	}
	if !deletes {
		s.retention = broker.Retention{}
	} else if s.retention == (broker.Retention{}) {
		s.retention = defaultRetention()
	}
	return nil
}

func setAge(s *settings, value string) error {
	ms, err := readLimit(configRetentionAge, value, math.MaxInt64/int64(time.Millisecond))
	s.retention.Age = time.Duration(ms) * time.Millisecond
	return err
}

func setBytes(s *settings, value string) (err error) {
	s.retention.Bytes, err = readLimit(configRetentionBytes, value, math.MaxInt64)
	return err
}

// setMaxBytes: the greatest value is that of a hub that says nothing, and is stored as such.
func setMaxBytes(s *settings, value string) error {
	n, err := strconv.Atoi(value)
	if err != nil || n < 1 || n > record.MaxBatchBytes {
		return fmt.Errorf("%w: %s is %.64q, use 1 to %d", errConfig, configMaxBytes, value, record.MaxBatchBytes)
	}
	if n == record.MaxBatchBytes {
		n = 0
	}
	s.frames.MaxBytes = n
	return nil
}

func showTimestamps(s settings) string {
	if s.frames.AppendTime {
		return timestampsAppend
	}
	return timestampsCreate
}

func setTimestamps(s *settings, value string) error {
	if value != timestampsCreate && value != timestampsAppend {
		return fmt.Errorf("%w: %s is %.64q, use %s or %s", errConfig, configTimestamps, value, timestampsCreate, timestampsAppend)
	}
	s.frames.AppendTime = value == timestampsAppend
	return nil
}

// readLimit reads a limit of retention, in which -1 is none; ours is 0 then. More than greatest, which is
// centuries, is none as well.
func readLimit(name, value string, greatest int64) (int64, error) {
	n, err := strconv.ParseInt(value, 10, 64)
	switch {
	case err != nil || n < -1 || n == 0:
		return 0, fmt.Errorf("%w: %s is %.64q, use a number above 0, or -1 for no limit", errConfig, name, value)
	case n == -1 || n > greatest:
		return 0, nil
	}
	return n, nil
}

func orForever(n int64) string {
	if n == 0 {
		return "-1"
	}
	return strconv.FormatInt(n, 10)
}
