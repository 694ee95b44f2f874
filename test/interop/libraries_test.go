//go:build linux

package interop

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// python is an interpreter that has the official library for Python.
func python(t *testing.T) string {
	t.Helper()
	requirements := filepath.Join("testdata", "python", "requirements.txt")
	dir := component{"python", pythonVersion() + recipeFile(t, requirements), func(ctx context.Context, dir string) error {
		if err := makeVenv(ctx, dir); err != nil {
			return err
		}
		here, err := filepath.Abs(requirements)
		if err != nil {
			return err
		}
		return step(ctx, "", filepath.Join(dir, "bin", "python"), "-m", "pip", "install", "-q", "-r", here)
	}}.folder(t)
	return filepath.Join(dir, "bin", "python")
}

// pythonVersion tells interpreters apart: a virtual environment is good for one only.
func pythonVersion() string {
	out, _ := exec.Command("python3", "-c", "import sys; print(sys.version, sys.prefix)").Output()
	return string(out)
}

// makeVenv makes a virtual environment; on Debian that needs a package of its own.
func makeVenv(ctx context.Context, dir string) error {
	if err := need("python3", "python3"); err != nil {
		return err
	}
	err := step(ctx, "", "python3", "-m", "venv", dir)
	if err == nil || debian("python3-venv") != nil {
		return err
	}
	return step(ctx, "", "python3", "-m", "venv", "--clear", dir)
}

// protonPython is an interpreter that has Qpid Proton: Debian's, or else one that
// compiles it from its source package.
func protonPython(t *testing.T) string {
	t.Helper()
	const system = "/usr/bin/python3"
	hasProton := func() bool { return exec.Command(system, "-c", "import proton").Run() == nil }
	if hasProton() || debian("python3-qpid-proton") == nil && hasProton() {
		return system
	}
	const pinned = "python-qpid-proton==0.40.0"
	dir := component{"proton", pythonVersion() + pinned, func(ctx context.Context, dir string) error {
		if err := makeVenv(ctx, dir); err != nil {
			return err
		}
		return step(ctx, "", filepath.Join(dir, "bin", "python"), "-m", "pip", "install", "-q", pinned)
	}}.folder(t)
	return filepath.Join(dir, "bin", "python")
}

// node is a folder whose node_modules has the official library for JavaScript, and Azurite.
func node(t *testing.T) string {
	t.Helper()
	manifest := recipeFile(t, filepath.Join("testdata", "js", "package.json"))
	return component{"node", manifest, func(ctx context.Context, dir string) error {
		if err := need("node", "nodejs"); err != nil {
			return err
		}
		if err := need("npm", "npm"); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(manifest), 0o644); err != nil {
			return err
		}
		return step(ctx, dir, "npm", "install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error")
	}}.folder(t)
}

// java is a folder of jars with the official library for Java.
func java(t *testing.T) string {
	t.Helper()
	pom := recipeFile(t, filepath.Join("testdata", "java", "pom.xml"))
	return component{"java", pom, func(ctx context.Context, dir string) error {
		if err := need("javac", "default-jdk-headless"); err != nil {
			return err
		}
		if err := need("mvn", "maven"); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "pom.xml"), []byte(pom), 0o644); err != nil {
			return err
		}
		return step(ctx, dir, "mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory="+filepath.Join(dir, "lib"))
	}}.folder(t)
}

const goSDK = "github.com/Azure/azure-sdk-for-go/sdk/messaging/azeventhubs/v2@v2.0.2"

// goSDKTests is a copy of the Go library's module, unchanged, with its own tests
// compiled: the binary of each package is in the package's folder, as live.test.
func goSDKTests(t *testing.T) string {
	t.Helper()
	return component{"gosdk", goSDK + runtime.Version(), func(ctx context.Context, dir string) error {
		source, err := moduleFolder(ctx, goSDK)
		if err != nil {
			return err
		}
		if err := os.CopyFS(dir, os.DirFS(source)); err != nil {
			return err
		}
		for _, pkg := range goSDKPackages {
			if err := step(ctx, filepath.Join(dir, pkg), "go", "test", "-c", "-o", "live.test", "."); err != nil {
				return err
			}
		}
		return nil
	}}.folder(t)
}
