//go:build unix

package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

const imageContent = "an image"

// imageName is that of an image for this machine.
func imageName() string { return fmt.Sprintf("node-%s-0123456789ab.tar.gz", runtime.GOARCH) }

func imageDigest() string { return fmt.Sprintf("%x", sha256.Sum256([]byte(imageContent))) }

// An interrupted download goes on where it was, as `curl -C -` asks.
func TestTheRoomServesItsNodeImage(t *testing.T) {
	instructor, out, _ := newTestApp(t)
	public := map[string]http.Handler{}
	if _, ok := instructor.serveImage(public); ok || len(public) > 0 || instructor.roomImage("http://room:7777") != nil {
		t.Error("an image that was not packed is served")
	}
	path := filepath.Join(instructor.Cache, "images", imageName())
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	for path, text := range map[string]string{path: imageContent, path + ".sha256": imageDigest() + "\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	image, ok := instructor.serveImage(public)
	if !ok {
		t.Fatal("the packed image is not served")
	}
	mux := http.NewServeMux()
	for pattern, handler := range public {
		mux.Handle(pattern, handler)
	}
	srv := httptest.NewUnstartedServer(mux)
	srv.Config.WriteTimeout = time.Nanosecond // the server's limit for pages is not one for images
	srv.Start()
	t.Cleanup(srv.Close)
	from := srv.URL + "/images/" + imageName()
	for _, tc := range []struct {
		method, url, have string
		code              int
		body              string
	}{
		{http.MethodGet, from, "", http.StatusOK, imageContent},
		{http.MethodGet, from, "bytes=3-", http.StatusPartialContent, imageContent[3:]},
	} {
		request, err := http.NewRequestWithContext(t.Context(), tc.method, tc.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if tc.have != "" {
			request.Header.Set("Range", tc.have)
		}
		response, err := srv.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(response.Body)
		response.Body.Close()
		if err != nil || response.StatusCode != tc.code || string(body) != tc.body {
			t.Errorf("%s %s %s: %s %q, %v", tc.method, tc.url, tc.have, response.Status, body, err)
		}
	}
	instructor.printForEngines(site{srv.Listener.Addr(), "sha256//key"}, image)
	contains(t, out.String(), "curl -f -k --pinnedpubkey 'sha256//key' -C - -O https"+strings.TrimPrefix(from, "http")+
		"\n  make node-image FILE="+imageName()+" SHA256="+imageDigest()+"\n")
	if given := instructor.roomImage(srv.URL); given == nil || given.URL != from || given.SHA256 != imageDigest() {
		t.Errorf("handouts say %+v", given)
	}
}
