package embedded

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

func TestASnapshotLeavesOutWhatAnEtcdHasReserved(t *testing.T) {
	dir := t.TempDir()
	log := append([]byte("entries \x00 of a log"), make([]byte, 1<<20)...)
	for name, data := range map[string][]byte{"member/wal/0.wal": log, "member/wal/1.tmp": make([]byte, 10), "member/snap/db": log} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := trim(dir); err != nil {
		t.Fatal(err)
	}
	wal, err := os.ReadFile(filepath.Join(dir, "member/wal/0.wal"))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.HasPrefix(log, wal) || len(wal) < 100 || len(wal) > 100<<10 {
		t.Errorf("the log has %d of %d bytes, want its entries and little more", len(wal), len(log))
	}
	if db, err := os.ReadFile(filepath.Join(dir, "member/snap/db")); err != nil || !bytes.Equal(db, log) {
		t.Errorf("the database has %d of %d bytes (%v), want it as it was", len(db), len(log), err)
	}
	if exists(filepath.Join(dir, "member/wal/1.tmp")) {
		t.Error("what is not yet a log was kept")
	}
}

func TestASnapshotIsForTheProgramsThatItWasMadeWith(t *testing.T) {
	paths := map[string]string{etcd: "/cache/etcd-1/etcd", apiServer: "/cache/kubernetes-1/kube-apiserver"}
	before := snapshotKey(paths)
	if other := snapshotKey(map[string]string{etcd: "/else/etcd-1/etcd", apiServer: "/else/kubernetes-1/kube-apiserver"}); other != before {
		t.Error("the same programs in another place have another snapshot")
	}
	paths[apiServer] = "/cache/kubernetes-2/kube-apiserver"
	if snapshotKey(paths) == before {
		t.Error("another API server has the same snapshot")
	}
}
