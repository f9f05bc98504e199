package share

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/example/operator-lab/labs/internal/roomclient"
)

// folder has the programs of a control plane, and one module.
func folder(t *testing.T) Folder {
	t.Helper()
	dir, cache := t.TempDir(), t.TempDir()
	program := filepath.Join(cache, "components", "k1", "etcd")
	module := filepath.Join(dir, "modules", "cache", "download", "example.com", "x", "@v")
	err := errors.Join(
		os.MkdirAll(filepath.Dir(program), 0o755), os.WriteFile(program, []byte("etcd"), 0o755),
		os.MkdirAll(module, 0o755), os.WriteFile(filepath.Join(module, "v1.0.0.info"), []byte("{}"), 0o644),
	)
	f := Folder{Dir: filepath.Join(dir, "files"), Modules: filepath.Join(dir, "modules")}
	if err == nil {
		err = f.PackFiles(t.Context(), roomclient.ControlPlaneFile(), cache, "components/k1/etcd")
	}
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestLearnersGetTheControlPlane(t *testing.T) {
	s := Site{Folder: folder(t)}
	server := httptest.NewServer(s.Handler())
	defer server.Close()
	s.URL = server.URL
	answer, err := s.Offer()
	if err != nil || len(answer.Downloads) != 1 || answer.Modules != server.URL+"/modules" {
		t.Fatalf("%+v, %v", answer, err)
	}
	d, cache := answer.Downloads[0], t.TempDir()
	if err := d.Unpack(t.Context(), cache); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(cache, "components", "k1", "etcd")
	if info, err := os.Stat(program); err != nil || info.Mode().Perm() != 0o755 || info.Size() != 4 {
		t.Errorf("%v, %v", info, err)
	}
	d.SHA256 = strings.Repeat("0", 64)
	other := t.TempDir()
	if err := d.Unpack(t.Context(), other); err == nil || !strings.Contains(err.Error(), "another file") {
		t.Errorf("with another sum: %v", err)
	}
	if left, _ := os.ReadDir(other); len(left) > 0 {
		t.Errorf("with another sum %v were unpacked", left)
	}
	resp, err := http.Get(answer.Modules + "/example.com/x/@v/v1.0.0.info")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if text, _ := io.ReadAll(resp.Body); string(text) != "{}" {
		t.Errorf("the module is %q", text)
	}
}

func TestThePageSaysHowToJoin(t *testing.T) {
	root := t.TempDir()
	for _, args := range [][]string{
		{"init", "-q"}, {"-c", "user.name=x", "-c", "user.email=x@example.com", "commit", "-q", "--allow-empty", "-m", "x"},
	} {
		if out, err := exec.CommandContext(t.Context(), "git", append([]string{"-C", root}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	f := folder(t)
	if err := f.PackCourse(t.Context(), root); err != nil {
		t.Fatal(err)
	}
	s := Site{Folder: f, URL: "http://192.168.1.5:7778", Room: "192.168.1.5:7777", Key: "ABCD-EFGH-IJKL-MNOP"}
	w := httptest.NewRecorder()
	s.Handler().ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", http.NoBody))
	files, err := f.Files()
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"curl -fO http://192.168.1.5:7778/files/course.tar.gz", files[CourseFile].SHA256, files[roomclient.ControlPlaneFile()].SHA256,
		"make join ROOM=192.168.1.5:7777 KEY=ABCD-EFGH-IJKL-MNOP",
	} {
		if !strings.Contains(w.Body.String(), want) {
			t.Errorf("no %q in\n%s", want, w.Body)
		}
	}
	if strings.Contains(w.Body.String(), "docker load") {
		t.Error("it offers a node image that is not there")
	}
}
