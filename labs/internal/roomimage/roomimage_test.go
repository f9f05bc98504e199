package roomimage_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/labs/internal/roomimage"
)

const name = "node-amd64-0123456789ab.tar.gz"

// packed is an archive of those bytes, as good as any.
func packed(t *testing.T, data []byte) nodeimage.Archive {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	return nodeimage.Archive{Path: path, SHA256: hex.EncodeToString(sum[:]), Size: int64(len(data))}
}

func serve(t *testing.T, a nodeimage.Archive) string {
	t.Helper()
	srv := httptest.NewServer(http.StripPrefix("/images", roomimage.NewServer(a)))
	t.Cleanup(srv.Close)
	return srv.URL + "/images/"
}

func content() []byte { return bytes.Repeat([]byte("0123456789"), 100_000) }

func TestOnlyTheArchiveIsServed(t *testing.T) {
	a := packed(t, content())
	url := serve(t, a)
	for _, tc := range []struct {
		method, path string
		status       int
		body         string
	}{
		{http.MethodGet, name, http.StatusOK, string(content())},
		{http.MethodGet, "", http.StatusNotFound, "There is no such image"},
		{http.MethodGet, "../" + name, http.StatusNotFound, ""},
		{http.MethodGet, "node-amd64-fedcba987654.tar.gz", http.StatusNotFound, name + " is here"},
		{http.MethodPut, name, http.StatusMethodNotAllowed, "read only"},
	} {
		request, err := http.NewRequestWithContext(t.Context(), tc.method, url+tc.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != tc.status || !strings.Contains(string(body), tc.body) {
			t.Errorf("%s %s: %s, %d bytes, %v", tc.method, tc.path, response.Status, len(body), err)
		}
	}
	if err := os.Remove(a.Path); err != nil {
		t.Fatal(err)
	}
	if err := fetch(t, url, a, filepath.Join(t.TempDir(), "x")); err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("an archive that is gone: %v", err)
	}
}

func fetch(t *testing.T, url string, a nodeimage.Archive, file string) error {
	t.Helper()
	return roomimage.Fetch(t.Context(), url+name, a.SHA256, file, func(string) {})
}

func requireFetched(t *testing.T, file string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(data, content()) {
		t.Errorf("fetched are %d bytes, %v", len(data), err)
	}
	if info, err := os.Stat(file); err == nil && info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v", info.Mode())
	}
	if _, err := os.Stat(file + ".part"); err == nil {
		t.Error("its part is left")
	}
}

// On a weak Wi-Fi half a gigabyte does not come at the first try.
func TestADownloadGoesOnWhereItWasInterrupted(t *testing.T) {
	a := packed(t, content())
	room := roomimage.NewServer(a)
	var asked []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Header.Get("Range"))
		if len(asked) == 1 {
			w.Header().Set("Content-Length", "1000000")
			_, _ = w.Write(content()[:400_000])
			panic(http.ErrAbortHandler)
		}
		room.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	file := filepath.Join(t.TempDir(), "images", name)
	if err := fetch(t, srv.URL+"/", a, file); err == nil {
		t.Fatal("half a file is taken for the whole")
	}
	if err := fetch(t, srv.URL+"/", a, file); err != nil {
		t.Fatal(err)
	}
	requireFetched(t, file)
	if len(asked) != 2 || asked[1] != "bytes=400000-" {
		t.Errorf("asked for %q", asked)
	}
	if err := fetch(t, srv.URL+"/", a, file); err != nil || len(asked) != 2 {
		t.Errorf("what is there is fetched again: %q, %v", asked, err)
	}
}

// Whoever is between the room and a learner could send anything.
func TestWhatIsNotWhatTheHandoutSaysIsThrownAway(t *testing.T) {
	a := packed(t, content())
	url := serve(t, a)
	file := filepath.Join(t.TempDir(), name)
	wrong := a
	wrong.SHA256 = strings.Repeat("0", 64)
	if err := fetch(t, url, wrong, file); !errors.Is(err, roomimage.ErrDigest) {
		t.Errorf("error %v", err)
	}
	for _, left := range []string{file, file + ".part"} {
		if _, err := os.Stat(left); err == nil {
			t.Errorf("%s is there", left)
		}
	}
	// What is left of something else is not gone on from for ever.
	if err := os.WriteFile(file+".part", append(content(), "more than all"...), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := fetch(t, url, a, file); !errors.Is(err, roomimage.ErrDigest) {
		t.Errorf("error %v", err)
	}
	if err := fetch(t, url, a, file); err != nil {
		t.Fatal(err)
	}
	requireFetched(t, file)
}
