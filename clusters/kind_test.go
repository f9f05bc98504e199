//go:build unix

package clusters

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/clusters/internal/layout"
)

// scripted is a provider whose engine is a script, and a file with what that was told.
func scripted(t *testing.T, script string) (k *kind, told string) {
	t.Helper()
	bin := t.TempDir()
	told = filepath.Join(bin, "told")
	text := "#!/bin/sh\necho \"$@\" >> " + told + "\n" + script
	if err := os.WriteFile(filepath.Join(bin, "docker"), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":/usr/bin:/bin")
	m, err := New(t.TempDir(), WithEngine("docker"))
	if err != nil {
		t.Fatal(err)
	}
	return m.provider.(*kind), told
}

// wasTold fails the test when the engine was told something with that text.
func wasTold(t *testing.T, file, text string) bool {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Contains(string(data), text)
}

// twoOwners is an engine with a node of ours and one of somebody else's, both of the cluster lab-x. "rm" takes nodes away.
const twoOwners = `
case "$1" in
ps) for id in mine theirs; do [ -e $0.$id.gone ] || echo $id; done ;;
container) echo "id-$5 /var$([ $5 = mine ] && echo " /kind/owner/$LABEL")" ;;
rm) for id in "$@"; do touch "$0.${id#id-}.gone"; done ;;
esac`

func TestDeleteTouchesOnlyLabelledNodes(t *testing.T) {
	k, told := scripted(t, twoOwners)
	label, err := k.drawLabel("lab-x")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("LABEL", label)
	if err := k.Delete(t.Context(), "lab-x"); err != nil {
		t.Error(err)
	}
	if !wasTold(t, told, "rm -f -v id-mine\n") || wasTold(t, told, "id-theirs") {
		t.Error("the engine was not told to remove id-mine alone")
	}
	if _, err := os.Stat(layout.Dir(k.state, "lab-x")); err == nil {
		t.Error("the folder of the cluster is left")
	}
}

func TestWorkersNeedAnotherImage(t *testing.T) {
	k, told := scripted(t, `[ "$1" = image ] && echo '[{"Config": {"Labels": {"`+layout.NodeImageLabel+`": "x"}}}]'`)
	if _, err := k.Create(t.Context(), "lab-x", Spec{Image: "built", Workers: 1}); err == nil || !strings.Contains(err.Error(), "one node") {
		t.Errorf("Create() = %v, want a refusal that says why", err)
	}
	if wasTold(t, told, "run") {
		t.Error("the engine was told to run a node")
	}
}

// noImage is an engine without images.
const noImage = `
case "$1" in
version) echo 1.2.3 ;;
image) echo "No such image" >&2; exit 1 ;;
pull) echo "no registry" >&2; exit 1 ;;
esac`

func TestCreatePullsOnlyWhenAsked(t *testing.T) {
	k, told := scripted(t, noImage)
	_, err := k.Create(t.Context(), "lab-test", Spec{Image: "example/node:v1"})
	if !errors.Is(err, ErrImageMissing) || !strings.Contains(err.Error(), "example/node:v1") || wasTold(t, told, "pull") {
		t.Errorf("Create() = %v, want ErrImageMissing with the name, and no pull", err)
	}
	k.pull = true
	if _, err := k.Create(t.Context(), "lab-test", Spec{}); !errors.Is(err, ErrImageMissing) || !wasTold(t, told, "pull "+DefaultNodeImage) {
		t.Errorf("Create() = %v, want a pull of %s", err, DefaultNodeImage)
	}
}

func TestEngineDoesNotAnswer(t *testing.T) {
	k, _ := scripted(t, "echo 'Cannot connect to the daemon' >&2; exit 1")
	for name, call := range map[string]func() error{
		"Create": func() error { _, err := k.Create(t.Context(), "lab-test", Spec{}); return err },
		"List":   func() error { _, err := k.List(t.Context()); return err },
		"Nodes":  func() error { _, err := k.Nodes(t.Context(), "lab-test"); return err },
	} {
		if err := call(); !errors.Is(err, ErrNoEngine) || !strings.Contains(err.Error(), "Cannot connect to the daemon") {
			t.Errorf("%s() = %v, want ErrNoEngine with what the engine says", name, err)
		}
	}
}

func TestIdentityTellsEnginesApart(t *testing.T) {
	t.Setenv("DOCKER_HOST", "")
	t.Setenv("DOCKER_CONTEXT", "")
	k, _ := scripted(t, "")
	here := k.Identity()
	t.Setenv("DOCKER_HOST", "unix:///run/second.sock")
	if there := k.Identity(); here == there {
		t.Errorf("two engines are %q", there)
	}
}

func TestKindLogger(t *testing.T) {
	var lines []string
	logger := &kindLogger{log: func(line string) { lines = append(lines, line) }}
	logger.Warn("cgroup v1 is deprecated")
	logger.V(0).Infof("Creating cluster %q ...\n", "lab")
	logger.V(0).Infof(" • %s  ...\n", "Preparing nodes 📦 ")
	logger.V(0).Infof(" ✓ %s\n", "Preparing nodes 📦 ")
	logger.V(1).Info("• a detail")
	if diff := cmp.Diff([]string{"Preparing nodes"}, lines); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
	for _, word := range []string{"cgroup v1 is deprecated", "Creating cluster", "✓", "a detail"} {
		if !strings.Contains(string(logger.text()), word) {
			t.Errorf("the log of a failure lacks %q", word)
		}
	}
}
