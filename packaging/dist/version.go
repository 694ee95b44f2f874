package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// identify finds out the version, commit and time of the source.
func (r *release) identify(ctx context.Context) (err error) {
	if r.commit, err = r.git(ctx, "rev-parse", "HEAD"); err != nil {
		return err
	}
	seconds, err := r.git(ctx, "log", "-1", "--format=%ct")
	if err != nil {
		return err
	}
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return fmt.Errorf("time of the commit: %w", err)
	}
	r.time = time.Unix(unix, 0).UTC()
	if r.version != "" {
		return checkVersion(r.version)
	}
	described, err := r.git(ctx, "describe", "--tags", "--long", "--always", "--dirty", "--abbrev=12", "--match", "v[0-9]*")
	if err != nil {
		return err
	}
	commits, err := r.git(ctx, "rev-list", "--count", "HEAD")
	if err != nil {
		return err
	}
	r.version, err = versionOf(described, commits)
	return err
}

func (r *release) git(ctx context.Context, args ...string) (string, error) {
	out, err := output(exec.CommandContext(ctx, "git", append([]string{"-C", r.source}, args...)...))
	if err != nil {
		return "", fmt.Errorf("%w\n  %s has to be a git clone with its history: the version and the times in a release come from it", err, r.source)
	}
	return strings.TrimSpace(string(out)), nil
}

var (
	described = regexp.MustCompile(`^(?:v(\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?)-(\d+)-g)?([0-9a-f]{7,40})(-dirty)?$`)
	semantic  = regexp.MustCompile(`^\d+\.\d+\.\d+(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)
)

// versionOf makes a semantic version of what git describe says: that of a tagged commit is the tag's,
// that of a later one has the number of commits since behind a plus, so that packages of later commits
// are newer. Before the first tag all commits are counted.
func versionOf(text, commits string) (string, error) {
	m := described.FindStringSubmatch(text)
	if m == nil {
		return "", fmt.Errorf("git describe says %q, of which no version can be made: tag releases like v1.2.3, or give one with -version", text)
	}
	base, since, hash, dirty := m[1], m[2], m[3], m[4]
	if base == "" {
		base, since = "0.0.0", commits
	}
	if since == "0" && dirty == "" {
		return base, nil
	}
	return base + "+" + since + ".g" + hash + strings.Replace(dirty, "-", ".", 1), nil
}

func checkVersion(version string) error {
	if !semantic.MatchString(version) {
		return fmt.Errorf("%q is no version: write it like 1.2.3, 1.2.3-rc.1 or 1.2.3+5.gabcdef", version)
	}
	return nil
}

// output runs a command and gives what it prints. Its error has what the command says is wrong.
func output(cmd *exec.Cmd) ([]byte, error) {
	var wrong bytes.Buffer
	cmd.Stderr = &wrong
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, bytes.TrimSpace(wrong.Bytes()))
	}
	return out, nil
}

// environment is that of commands whose result goes into a release: nothing of who builds it, but what
// Go needs to find its caches.
func environment(more ...string) []string {
	env := []string{"NO_COLOR=1", "CGO_ENABLED=0", "GOFLAGS=-mod=readonly", "GOWORK=off", "GOAMD64=v1", "GOARM64=v8.0"}
	for _, name := range []string{"PATH", "HOME", "GOCACHE", "GOMODCACHE", "GOPATH", "GOPROXY", "GOSUMDB", "GONOSUMDB", "GOTOOLCHAIN", "TMPDIR", "HTTPS_PROXY", "SSL_CERT_FILE"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return append(env, more...)
}
