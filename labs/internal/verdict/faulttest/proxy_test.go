//go:build linux

package faulttest

import (
	"cmp"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
)

// engineProxy stands between this test and the machine's engine, so that the engine is gone or hangs for this test alone.
type engineProxy struct {
	engine      string // DOCKER_HOST of the engine itself
	gone, hangs atomic.Bool
}

// newEngineProxy has every docker command of the test use the proxy.
func newEngineProxy(t *testing.T) *engineProxy {
	t.Helper()
	dir, err := os.MkdirTemp("", "engine-") //nolint:usetesting // the path of a socket has at most 107 characters
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	listener, err := net.Listen("unix", filepath.Join(dir, "engine.sock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	p := &engineProxy{engine: cmp.Or(os.Getenv("DOCKER_HOST"), "unix:///var/run/docker.sock")}
	t.Setenv("DOCKER_HOST", "unix://"+listener.Addr().String())
	go func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			go p.serve(client)
		}
	}()
	return p
}

func (p *engineProxy) serve(client net.Conn) {
	defer client.Close()
	if p.hangs.Load() {
		_, _ = io.Copy(io.Discard, client) // until the client gives up
	}
	engine, err := net.Dial("unix", strings.TrimPrefix(p.engine, "unix://"))
	if err != nil || p.gone.Load() {
		return
	}
	defer engine.Close()
	go func() {
		_, _ = io.Copy(engine, client)
		_ = engine.(*net.UnixConn).CloseWrite()
	}()
	_, _ = io.Copy(client, engine)
}
