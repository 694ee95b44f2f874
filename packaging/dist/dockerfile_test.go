package main

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/moby/buildkit/frontend/dockerfile/instructions"
	"github.com/moby/buildkit/frontend/dockerfile/linter"
	"github.com/moby/buildkit/frontend/dockerfile/parser"
)

// stages reads the Dockerfile as BuildKit does, which has nothing to remark on it.
func stages(t *testing.T) (build, last instructions.Stage) {
	t.Helper()
	text, err := os.ReadFile("../container/Dockerfile")
	must(t, err)
	parsed, err := parser.Parse(bytes.NewReader(text))
	must(t, err)
	for _, warning := range parsed.Warnings {
		t.Errorf("the Dockerfile: %+v", warning)
	}
	warn := func(rule, _, _, message string, at []parser.Range) {
		t.Errorf("the Dockerfile: %s: %s %v", rule, message, at)
	}
	all, arguments, err := instructions.Parse(parsed.AST, linter.New(&linter.Config{Warn: warn}))
	must(t, err)
	if len(all) != 2 || len(arguments) != 0 {
		t.Fatalf("the Dockerfile has %d stages, and %d arguments before them", len(all), len(arguments))
	}
	return all[0], all[1]
}

// V7: the Dockerfile makes the same image: how it runs stands in both, instruction by instruction, and so does what
// is in it.
func TestDockerfile(t *testing.T) {
	build, last := stages(t)
	want := []string{"USER " + imageConfig.User, "WORKDIR " + imageConfig.WorkingDir}
	for _, env := range imageConfig.Env {
		want = append(want, "ENV "+env)
	}
	for port := range imageConfig.ExposedPorts {
		want = append(want, "EXPOSE "+port)
	}
	for volume := range imageConfig.Volumes {
		want = append(want, "VOLUME "+volume)
	}
	var got []string
	for _, command := range last.Commands {
		switch c := command.(type) {
		case *instructions.CopyCommand:
		case *instructions.EntrypointCommand:
			if !slices.Equal([]string(c.CmdLine), imageConfig.Entrypoint) || c.PrependShell {
				t.Errorf("the Dockerfile says %s, and the image %q", c, imageConfig.Entrypoint)
			}
		case *instructions.CmdCommand:
			if !slices.Equal([]string(c.CmdLine), imageConfig.Cmd) || c.PrependShell {
				t.Errorf("the Dockerfile says %s, and the image %q", c, imageConfig.Cmd)
			}
		case *instructions.EnvCommand:
			for _, env := range c.Env {
				got = append(got, "ENV "+env.Key+"="+env.Value)
			}
		case *instructions.ExposeCommand:
			for _, port := range c.Ports {
				got = append(got, "EXPOSE "+port)
			}
		case *instructions.VolumeCommand:
			for _, volume := range c.Volumes {
				got = append(got, "VOLUME "+volume)
			}
		case *instructions.UserCommand:
			got = append(got, "USER "+c.User)
		case *instructions.WorkdirCommand:
			got = append(got, "WORKDIR "+c.Path)
		default:
			t.Errorf("the image has nothing like %v", c)
		}
	}
	slices.Sort(want)
	slices.Sort(got)
	if !reflect.DeepEqual(got, want) || last.BaseName != "scratch" {
		t.Errorf("the Dockerfile says\n%s\nfrom %s, and the image\n%s", strings.Join(got, "\n"), last.BaseName, strings.Join(want, "\n"))
	}
	sameFiles(t, build, last)
}

// sameFiles compares what the Dockerfile copies into the image with what the image has, and with what its build makes.
// Folders on the way to something are made by the way.
func sameFiles(t *testing.T, build, last instructions.Stage) {
	t.Helper()
	files := (&release{stage: "stage"}).imageFiles(platforms[0])
	made := strings.Join(runs(build), "\n")
	copied, there := map[string]bool{}, map[string]bool{} // whether it is the user's, by path
	for _, command := range last.Commands {
		c, ok := command.(*instructions.CopyCommand)
		if !ok {
			continue
		}
		copied[c.DestPath] = c.Chown == imageConfig.User
		for _, source := range c.SourcePaths {
			ofContext, isSource := strings.CutPrefix(source, "/src/")
			known := source == "/etc/ssl/certs/ca-certificates.crt" // which the image of Go has
			if isSource {
				_, err := os.Stat(filepath.Join(repository, ofContext))
				known = err == nil
			}
			if c.From != build.Name || !known && !regexp.MustCompile(regexp.QuoteMeta(source)+`(\s|$)`).MatchString(made) {
				t.Errorf("nothing makes what is copied by %s", c)
			}
		}
	}
	for _, e := range files {
		onTheWay := func(other entry) bool { return other.name != e.name && strings.HasPrefix(other.name, e.name) }
		if !e.isFolder() || !slices.ContainsFunc(files, onTheWay) {
			there["/"+strings.TrimSuffix(e.name, "/")] = e.owner == imageUser
		}
		if e.isFolder() && e.owner == imageUser && e.mode != 0o700 {
			t.Errorf("%s has mode %o, and that of the Dockerfile is 700", e.name, e.mode)
		}
		if e.name == "etc/passwd" && !strings.Contains(made, "echo '"+strings.TrimSpace(string(e.data))+"' >") {
			t.Errorf("the Dockerfile has another user than %s", e.data)
		}
	}
	if !reflect.DeepEqual(copied, there) {
		t.Errorf("the Dockerfile copies\n%v\nand the image has\n%v", copied, there)
	}
}

// runs are the scripts that a stage runs.
func runs(stage instructions.Stage) (scripts []string) {
	for _, command := range stage.Commands {
		if c, ok := command.(*instructions.RunCommand); ok {
			scripts = append(scripts, strings.Join(c.CmdLine, " "))
		}
	}
	return scripts
}

// V7: the release of Go that the Dockerfile builds with, and which fetches no other, is as new as the modules ask for.
func TestGoOfTheDockerfile(t *testing.T) {
	build, _ := stages(t)
	image, tag, _ := strings.Cut(build.BaseName, ":")
	major, minor, _ := strings.Cut(tag, ".")
	has, err := strconv.Atoi(minor)
	if image != "golang" || major != "1" || err != nil {
		t.Fatalf("it builds with %s", build.BaseName)
	}
	for _, file := range []string{"go.mod", "packaging/go.mod"} {
		text, err := os.ReadFile(filepath.Join(repository, file))
		must(t, err)
		asked := regexp.MustCompile(`(?m)^go 1\.(\d+)`).FindSubmatch(text)
		if asked == nil {
			t.Fatalf("%s asks for no release of Go", file)
		}
		if needs, _ := strconv.Atoi(string(asked[1])); needs > has {
			t.Errorf("%s asks for Go 1.%d, and the Dockerfile has %s", file, needs, build.BaseName)
		}
	}
}
