//go:build unix

package schoolday

import (
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// world is what a day could leave behind: containers, networks and volumes of the engine, processes of the course, and
// kubeconfigs.
type world map[string]bool

// look finds what is there. Without an engine there is nothing of it.
func look(ctx context.Context, root string) (world, error) {
	w := world{}
	for what, args := range map[string][]string{
		"container": {"ps", "--all", "--format", "{{.Names}}"},
		"network":   {"network", "ls", "--format", "{{.Name}}"},
		"volume":    {"volume", "ls", "--format", "{{.Name}}"},
	} {
		out, err := exec.CommandContext(ctx, "docker", args...).Output()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err == nil {
			w.add(what, strings.Fields(string(out))...)
		}
	}
	kubeconfigs, err := filepath.Glob(filepath.Join(root, ".lab", "clusters", "*", "kubeconfig"))
	if err != nil {
		return nil, err
	}
	w.add("kubeconfig", kubeconfigs...)
	return w, w.addProcesses()
}

func (w world) add(what string, names ...string) {
	for _, name := range names {
		w[what+" "+name] = true
	}
}

// addProcesses adds programs of the lab, and of control planes, but not this one.
func (w world) addProcesses() error {
	names, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return err
	}
	for _, name := range names {
		data, err := os.ReadFile(name)
		if err != nil {
			continue // it has ended
		}
		args := strings.Split(string(data), "\x00")
		if slices.Contains([]string{"lab", "guard", "etcd", "kube-apiserver", "kwok", "manager", "chromium"}, filepath.Base(args[0])) {
			w.add("process", filepath.Base(args[0])+" "+filepath.Base(filepath.Dir(name)))
		}
	}
	return nil
}

// kept are what a first day leaves on purpose: the network that kind makes once for all clusters.
var kept = []string{"network kind"}

// same says what is there after and was not before.
func (w world) same(after world) error {
	left := slices.DeleteFunc(slices.Sorted(maps.Keys(after)), func(thing string) bool {
		return w[thing] || slices.Contains(kept, thing)
	})
	if len(left) > 0 {
		return fmt.Errorf("left behind: %s", strings.Join(left, ", "))
	}
	return nil
}
