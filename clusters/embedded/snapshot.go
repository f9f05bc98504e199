package embedded

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/embedded/supervisor"
	"github.com/example/operator-lab/clusters/internal/lock"
)

// A snapshot is the data of an etcd to which an API server of the same build has written
// what every API server writes first and what says nothing about its cluster: the
// roles of RBAC above all, 130 objects one after the other, a second after its start.
// With them already there, nobody has to wait for the hooks that write them.
//
// Namespaces, certificates, addresses and everything else is not part of it.

// snapshotPrefixes are where what a snapshot keeps is stored.
func snapshotPrefixes() []string {
	return []string{
		"/registry/clusterroles/", "/registry/clusterrolebindings/", "/registry/roles/", "/registry/rolebindings/",
		"/registry/priorityclasses/", "/registry/flowschemas/", "/registry/prioritylevelconfigurations/",
		"/registry/apiregistration.k8s.io/apiservices/",
	}
}

const (
	// snapshotName is the cluster that a snapshot is taken from.
	snapshotName = "lab-snapshot"
	// snapshotTimeout bounds the making of a snapshot: 3 s on an idle machine.
	snapshotTimeout = time.Minute
)

// snapshot returns the folder of the snapshot for today's programs, and makes it if there is
// none.
func (e *Embedded) snapshot(ctx context.Context, programs map[string]string) (string, error) {
	dir := filepath.Join(e.builder.CacheDir, "embedded", "snapshot-"+snapshotKey(programs))
	if exists(dir) {
		return dir, nil
	}
	unlock, err := lock.Wait(ctx, filepath.Join(filepath.Dir(dir), "lock"))
	if err != nil {
		return "", fmt.Errorf("make snapshot: %w", err)
	}
	defer unlock()
	if exists(dir) {
		return dir, nil
	}
	ctx, cancel := context.WithTimeout(ctx, snapshotTimeout)
	defer cancel()
	if err := e.makeSnapshot(ctx, programs, dir); err != nil {
		return "", fmt.Errorf("make snapshot: %w", err)
	}
	return dir, nil
}

// snapshotKey changes with the programs, which live in folders named by what they were
// built from, and with what they are told.
func snapshotKey(programs map[string]string) string {
	hash := sha256.New()
	for _, name := range []string{etcd, apiServer} {
		fmt.Fprintln(hash, filepath.Base(filepath.Dir(programs[name])))
	}
	fmt.Fprintln(hash, etcdArgs(), apiServerArgs(loopback, 0, false), snapshotPrefixes())
	return fmt.Sprintf("%x", hash.Sum(nil)[:6])
}

// makeSnapshot runs an etcd and an API server until the latter is ready, and keeps a
// part of what is in the former.
func (e *Embedded) makeSnapshot(ctx context.Context, programs map[string]string, dir string) (err error) {
	work, err := os.MkdirTemp(filepath.Dir(dir), "making-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(work) }()
	source := &Embedded{
		state: work, supervisor: e.supervisor, log: e.log, readyTimeout: snapshotTimeout, handles: map[string]*supervisor.Handle{},
	}
	a := &attempt{Embedded: source, name: snapshotName, address: loopback, programs: programs}
	defer func() { err = errors.Join(err, source.Delete(context.WithoutCancel(ctx), snapshotName)) }()
	if err := a.makeFolder(); err != nil {
		return err
	}
	if err := a.start(etcd, apiServer); err != nil {
		return err
	}
	if err := a.awaitHooks(ctx); err != nil {
		return err
	}
	plane := source.plane(snapshotName)
	// Nobody shall write any more while the rest is thrown away.
	if err := supervisor.Freeze(plane, apiServer); err != nil {
		return err
	}
	if err := prune(ctx, filepath.Join(plane, etcdSocket)); err != nil {
		return err
	}
	if err := supervisor.Freeze(plane, etcd); err != nil {
		return err
	}
	data := filepath.Join(plane, etcdData)
	if err := trim(data); err != nil {
		return err
	}
	return os.Rename(data, dir)
}

// awaitHooks returns when the API server has done everything that it does first.
func (a *attempt) awaitHooks(ctx context.Context) error {
	config, err := clusters.RESTConfig(clusters.Kubeconfig(a.state, a.name))
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("make client: %w", err)
	}
	return a.poll(ctx, "readyz", func() error { return get(ctx, client, "/readyz") })
}

// prune deletes what is not part of a snapshot, through etcd's JSON interface.
func prune(ctx context.Context, socket string) error {
	client := &http.Client{Transport: &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dialShort(ctx, socket) },
	}}
	type keyRange struct {
		Key      []byte `json:"key"`
		RangeEnd []byte `json:"range_end,omitempty"`
		KeysOnly bool   `json:"keys_only,omitempty"`
	}
	var found struct {
		KVs []struct {
			Key []byte `json:"key"`
		} `json:"kvs"`
	}
	// From the first key there can be to the last.
	if err := askEtcd(ctx, client, "range", keyRange{Key: []byte{0}, RangeEnd: []byte{0}, KeysOnly: true}, &found); err != nil {
		return err
	}
	for _, kv := range found.KVs {
		if slices.ContainsFunc(snapshotPrefixes(), func(p string) bool { return strings.HasPrefix(string(kv.Key), p) }) {
			continue
		}
		if err := askEtcd(ctx, client, "deleterange", keyRange{Key: kv.Key}, nil); err != nil {
			return err
		}
	}
	return nil
}

func askEtcd(ctx context.Context, client *http.Client, what string, question, answer any) error {
	body, err := json.Marshal(question)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://etcd/v3/kv/"+what, bytes.NewReader(body))
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("ask etcd: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("ask etcd: %s", resp.Status)
	}
	if answer == nil {
		return nil
	}
	return json.NewDecoder(resp.Body).Decode(answer)
}

// dialShort reaches a socket whose path may be too long for one.
func dialShort(ctx context.Context, socket string) (net.Conn, error) {
	dir, err := os.MkdirTemp("", "s")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	link := filepath.Join(dir, "s")
	if err := os.Symlink(socket, link); err != nil {
		return nil, err
	}
	return (&net.Dialer{}).DialContext(ctx, "unix", link)
}

// trim takes away the space that an etcd has reserved in its logs.
func trim(data string) error {
	logs, err := filepath.Glob(filepath.Join(data, "member", "wal", "*"))
	if err != nil {
		return err
	}
	for _, log := range logs {
		if filepath.Ext(log) == ".tmp" { // a log that is not yet one
			err = os.Remove(log)
		} else {
			err = cutReserve(log)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// cutReserve cuts the zeros off the end of a log, and leaves some by which its end is known.
func cutReserve(log string) error {
	const keep = 4096
	data, err := os.ReadFile(log)
	if err != nil {
		return err
	}
	used := len(bytes.TrimRight(data, "\x00"))
	return os.Truncate(log, int64(min(len(data), (used/keep+2)*keep)))
}
