package config

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/eventyard/eventyard/internal/api/spec"
	"github.com/eventyard/eventyard/internal/config/location"
	"github.com/eventyard/eventyard/internal/config/quantity"
	"github.com/eventyard/eventyard/internal/hubs/auth"
)

// complaint is something wrong with one setting, whoever gave it.
type complaint struct{ key, reason string }

type complaints []complaint

func (c *complaints) add(key, format string, args ...any) {
	*c = append(*c, complaint{key, fmt.Sprintf(format, args...)})
}

func (c *complaints) addError(key string, err error) {
	if err != nil {
		c.add(key, "%s", err)
	}
}

func (c Config) validate(reserved []string) complaints {
	var found complaints
	c.validateStorage(&found)
	c.validateListeners(&found)
	c.validateTrust(&found)
	c.validateNames(&found)
	oneOf(&found, "blob.rootKeys", c.Blob.RootKeys, "auto", "on", "off")
	oneOf(&found, "log.level", c.Log.Level, "debug", "info", "warn", "error")
	oneOf(&found, "log.format", c.Log.Format, "text", "json")
	c.validateHubs(&found, reserved)
	c.validatePolicies(&found)
	c.validateGrid(&found)
	c.validateFunctions(&found)
	c.validateTraces(&found)
	return found
}

// Bounds of a segment file: smaller ones are all overhead, larger ones make retention coarse.
const (
	minSegmentBytes = 64 << 10
	maxSegmentBytes = 1 << 30
)

// Bounds of streams on NATS servers: a smaller one would be full at a moment's traffic, with what has to be
// kept free in it.
const (
	maxHubStreams  = 16
	minStreamBytes = 1 << 30
)

func (c Config) validateStorage(found *complaints) {
	if c.Data == "" {
		found.add("data", "name a folder")
	}
	switch {
	case c.Engine == "disk":
	case c.OnServers():
		if c.Secrets == (Secrets{}) {
			found.add("secrets", "every node of a yard on NATS servers is given the same secret key: by keyFile (--secrets-key-file), keyCommand (--secrets-key-command) or key")
		}
	default:
		found.add("engine", "%q is no engine: use disk or nats://HOST:PORT", location.Shown(c.Engine))
	}
	if c.Cluster.Bundle != "" {
		c.validatePeer(found)
	} else if !c.OnServers() && (c.Node != "" || c.Yard != "" || c.Replicas != 0 || c.HubStreams != 0 || c.StreamBytes != 0 || c.NATSUnsafe) {
		found.add("engine", "node, yard, replicas, hubStreams, streamBytes and natsUnsafe are for an engine nats://HOST:PORT")
	}
	if c.Cluster.Bundle == "" && c.Cluster.Peers+c.Cluster.Listen+c.Cluster.ListenNodes != "" {
		key := "cluster.peers"
		switch {
		case c.Cluster.Peers != "":
		case c.Cluster.Listen != "":
			key = "cluster.listen"
		default:
			key = "cluster.listenNodes"
		}
		found.add(key, "a peer needs its bundle: make one for each with eventyard cluster init --peers HOST,HOST,HOST, copy it to its machine, and name it with --cluster-bundle FILE")
	}
	if c.Cluster.MaxStore < 0 {
		found.add("cluster.maxStore", "%s is less than nothing: use 0 for three quarters of the disk", c.Cluster.MaxStore)
	}
	if c.Cluster.MaxMemory < 0 {
		found.add("cluster.maxMemory", "%s is less than nothing", c.Cluster.MaxMemory)
	}
	if !slices.Contains([]int{0, 1, 3, 5}, c.Replicas) {
		found.add("replicas", "%d is not possible: use 1, 3 or 5", c.Replicas)
	}
	if c.HubStreams < 0 || c.HubStreams > maxHubStreams {
		found.add("hubStreams", "%d is not possible: use 1 to %d, or 0 for one for each 16 partitions", c.HubStreams, maxHubStreams)
	}
	if c.StreamBytes < 0 || c.StreamBytes > 0 && c.StreamBytes < minStreamBytes {
		found.add("streamBytes", "%s is not possible: use %s or more, or 0 for as much as the servers have room for", c.StreamBytes, quantity.Size(minStreamBytes))
	}
	if s := c.Secrets; s.Key != "" && s.KeyFile+s.KeyCommand != "" || s.KeyFile != "" && s.KeyCommand != "" {
		found.add("secrets", "the secret key comes from one place: give key, keyFile or keyCommand")
	}
	oneOf(found, "sync", c.Sync, "always", "interval", "os")
	between(found, "syncInterval", c.SyncInterval, time.Millisecond, time.Minute)
	if c.Quota.Events < 0 {
		found.add("quota.events", "%d is less than nothing: use 0 for no limit", c.Quota.Events)
	}
	if c.Quota.Bytes < 0 {
		found.add("quota.bytes", "%s is less than nothing: use 0 for no limit", c.Quota.Bytes)
	}
	if c.SegmentBytes < minSegmentBytes || c.SegmentBytes > maxSegmentBytes {
		found.add("segmentBytes", "%s is not between %s and %s", c.SegmentBytes, quantity.Size(minSegmentBytes), quantity.Size(maxSegmentBytes))
	}
}

// validatePeer finds what the bundle says, and nobody else may.
func (c Config) validatePeer(found *complaints) {
	switch {
	case c.Engine != "disk":
		found.add("engine", "a peer has its engine inside: leave it out, or leave out cluster.bundle")
	case c.Node != "" || c.Yard != "":
		found.add("cluster.bundle", "the bundle says which node and yard this is: leave out node and yard")
	case c.NATSUnsafe:
		found.add("natsUnsafe", "a peer always syncs what it acknowledges: leave it out")
	case c.Secrets != (Secrets{}):
		found.add("secrets", "the secret key is in the bundle: leave it out here")
	}
}

// OnServers tells whether the engine is on NATS servers.
func (c Config) OnServers() bool {
	return strings.HasPrefix(c.Engine, "nats://") || strings.HasPrefix(c.Engine, "tls://")
}

// EngineURL is the engine with what stands beside it. That of a peer is inside, and has no URL.
func (c Config) EngineURL() string {
	engine := c.Engine
	if c.Cluster.Bundle != "" {
		return engine
	}
	add := func(name, value string) {
		mark := "?"
		if strings.Contains(engine, "?") {
			mark = "&"
		}
		engine += mark + name + "=" + url.QueryEscape(value)
	}
	if c.Yard != "" {
		add("yard", c.Yard)
	}
	if c.Replicas != 0 {
		add("replicas", strconv.Itoa(c.Replicas))
	}
	if c.HubStreams != 0 {
		add("streams", strconv.Itoa(c.HubStreams))
	}
	if c.StreamBytes != 0 {
		add("streambytes", strconv.FormatInt(int64(c.StreamBytes), 10))
	}
	return engine
}

func (c Config) validateNames(found *complaints) {
	if strings.ContainsAny(c.Host, " /:;") {
		found.add("host", "%q is no host name: write it like yard.example.com, without a scheme or a port", c.Host)
	}
	if u, err := url.Parse(c.PublicURL); c.PublicURL != "" &&
		(err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "") {
		found.add("publicUrl", "%q is no URL: write it like https://yard.example.com", c.PublicURL)
	}
	if c.Namespace == "" {
		found.add("namespace", "it needs a name")
	} else if strings.ContainsFunc(c.Namespace, func(r rune) bool { return !unicode.IsPrint(r) || strings.ContainsRune(" /:;=", r) }) {
		found.add("namespace", "%q is no name of a namespace: use letters, digits, '-', '_' and '.'", c.Namespace)
	}
	between(found, "grace", c.Grace, 0, time.Hour)
}

func oneOf(found *complaints, key, value string, allowed ...string) {
	if !slices.Contains(allowed, value) {
		reason := fmt.Sprintf("%q is not one of %s", value, strings.Join(allowed, ", "))
		if near := DidYouMean(value, allowed); near != "" {
			reason += "; did you mean " + near + "?"
		}
		found.add(key, "%s", reason)
	}
}

const nameRule = "use 1 to 256 letters, digits, '-', '_', '.' and '/', beginning with a letter, a digit or '_' and ending with a letter or digit"

// IsName tells whether a hub or group may have that name, as far as its characters go. For
// hubs there is IsHubName.
func IsName(name string) bool {
	const ends = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	return len(name) <= 256 && strings.Trim(name, ends+"-_./") == "" && name != "" &&
		strings.ContainsRune(ends+"_", rune(name[0])) && strings.ContainsRune(ends, rune(name[len(name)-1]))
}

// IsHubName tells whether a hub may have that name, but for the first segments that the
// yard keeps for itself.
func IsHubName(name string) bool { return IsName(name) && auth.ReservedSegment(name) == "" }

func (c Config) validateHubs(found *complaints, reserved []string) {
	first := map[string]int{}
	for i, hub := range c.Hubs {
		key := fmt.Sprintf("hubs[%d]", i)
		found.addError(key+".name", checkHubName(hub.Name, reserved))
		name := strings.ToLower(hub.Name)
		if j, twice := first[name]; twice && name != "" {
			found.add(key+".name", "hub %q is already hubs[%d]; case makes no difference", hub.Name, j)
		} else {
			first[name] = i
		}
		checkDefinition(found, key, spec.Hub, &hub)
		for j, group := range hub.Groups {
			if !IsName(group) && !strings.EqualFold(group, "$Default") {
				found.add(fmt.Sprintf("%s.groups[%d]", key, j), "%q is no name: %s", group, nameRule)
			}
		}
	}
}

func checkHubName(name string, reserved []string) error {
	first, _, _ := strings.Cut(strings.ToLower(name), "/")
	switch {
	case name == "":
		return errors.New("the hub needs a name")
	case !IsName(name):
		return fmt.Errorf("%q is no name: %s", name, nameRule)
	case slices.Contains(reserved, first):
		return fmt.Errorf("%q is a path of the yard itself: choose another beginning than that of %q", first, name)
	}
	if segment := auth.ReservedSegment(name); segment != "" {
		return fmt.Errorf("%q cannot be told from a part of another hub: choose another word than %q", name, segment)
	}
	return nil
}

// Check says what is wrong with a configuration that was not loaded from anywhere; its
// error joins a *Problem for each thing.
func (c Config) Check() error {
	var problems []error
	for _, found := range c.validate(nil) {
		problems = append(problems, &Problem{Key: found.key, Reason: found.reason})
	}
	return errors.Join(problems...)
}
