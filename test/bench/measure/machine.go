package measure

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
)

// Machine tells, in two lines for a report, on what a run is done; folder is where it writes.
func Machine(folder string) []string {
	return []string{
		fmt.Sprintf("Machine: %d cores (%s), %s, %s, %s", runtime.NumCPU(), processorModel(), memoryTotal(), kernel(), fileSystem(folder)),
		fmt.Sprintf("Go: %s %s/%s", strings.TrimPrefix(runtime.Version(), "go"), runtime.GOOS, runtime.GOARCH),
	}
}

// What follows reads what Linux tells of itself; elsewhere the report says "unknown".

func processorModel() string { return fieldOf("/proc/cpuinfo", "model name") }

func memoryTotal() string {
	var kib int64
	if _, err := fmt.Sscan(fieldOf("/proc/meminfo", "MemTotal"), &kib); err != nil {
		return "memory unknown"
	}
	return fmt.Sprintf("%.0f GiB memory", float64(kib)/(1<<20))
}

func kernel() string {
	release, err := os.ReadFile("/proc/sys/kernel/osrelease")
	if err != nil {
		return "kernel unknown"
	}
	return "Linux " + strings.TrimSpace(string(release))
}

// fileSystem finds what is mounted where the folder lies.
func fileSystem(folder string) string {
	found, longest := "file system unknown", -1
	mounts, err := os.ReadFile("/proc/mounts")
	if err != nil {
		return found
	}
	path, err := filepath.Abs(folder)
	if err != nil {
		return found
	}
	for line := range strings.Lines(string(mounts)) {
		fields := strings.Fields(line)
		if len(fields) < 3 {
			continue
		}
		point := strings.TrimSuffix(fields[1], "/")
		if strings.HasPrefix(path+"/", point+"/") && len(point) > longest {
			found, longest = fields[2], len(point)
		}
	}
	return found
}

// fieldOf finds "name : value" in a file of /proc.
func fieldOf(file, name string) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return "unknown"
	}
	for line := range strings.Lines(string(text)) {
		key, value, ok := strings.Cut(line, ":")
		if ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}
