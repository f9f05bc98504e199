//go:build unix

package clusters

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// scripted is a provider whose engine is a script, and a file with what that was told.
func scripted(t *testing.T, script string) (k *Kind, told string) {
	t.Helper()
	bin := t.TempDir()
	told = filepath.Join(bin, "told")
	text := "#!/bin/sh\necho \"$@\" >> " + told + "\n" + script
	if err := os.WriteFile(filepath.Join(bin, "docker"), []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin)
	k, err := NewKind(t.TempDir(), WithEngine("docker"))
	if err != nil {
		t.Fatal(err)
	}
	return k, told
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
	t.Setenv("PATH", os.Getenv("PATH")+":/usr/bin:/bin") // for touch
	label, err := k.drawLabel("lab-x")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("LABEL", label)
	if err := k.Delete(t.Context(), "lab-x"); err != nil {
		t.Error(err)
	}
	data, err := os.ReadFile(told)
	if err != nil || !strings.Contains(string(data), "rm -f -v id-mine\n") || strings.Contains(string(data), "id-theirs") {
		t.Errorf("the engine was told %q, %v, want it to remove id-mine alone", data, err)
	}
	if _, err := os.Stat(Dir(k.state, "lab-x")); err == nil {
		t.Error("the folder of the cluster is left")
	}
}

func TestDeleteRefusesUnlabelledCluster(t *testing.T) {
	k, told := scripted(t, `[ "$1" = ps ] && echo lab-x-control-plane`)
	err := k.Delete(t.Context(), "lab-x")
	if p, ok := errors.AsType[*Problem](err); !ok || !strings.Contains(p.Fix, "docker rm -f -v lab-x-control-plane") {
		t.Errorf("Delete() = %v, want a refusal that names the command", err)
	}
	if data, _ := os.ReadFile(told); strings.Contains(string(data), "rm ") {
		t.Errorf("the engine was told %q", data)
	}
}

func TestLabelIsDrawnOnce(t *testing.T) {
	k, _ := scripted(t, "")
	if _, err := k.drawLabel("lab-x"); err != nil {
		t.Fatal(err)
	}
	if _, err := k.drawLabel("lab-x"); !errors.Is(err, ErrExists) {
		t.Errorf("drawLabel() = %v for a name that is taken, want ErrExists", err)
	}
	if info, err := os.Stat(filepath.Join(Dir(k.state, "lab-x"), "label")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the label has mode %v, %v", info.Mode(), err)
	}
}

func TestWorkersNeedAnotherImage(t *testing.T) {
	k, told := scripted(t, `[ "$1" = image ] && echo '{"`+RecipeLabel+`":"x"}'`)
	if _, err := k.Create(t.Context(), "lab-x", Spec{NodeImage: "built", Workers: 1}); err == nil || !strings.Contains(err.Error(), "one node") {
		t.Errorf("Create() = %v, want a refusal that says why", err)
	}
	if data, _ := os.ReadFile(told); strings.Contains(string(data), "run") {
		t.Errorf("the engine was told %q", data)
	}
}
