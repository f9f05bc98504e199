package imagetest

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestPackagesAreNotTakenWithoutDebiansKeys hides the keys of this machine. Whoever answers in the archive's place would
// otherwise have programs installed as root.
func TestPackagesAreNotTakenWithoutDebiansKeys(t *testing.T) {
	asked := make(chan string, 1)
	archive := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case asked <- r.URL.Path:
		default:
		}
		http.NotFound(w, r)
	}))
	defer archive.Close()
	dir := t.TempDir()
	for name, says := range map[string]string{"apt-get": "Debian main " + archive.URL, "apt-config": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\necho '"+says+"'\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	script, err := filepath.Abs("../files/rootfs.sh")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "unshare", "--mount", "sh", "-c",
		`mount -t tmpfs none /usr/share/keyrings && exec bash "$@"`, "sh", script, "bookworm", "bash", filepath.Join(dir, "out.tar"))
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), "keyring file not available") {
		t.Errorf("%v, want a word about missing keys:\n%s", err, out)
	}
	select {
	case path := <-asked:
		t.Errorf("the archive was asked for %s", path)
	default:
	}
}
