package judge

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// folder makes one with what two checkouts of the same files may differ in.
func folder(t *testing.T, made time.Time, mode fs.FileMode) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{"go.mod", "cmd/main.go", "cmd/main_test.go", "run.sh"} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(name), mode), os.Chtimes(file, made, made)); err != nil {
			t.Fatal(err)
		}
	}
	elsewhere := t.TempDir()
	if err := errors.Join(
		os.Chmod(filepath.Join(dir, "run.sh"), mode|0o100), os.WriteFile(filepath.Join(elsewhere, "linked.go"), nil, mode),
		os.Symlink(elsewhere, filepath.Join(dir, "src")),
	); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestTheSameFilesMakeTheSameLayer(t *testing.T) {
	tests := func(rel string, _ fs.DirEntry) bool { return path.Base(rel) == "main_test.go" }
	var layers []layer
	for made, mode := range map[time.Time]fs.FileMode{time.Now(): 0o644, time.Unix(1, 0): 0o600} {
		l, err := writeLayer(filepath.Join(t.TempDir(), "layer.tar"), tree{folder(t, made, mode), "lab/course", tests})
		if err != nil {
			t.Fatal(err)
		}
		layers = append(layers, l)
	}
	if layers[0].hash != layers[1].hash || layers[0].size != layers[1].size {
		t.Errorf("layers differ: %+v, %+v", layers[0], layers[1])
	}
	want := []string{
		"lab/course/ 755", "lab/course/cmd/ 755", "lab/course/cmd/main.go 644", "lab/course/go.mod 644", "lab/course/run.sh 755",
		"lab/course/src/ 755", "lab/course/src/linked.go 644",
	}
	if diff := cmp.Diff(want, content(t, layers[0])); diff != "" {
		t.Error(diff)
	}
}

func content(t *testing.T, l layer) (all []string) {
	t.Helper()
	file, err := l.Uncompressed()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	for r := tar.NewReader(file); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, fmt.Sprintf("%s %o", header.Name, header.Mode))
	}
}
