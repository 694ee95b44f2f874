package config

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"

	"github.com/eventyard/eventyard/admin"
)

// The official emulator's Config.json. It is read as it is: keys in any case, what we do not know
// is a warning, and the emulator's limits on names and numbers of hubs and groups are not ours.
type emulatorFile struct {
	UserConfig emulatorUser `key:"UserConfig"`
}

type emulatorUser struct {
	NamespaceConfig []emulatorNamespace `key:"NamespaceConfig"`
	// LoggingConfig chooses between the emulator's files and console; ours go to
	// standard error whatever it says.
	LoggingConfig emulatorLogging `key:"LoggingConfig"`
}

type emulatorNamespace struct {
	Type     string           `key:"Type"`
	Name     string           `key:"Name"`
	Entities []emulatorEntity `key:"Entities"`
}

type emulatorEntity struct {
	Name           string          `key:"Name"`
	PartitionCount *int            `key:"PartitionCount"` // a number, or a string holding one
	ConsumerGroups []emulatorGroup `key:"ConsumerGroups"`
}

type emulatorGroup struct {
	Name string `key:"Name"`
}

type emulatorLogging struct {
	Type string `key:"Type"`
}

// isEmulator tells the emulator's file by its content, whatever its name.
func isEmulator(data []byte) bool {
	start := bytes.TrimSpace(blankExtras(data))
	return bytes.HasPrefix(start, []byte("{")) && bytes.Contains(bytes.ToLower(start), []byte(`"userconfig"`))
}

// readEmulator puts a Config.json into the configuration.
func (l *loader) readEmulator(data []byte) error {
	root, err := parseJSON(data)
	if err != nil {
		return err
	}
	var file emulatorFile
	f := &filler{foldCase: true, positions: map[string]position{}, unknown: func(at position, key, _ string) {
		l.warn(at, fmt.Sprintf("key %q is not known and has no effect", key))
	}}
	f.fill("", root, reflect.ValueOf(&file).Elem())
	for i, ns := range file.UserConfig.NamespaceConfig {
		path := fmt.Sprintf("UserConfig.NamespaceConfig[%d]", i)
		if ns.Type != "" && !strings.EqualFold(ns.Type, "EventHub") {
			l.warn(f.positions[path+".Type"], fmt.Sprintf("type %q is taken for EventHub", ns.Type))
		}
		if ns.Name != "" {
			l.config.Namespace = ns.Name
			l.position("namespace", f.positions[path+".Name"])
		}
		for i, entity := range ns.Entities {
			l.addEntity(f, fmt.Sprintf("%s.Entities[%d]", path, i), entity)
		}
	}
	l.complainAll(f.problems)
	return nil
}

func (l *loader) addEntity(f *filler, path string, entity emulatorEntity) {
	key := fmt.Sprintf("hubs[%d]", len(l.config.Hubs))
	l.position(key, f.positions[path])
	l.position(key+".name", f.positions[path+".Name"])
	if at, given := f.positions[path+".PartitionCount"]; given {
		l.position(key+".partitions", at)
	} else {
		l.warn(f.positions[path], fmt.Sprintf("hub %q has no PartitionCount and gets the default", entity.Name))
	}
	hub := admin.HubRequest{Name: entity.Name, Partitions: entity.PartitionCount}
	for i, group := range entity.ConsumerGroups {
		l.position(fmt.Sprintf("%s.groups[%d]", key, i), f.positions[fmt.Sprintf("%s.ConsumerGroups[%d].Name", path, i)])
		hub.Groups = append(hub.Groups, group.Name)
	}
	l.config.Hubs = append(l.config.Hubs, hub)
}
