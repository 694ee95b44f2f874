package main

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// V7: the scripts of the packages, and what the Dockerfile runs, are right by shellcheck, for a shell that has no more
// than POSIX says.
func TestScripts(t *testing.T) {
	need(t, "shellcheck", "shellcheck")
	scripts, err := filepath.Glob("../linux/*.sh")
	must(t, err)
	if len(scripts) != 3 {
		t.Errorf("the packages have the scripts %q", scripts)
	}
	build, _ := stages(t)
	ofBuild := filepath.Join(t.TempDir(), "build.sh")
	must(t, write(ofBuild, []byte("#!/bin/sh\nVERSION=1.2.3\n"+strings.Join(runs(build), "\n")+"\n")))
	out, err := exec.Command("shellcheck", append([]string{"--norc", "--shell=sh"}, append(scripts, ofBuild)...)...).CombinedOutput()
	if err != nil || len(out) > 0 {
		t.Errorf("shellcheck: %v\n%s", err, out)
	}
}
