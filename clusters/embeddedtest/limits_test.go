//go:build linux

package embeddedtest

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/operator-lab/clusters"
)

// Whoever could speak to etcd as a member would write past the API server.
func TestEtcdListensOnNoPort(t *testing.T) {
	_, _, s := runningCluster(t)
	if n := len(listening(t, s.Program("kube-apiserver").Process.PID)); n != 1 {
		t.Errorf("the API server listens on %d ports, want 1", n)
	}
	if ports := listening(t, s.Program("etcd").Process.PID); len(ports) > 0 {
		t.Errorf("etcd listens on %v", ports)
	}
}

// listening are the addresses, as the kernel writes them, on which a process takes connections.
func listening(t *testing.T, pid int) (addresses []string) {
	t.Helper()
	links, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	sockets := map[string]bool{}
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && strings.HasPrefix(target, "socket:[") {
			sockets[strings.Trim(target, "socket:[]")] = true
		}
	}
	if len(sockets) == 0 {
		t.Fatalf("process %d has no sockets at all", pid)
	}
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		data, err := os.ReadFile(table)
		if err != nil {
			t.Fatal(err)
		}
		const listen = "0A" // TCP_LISTEN
		for line := range strings.Lines(string(data)) {
			if f := strings.Fields(line); len(f) > 9 && f[3] == listen && sockets[f[9]] {
				addresses = append(addresses, f[1])
			}
		}
	}
	return addresses
}

// At a higher level, an API server logs each request at its full length.
func TestAnAdminSetsNoLevelOfLogs(t *testing.T) {
	_, c, _ := runningCluster(t)
	a := newAdmin(t, c, "")
	if err := a.get(t.Context(), "/debug/flags/v"); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("/debug/flags/v: %v", err)
	}
	if err := a.get(t.Context(), "/version"); err != nil {
		t.Error(err)
	}
}

const (
	// refusedWrites is how often an object is written that exists already, refusedSize how many bytes it has. etcd logs
	// each of these writes, and stores none of them.
	refusedWrites, refusedSize = 500, 900 << 10
	// diskLimit is far below what they take together, and far above what stays.
	diskLimit = 300 << 20
	// purgeLimit is three times as long as the time after which etcd looks for files that it does not need.
	purgeLimit = 90 * time.Second
)

func TestWritesThatAreRefusedFillNoDisk(t *testing.T) {
	e, state := newProvider(t)
	c, err := e.Create(t.Context(), clusters.NewName("disk"), clusters.Spec{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Delete(context.WithoutCancel(t.Context()), c.Name); err != nil {
			t.Error(err)
		}
	})
	a := newAdmin(t, c, "")
	for i := range 1 + refusedWrites {
		err := a.Create(t.Context(), &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: "big", Namespace: metav1.NamespaceDefault},
			Data:       map[string]string{"a": strings.Repeat("x", refusedSize)},
		})
		if i == 0 && err != nil || i > 0 && !apierrors.IsAlreadyExists(err) {
			t.Fatalf("write %d: %v", i, err)
		}
	}
	gomega.NewWithT(t).Eventually(func() int64 { return size(t, clusters.Dir(state, c.Name)) }).
		WithTimeout(purgeLimit).WithPolling(time.Second).Should(gomega.BeNumerically("<", diskLimit))
}

// size is how many bytes the files below a folder have.
func size(t *testing.T, dir string) (bytes int64) {
	t.Helper()
	err := filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return nil //nolint:nilerr // files come and go
		}
		if info, err := entry.Info(); err == nil {
			bytes += info.Size()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}
