package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/example/operator-lab/labs/classroom/room"
	"github.com/example/operator-lab/labs/classroom/share"
	"github.com/example/operator-lab/labs/internal/cli"
	"github.com/example/operator-lab/labs/internal/cli/exit"
)

func TestWhatCannotBeARoomIsWrongUsage(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	for name, tc := range map[string]struct {
		c    upCommand
		says string
	}{
		"nobody":                   {upCommand{}, "N=12"},
		"fewer than none":          {upCommand{size: -1}, "N=12"},
		"a file that is not there": {upCommand{names: missing}, "NAMES"},
		"an address of others":     {upCommand{size: 2, address: "203.0.113.5"}, "no address of this machine"},
		"no address":               {upCommand{size: 2, address: "localhost"}, "no IPv4 address"},
	} {
		a, _, _ := newTestApp(t)
		a.Cluster = cli.Auto
		tc.c.app = a
		if err := tc.c.up(t.Context()); exit.Code(err) != exit.UsageError || !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(filepath.Join(a.State, room.FileName)); err == nil {
			t.Errorf("%s: the room is kept", name)
		}
	}
}

func TestKindIsNotOpenedToANetwork(t *testing.T) {
	a, _, _ := newTestApp(t)
	a.Cluster = cli.Kind
	c := upCommand{app: a, address: loopback}
	if err := c.choose(t.Context(), &room.Room{}); exit.Code(err) != exit.UsageError || !strings.Contains(err.Error(), "root on this machine") {
		t.Errorf("%v", err)
	}
	a.Cluster = cli.Auto
	r := &room.Room{}
	if err := c.choose(t.Context(), r); err != nil || r.Provider != cli.Embedded || r.Address != loopback {
		t.Errorf("%+v, %v", r, err)
	}
	a.Cluster = cli.Kind
	if err := (&upCommand{app: a}).choose(t.Context(), r); exit.Code(err) != exit.UsageError {
		t.Errorf("another kind of clusters beside those: %v", err)
	}
}

func TestStatusOfAnEmptyRoomSaysHowToBegin(t *testing.T) {
	a, out, _ := newTestApp(t)
	if err := a.status(t.Context()); err != nil || !strings.Contains(out.String(), "make classroom N=12") {
		t.Errorf("%s, %v", out, err)
	}
}

func TestDownKeepsWhatWasOnTheBoard(t *testing.T) {
	a, out, _ := newTestApp(t)
	if err := os.MkdirAll(a.boardDir(), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(a.boardDir(), "results.jsonl"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := a.down(t.Context()); err != nil {
		t.Fatal(err)
	}
	kept, err := filepath.Glob(a.boardDir() + "-*/results.jsonl")
	if err != nil || len(kept) != 1 || !strings.Contains(out.String(), filepath.Dir(kept[0])) {
		t.Errorf("%v, %v\n%s", kept, err, out)
	}
}

func TestWhoJoinsGetsTheirCluster(t *testing.T) {
	a, _, _ := newTestApp(t)
	r, err := room.Update(a.State, func(r *room.Room) error { r.Number(2); return nil })
	if err != nil {
		t.Fatal(err)
	}
	first := r.Learners[0].Cluster
	kubeconfig := filepath.Join(a.State, "clusters", first, "kubeconfig")
	if err := os.MkdirAll(filepath.Dir(kubeconfig), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(kubeconfig, []byte("the first"), 0o600); err != nil {
		t.Fatal(err)
	}
	offer := a.offer(share.Site{Folder: a.share()})
	for _, tc := range []struct{ name, kubeconfig string }{{"Ana", "the first"}, {"Bob", ""}, {"Cyd", ""}, {"ana", "the first"}} {
		answer, err := offer(tc.name)
		if err != nil || string(answer.Kubeconfig) != tc.kubeconfig {
			t.Errorf("%s: %q, %v", tc.name, answer.Kubeconfig, err)
		}
	}
}
