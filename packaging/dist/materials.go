package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"
	"time"
)

// licensesFile has the licenses of all that is in a program, which who passes it on has to pass on, too.
const licensesFile = "THIRD-PARTY-LICENSES.txt"

func (r *release) licenses(p platform) string {
	return filepath.Join(filepath.Dir(r.program(p)), licensesFile)
}

// materials reads from each program which modules are in it, and writes that as a list for tools
// (CycloneDX), and their licenses for people.
func (r *release) materials(ctx context.Context) error {
	for _, p := range r.platforms {
		info, err := buildinfo.ReadFile(r.program(p))
		if err != nil {
			return err
		}
		list, err := json.MarshalIndent(r.bill(p, info), "", "  ")
		if err != nil {
			return err
		}
		if err := write(filepath.Join(r.out, r.name(p, ".cdx.json")), append(list, '\n')); err != nil {
			return err
		}
		texts, err := r.licenseTexts(ctx, info.Deps)
		if err != nil {
			return err
		}
		if err := write(r.licenses(p), texts); err != nil {
			return err
		}
	}
	return nil
}

// bill is a CycloneDX bill of materials, https://cyclonedx.org/docs/1.6/json.
type bill struct {
	Format     string      `json:"bomFormat"`
	Spec       string      `json:"specVersion"`
	Version    int         `json:"version"`
	Metadata   metadata    `json:"metadata"`
	Components []component `json:"components"`
}

type metadata struct {
	Timestamp string    `json:"timestamp"`
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Ref        string     `json:"bom-ref"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	URL        string     `json:"purl"`
	Properties []property `json:"properties,omitempty"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

func (r *release) bill(p platform, info *debug.BuildInfo) bill {
	self := newComponent("application", info.Main.Path, "v"+r.version, "")
	self.Properties = []property{{"eventyard:platform", p.String()}, {"eventyard:commit", r.commit}}
	b := bill{Format: "CycloneDX", Spec: "1.6", Version: 1, Metadata: metadata{r.time.Format(time.RFC3339), self}}
	b.Components = append(b.Components, newComponent("library", "std", info.GoVersion, ""))
	for _, m := range info.Deps {
		b.Components = append(b.Components, newComponent("library", m.Path, m.Version, m.Sum))
	}
	return b
}

func newComponent(kind, path, version, sum string) component {
	url := "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
	c := component{Type: kind, Ref: url, Name: path, Version: version, URL: url}
	if sum != "" {
		c.Properties = []property{{"go:sum", sum}}
	}
	return c
}

// licenseName is how files are called that have to go along with a module.
var licenseName = regexp.MustCompile(`(?i)^(licen[sc]e|copying|notice|patents)([.-].*)?$`)

// licenseTexts gives the licenses of Go, of modules, and of what is in this tree and from others.
func (r *release) licenseTexts(ctx context.Context, modules []*debug.Module) ([]byte, error) {
	root, err := r.goCommand(ctx, "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	folders, err := r.moduleFolders(ctx, modules)
	if err != nil {
		return nil, err
	}
	var all bytes.Buffer
	if err := addLicenses(&all, "Go", strings.TrimSpace(string(root))); err != nil {
		return nil, err
	}
	if err := addLicenses(&all, "icons of the console", filepath.Join(r.source, "internal", "api", "console", "assets")); err != nil {
		return nil, err
	}
	for _, m := range modules {
		if err := addLicenses(&all, m.Path+" "+m.Version, folders[m.Path]); err != nil {
			return nil, err
		}
	}
	return all.Bytes(), nil
}

// writeLicenses writes the licenses of what is in a program, for who builds an image in another way.
func writeLicenses(ctx context.Context, source, program, to string) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	texts, err := (&release{source: source}).licenseTexts(ctx, info.Deps)
	if err != nil {
		return err
	}
	return write(to, texts)
}

// moduleFolders says where the sources of modules are. They were just built, so they are here.
func (r *release) moduleFolders(ctx context.Context, modules []*debug.Module) (map[string]string, error) {
	args := []string{"mod", "download", "-json"}
	for _, m := range modules {
		args = append(args, m.Path+"@"+m.Version)
	}
	out, err := r.goCommand(ctx, args...)
	if err != nil {
		return nil, err
	}
	folders := map[string]string{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var m struct{ Path, Dir string }
		if err := decoder.Decode(&m); errors.Is(err, io.EOF) {
			return folders, nil
		} else if err != nil {
			return nil, err
		}
		folders[m.Path] = m.Dir
	}
}

func (r *release) goCommand(ctx context.Context, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = r.source, environment()
	return output(cmd)
}

// addLicenses adds the licenses in a folder, of which there has to be one.
func addLicenses(to *bytes.Buffer, what, folder string) error {
	files, err := os.ReadDir(folder)
	if err != nil {
		return fmt.Errorf("license of %s: %w", what, err)
	}
	found := false
	for _, f := range files {
		if f.IsDir() || !licenseName.MatchString(f.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(folder, f.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(to, "%s\n%s (%s)\n\n%s\n\n", strings.Repeat("=", 80), what, f.Name(), bytes.TrimSpace(text))
		found = true
	}
	if !found {
		return fmt.Errorf("%s has no license in %s: look there for what it is called, and add that to licenseName", what, folder)
	}
	return nil
}
