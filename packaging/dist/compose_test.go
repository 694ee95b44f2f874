package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/compose-spec/compose-go/v2/loader"
	"github.com/compose-spec/compose-go/v2/types"
)

// readCompose reads a compose file as Compose does, by its schema, with variables as somebody has set them, and with
// what only runs when it is named.
func readCompose(t *testing.T, name string) *types.Project {
	t.Helper()
	file := filepath.Join("..", "container", name)
	text, err := os.ReadFile(file)
	must(t, err)
	project, err := loader.LoadWithContext(t.Context(), types.ConfigDetails{
		WorkingDir:  filepath.Dir(file),
		ConfigFiles: []types.ConfigFile{{Filename: file, Content: text}},
		Environment: types.Mapping{"EVENTYARD_VERSION": "1.2.3", "EVENTYARD_HOST": "yard.example.com"},
	}, loader.WithProfiles([]string{"*"}))
	must(t, err)
	for _, one := range project.Services {
		checkService(t, project, one)
	}
	return project
}

// checkService holds what is true of each service of both files: it may do no more than it has to, may take as long
// to stop as under systemd, and names what there is, the image's ports and folders.
func checkService(t *testing.T, project *types.Project, one types.ServiceConfig) {
	t.Helper()
	if one.Image != "docker.io/eventyard/eventyard:1.2.3" || !one.ReadOnly || fmt.Sprint(one.CapDrop, one.SecurityOpt, one.Tmpfs) != "[ALL] [no-new-privileges:true] [/tmp]" {
		t.Errorf("%s runs so: %+v", one.Name, one)
	}
	grace := readUnit(t, "../linux/eventyard.service").one(t, "TimeoutStopSec")
	if one.StopGracePeriod == nil || time.Duration(*one.StopGracePeriod).String() != mustDuration(t, grace).String() {
		t.Errorf("%s has %v to stop, and %s under systemd", one.Name, one.StopGracePeriod, grace)
	}
	for _, port := range one.Ports {
		if _, ok := imageConfig.ExposedPorts[fmt.Sprintf("%d/%s", port.Target, port.Protocol)]; !ok || port.HostIP != "127.0.0.1" {
			t.Errorf("%s publishes %+v", one.Name, port)
		}
	}
	for _, volume := range one.Volumes {
		_, known := project.Volumes[volume.Source]
		_, ok := imageConfig.Volumes[volume.Target]
		if !known || volume.Type != types.VolumeTypeVolume || !ok && (volume.Target != "/bundles" || !volume.ReadOnly) {
			t.Errorf("%s mounts %+v", one.Name, volume)
		}
	}
	for name, value := range one.Environment {
		if !strings.HasPrefix(name, "EVENTYARD_") || value == nil {
			t.Errorf("%s: %s is no setting of a yard", one.Name, name)
		}
	}
	if len(one.Ports) > 0 && setting(one, "EVENTYARD_HOST") != "yard.example.com" {
		t.Errorf("%s is reached as %q", one.Name, setting(one, "EVENTYARD_HOST"))
	}
}

func mustDuration(t *testing.T, text string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(text)
	must(t, err)
	return d
}

// setting is one that a service is given, or "".
func setting(one types.ServiceConfig, name string) string {
	if value := one.Environment[name]; value != nil {
		return *value
	}
	return ""
}

// V7: the compose file is one that Compose takes, and asks whether the yard is well by its own program.
func TestCompose(t *testing.T) {
	compose := readCompose(t, "compose.yaml")
	if len(compose.Services) != 1 {
		t.Errorf("there are %d services", len(compose.Services))
	}
	yard := compose.Services["yard"]
	if yard.Restart != "unless-stopped" || len(yard.Ports) != len(imageConfig.ExposedPorts) || len(yard.Volumes) != 1 {
		t.Errorf("it runs so: %+v", yard)
	}
	if test := yard.HealthCheck.Test; fmt.Sprint(test) != "[CMD "+imageConfig.Entrypoint[0]+" status]" {
		t.Errorf("it is asked by %q", test)
	}
}

// V7: the compose file of three nodes has a bundle and a volume of its own for each of the peers that its first
// command makes bundles for, and each name stands for what there is.
func TestComposeOfACluster(t *testing.T) {
	compose := readCompose(t, "compose-cluster.yaml")
	init, peers, taken := compose.Services["init"], []string{}, map[string]bool{}
	if fmt.Sprint(init.Profiles) != "[init]" || init.Restart != "no" || len(compose.Services) != 4 {
		t.Errorf("bundles are made by %+v, of %d services", init, len(compose.Services))
	}
	for name, one := range compose.Services {
		if name == "init" {
			continue
		}
		peers = append(peers, name)
		mounted := map[string]string{}
		for _, volume := range one.Volumes {
			mounted[volume.Target] = volume.Source
		}
		if one.Restart != "unless-stopped" || setting(one, "EVENTYARD_CLUSTER_BUNDLE") != "/bundles/bundles/"+name+".bundle" ||
			mounted["/data"] != "data-"+strings.TrimPrefix(name, "node-") || mounted["/bundles"] != init.Volumes[0].Source {
			t.Errorf("%s has %v and %v", name, one.Environment, mounted)
		}
		led := false // Kafka clients, to this very node
		for _, port := range one.Ports {
			if taken[port.Published] {
				t.Errorf("%s publishes %s, which another node does too", name, port.Published)
			}
			taken[port.Published] = true
			led = led || port.Target == 9093 && setting(one, "EVENTYARD_KAFKAS_ADVERTISE") == "yard.example.com:"+port.Published
		}
		if !led {
			t.Errorf("%s leads Kafka clients to %q, and publishes %v", name, setting(one, "EVENTYARD_KAFKAS_ADVERTISE"), one.Ports)
		}
	}
	slices.Sort(peers)
	// The program itself takes the command, and makes the files that the nodes are given.
	folder := filepath.Join(t.TempDir(), "bundles")
	args := slices.Clone([]string(init.Command))
	args[len(args)-1] = folder
	command := exec.CommandContext(t.Context(), theRelease(t).program(platforms[0]), args...)
	command.Env = []string{"HOME=" + t.TempDir(), "NO_COLOR=1"}
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, name := range peers {
		if _, err := os.Stat(filepath.Join(folder, name+".bundle")); err != nil {
			t.Error(err)
		}
	}
}
