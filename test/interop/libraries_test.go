//go:build linux

package interop

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/eventyard/eventyard/internal/testkit"
	"github.com/eventyard/eventyard/test/parts"
)

// python is an interpreter that has the official library for Python.
func python(t *testing.T) string {
	t.Helper()
	return pythonWith(t, "python", filepath.Join("testdata", "python", "requirements.txt"))
}

// kafkaPython is an interpreter that has confluent-kafka and kafka-python.
func kafkaPython(t *testing.T) string {
	t.Helper()
	return pythonWith(t, "kafka-python", filepath.Join("testdata", "kafka", "requirements.txt"))
}

func pythonWith(t *testing.T, name, requirements string) string {
	t.Helper()
	dir := parts.Component{Name: name, Recipe: pythonVersion() + recipeFile(t, requirements), Install: func(ctx context.Context, dir string) error {
		if err := makeVenv(ctx, dir); err != nil {
			return err
		}
		here, err := filepath.Abs(requirements)
		if err != nil {
			return err
		}
		return parts.Step(ctx, "", filepath.Join(dir, "bin", "python"), "-m", "pip", "install", "-q", "-r", here)
	}}.Folder(t)
	return filepath.Join(dir, "bin", "python")
}

// pythonVersion tells interpreters apart: a virtual environment is good for one only.
func pythonVersion() string {
	out, _ := exec.Command("python3", "-c", "import sys; print(sys.version, sys.prefix)").Output()
	return string(out)
}

// makeVenv makes a virtual environment; on Debian that needs a package of its own.
func makeVenv(ctx context.Context, dir string) error {
	if err := parts.Need("python3", "python3"); err != nil {
		return err
	}
	err := parts.Step(ctx, "", "python3", "-m", "venv", dir)
	if err == nil || parts.Debian("python3-venv") != nil {
		return err
	}
	return parts.Step(ctx, "", "python3", "-m", "venv", "--clear", dir)
}

// protonPython is an interpreter that has Qpid Proton: Debian's, or else one that
// compiles it from its source package.
func protonPython(t *testing.T) string {
	t.Helper()
	const system = "/usr/bin/python3"
	hasProton := func() bool { return exec.Command(system, "-c", "import proton").Run() == nil }
	if hasProton() || parts.Debian("python3-qpid-proton") == nil && hasProton() {
		return system
	}
	const pinned = "python-qpid-proton==0.40.0"
	dir := parts.Component{Name: "proton", Recipe: pythonVersion() + pinned, Install: func(ctx context.Context, dir string) error {
		if err := makeVenv(ctx, dir); err != nil {
			return err
		}
		return parts.Step(ctx, "", filepath.Join(dir, "bin", "python"), "-m", "pip", "install", "-q", pinned)
	}}.Folder(t)
	return filepath.Join(dir, "bin", "python")
}

// node is a folder whose node_modules has the official library for JavaScript.
func node(t *testing.T) string {
	t.Helper()
	return nodeModules(t, "node", filepath.Join("testdata", "js", "package.json"))
}

// kafkaNode is a folder whose node_modules has KafkaJS.
func kafkaNode(t *testing.T) string {
	t.Helper()
	return nodeModules(t, "kafka-node", filepath.Join("testdata", "kafka", "package.json"))
}

func nodeModules(t *testing.T, name, file string) string {
	t.Helper()
	manifest := recipeFile(t, file)
	return parts.Component{Name: name, Recipe: manifest, Install: func(ctx context.Context, dir string) error {
		return parts.NodePackages(ctx, dir, manifest)
	}}.Folder(t)
}

// java is a folder of jars with the official library for Java.
func java(t *testing.T) string {
	t.Helper()
	return jars(t, "java", filepath.Join("testdata", "java", "pom.xml"))
}

// kafkaJava is a folder of jars with a version of Kafka's own client.
func kafkaJava(t *testing.T, version string) string {
	t.Helper()
	return jars(t, "kafka-java", filepath.Join("testdata", "kafka", "pom.xml"), "-Dkafka.version="+version)
}

// kafkaTools is a folder of jars with the tools of Kafka's distribution.
func kafkaTools(t *testing.T) string {
	t.Helper()
	return jars(t, "kafka-tools", filepath.Join("testdata", "kafka", "tools.xml"))
}

// kafkaConnect is a folder of jars with Kafka Connect and its connectors for files.
func kafkaConnect(t *testing.T) string {
	t.Helper()
	return filepath.Join(jars(t, "kafka-connect", filepath.Join("testdata", "kafka", "connect.xml")), "lib")
}

func jars(t *testing.T, name, file string, flags ...string) string {
	t.Helper()
	pom := recipeFile(t, file)
	return parts.Component{Name: name, Recipe: pom + strings.Join(flags, " "), Install: func(ctx context.Context, dir string) error {
		if err := parts.Need("javac", "default-jdk-headless"); err != nil {
			return err
		}
		if err := parts.Need("mvn", "maven"); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "pom.xml"), []byte(pom), 0o644); err != nil {
			return err
		}
		copied := []string{"mvn", "-q", "-B", "dependency:copy-dependencies", "-DoutputDirectory=" + filepath.Join(dir, "lib")}
		return parts.Step(ctx, dir, append(copied, flags...)...)
	}}.Folder(t)
}

const goSDK = "github.com/Azure/azure-sdk-for-go/sdk/messaging/azeventhubs/v2@v2.0.2"

// goSDKTests is a copy of the Go library's module, unchanged, with its own tests
// compiled: the binary of each package is in the package's folder, as live.test.
func goSDKTests(t *testing.T) string {
	t.Helper()
	return parts.Component{Name: "gosdk", Recipe: goSDK + runtime.Version(), Install: func(ctx context.Context, dir string) error {
		source, err := moduleFolder(ctx, goSDK)
		if err != nil {
			return err
		}
		if err := os.CopyFS(dir, os.DirFS(source)); err != nil {
			return err
		}
		for _, pkg := range goSDKPackages {
			if err := parts.Step(ctx, filepath.Join(dir, pkg), "go", "test", "-c", "-o", "live.test", "."); err != nil {
				return err
			}
		}
		return nil
	}}.Folder(t)
}

func recipeFile(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	testkit.Must(t, err)
	return string(content)
}
