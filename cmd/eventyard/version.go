package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// version and commit are set by the linker: -ldflags "-X main.version=1.2.3 -X main.commit=…". Without
// them the version control system's own word is taken, which Go does not find in every kind of clone.
var version, commit string

// build says what this program was made of.
type build struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Time     string `json:"time,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

func thisBuild() build {
	b := build{Version: version, Commit: commit, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		info = &debug.BuildInfo{}
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			b.Commit = cmp.Or(b.Commit, s.Value)
		case "vcs.modified":
			b.Modified = s.Value == "true"
		case "vcs.time":
			b.Time = s.Value
		}
	}
	b.Version = cmp.Or(b.Version, info.Main.Version)
	if b.Version == "" || b.Version == "(devel)" {
		b.Version = "development"
	}
	return b
}

func (c *cli) versionCommand() *cobra.Command {
	var form output
	cmd := &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		RunE: func(*cobra.Command, []string) error {
			b := thisBuild()
			if form == asJSON {
				return writeJSON(c.stdout, b)
			}
			commit := b.Commit
			if commit == "" {
				commit = "unknown"
			} else if b.Modified {
				commit += " with changes"
			}
			_, err := fmt.Fprintf(c.stdout, "eventyard %s\ncommit    %s\ngo        %s %s\n", b.Version, commit, b.Go, b.Platform)
			return err
		},
	}
	form.addTo(cmd)
	return cmd
}
