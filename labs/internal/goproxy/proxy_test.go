package goproxy_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/mod/module"

	"github.com/example/operator-lab/labs/internal/goproxy"
	"github.com/example/operator-lab/labs/internal/goproxy/goproxytest"
)

func version(path, v string) module.Version { return module.Version{Path: path, Version: v} }

// serve is a proxy on a cache.
func serve(t *testing.T, c goproxytest.Cache, o goproxy.Options) *goproxy.Proxy {
	t.Helper()
	p, err := goproxy.New(string(c), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = p.Close() })
	return p
}

// ask asks for a path exactly as it is written, which no client would.
func ask(p http.Handler, method, path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, "/", nil)
	r.URL.Path = path
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	p.ServeHTTP(w, r)
	return w
}

// room is a cache with what a cache can have.
func room(t *testing.T) goproxytest.Cache {
	t.Helper()
	c := goproxytest.New(t)
	for _, v := range []string{
		"v1.0.0", "v1.10.0", "v1.9.0", "v2.0.0-beta.1+incompatible", "v1.10.1-0.20260101000000-abcdefabcdef",
	} {
		c.Add(t, version("example.com/some/lib", v), map[string]string{"lib.go": "package lib // " + v + "\n"})
	}
	c.Add(t, version("github.com/Azure/Go", "v1.0.0-RC1"), map[string]string{"a.go": "package a\n"})
	c.Add(t, version("example.com/commits", "v0.0.0-20250101000000-aaaaaaaaaaaa"), map[string]string{})
	c.Add(t, version("example.com/commits", "v0.0.0-20260101000000-bbbbbbbbbbbb"), map[string]string{})
	c.Add(t, version("corp.example.com/secret", "v1.0.0"), map[string]string{})
	return c
}

func TestModulesAreServedByTheProtocol(t *testing.T) {
	c := room(t)
	// Only the go.mod of this one was ever needed.
	goproxytest.Write(t, c.Path(t, version("example.com/graph", "v1.0.0"), ".mod"), "module example.com/graph\n")
	goproxytest.Write(t, c.Path(t, version("example.com/graph", "v1.0.0"), ".info"), `{"Version":"v1.0.0"}`)
	// Not everything that looks like a version is one.
	goproxytest.Write(t, c.Path(t, version("example.com/some/lib", "main"), ".mod"), "module example.com/some/lib\n")
	c.Add(t, version("example.com/soon", "v1.0.0-rc.1"), map[string]string{})
	c.Add(t, version("example.com/soon", "v1.0.1-0.20260101000000-abcdefabcdef"), map[string]string{})
	p := serve(t, c, goproxy.Options{Private: "corp.example.com"})
	const ok, gone = http.StatusOK, http.StatusNotFound
	for _, tc := range []struct {
		path string
		code int
		body string
	}{
		{"/example.com/some/lib/@v/list", ok, "v1.0.0\nv1.9.0\nv1.10.0\nv2.0.0-beta.1+incompatible\n"},
		{"/example.com/some/lib/@latest", ok, `{"Version":"v1.10.0"}`},
		{"/example.com/some/lib/@v/v1.9.0.info", ok, `{"Version":"v1.9.0"}`},
		{"/example.com/some/lib/@v/v1.9.0.mod", ok, "module example.com/some/lib\n"},
		{"/example.com/some/lib/@v/v2.0.0-beta.1+incompatible.info", ok, `{"Version":"v2.0.0-beta.1+incompatible"}`},
		{"/example.com/soon/@latest", ok, `{"Version":"v1.0.0-rc.1"}`},
		{"/example.com/commits/@v/list", ok, ""},
		{"/example.com/commits/@latest", ok, `{"Version":"v0.0.0-20260101000000-bbbbbbbbbbbb"}`},
		{"/github.com/!azure/!go/@v/v1.0.0-!r!c1.info", ok, `{"Version":"v1.0.0-RC1"}`},
		{"/example.com/graph/@v/v1.0.0.mod", ok, "module example.com/graph\n"},

		{"/example.com/graph/@v/v1.0.0.info", gone, ""},
		{"/example.com/graph/@v/v1.0.0.zip", gone, ""},
		{"/example.com/graph/@v/list", gone, ""},
		{"/example.com/graph/@latest", gone, ""},
		{"/github.com/Azure/Go/@v/v1.0.0-!r!c1.info", gone, ""},
		{"/github.com/!azure/!go/@v/v1.0.0-RC1.info", gone, ""},
		{"/example.com/none/@v/list", gone, ""},
		{"/example.com/none/@latest", gone, ""},
		{"/example.com/some/lib/@v/v1.9.1.zip", gone, ""},
		{"/example.com/some/lib/@v/v1.9.info", gone, ""},
		{"/example.com/some/lib/@v/main.mod", gone, ""},
		{"/example.com/some/lib/@v/v1.9.0.ziphash", gone, ""},
		{"/example.com/some/lib/@v/v1.9.0.lock", gone, ""},
		{"/example.com/some/lib/@v/v1.9.0", gone, ""},
		{"/example.com/some/lib/@v/", gone, ""},
		{"/example.com/some/lib/@v", gone, ""},
		{"/example.com/some/lib/", gone, ""},
		{"/", gone, ""},
		{"", gone, ""},
		{"/corp.example.com/secret/@v/list", gone, ""},
		{"/corp.example.com/secret/@v/v1.0.0.zip", gone, ""},
		{"/corp.example.com/secret/@v/v1.0.0.mod", gone, ""},
		{"/corp.example.com/secret/@latest", gone, ""},
		{"/sumdb/sum.golang.org/supported", gone, ""},
	} {
		got := ask(p, http.MethodGet, tc.path)
		if got.Code != tc.code || tc.code == ok && got.Body.String() != tc.body {
			t.Errorf("GET %q: %d %q, want %d %q", tc.path, got.Code, got.Body, tc.code, tc.body)
		}
		if got.Code != gone {
			continue
		}
		if got.Header().Get("Cache-Control") != "no-store" || strings.Contains(got.Body.String(), string(c)) {
			t.Errorf("GET %q: what is not there may come, and where: %v %q", tc.path, got.Header(), got.Body)
		}
	}
}

func TestAZipIsSentWholeOrInPartsAndKeptForever(t *testing.T) {
	c := room(t)
	p := serve(t, c, goproxy.Options{})
	zip, err := os.ReadFile(c.Path(t, version("example.com/some/lib", "v1.9.0"), ".zip"))
	if err != nil {
		t.Fatal(err)
	}
	const path = "/example.com/some/lib/@v/v1.9.0.zip"
	whole := ask(p, http.MethodGet, path)
	if whole.Code != http.StatusOK || whole.Body.String() != string(zip) ||
		whole.Header().Get("Content-Type") != "application/zip" {
		t.Errorf("%d, %d bytes, %v", whole.Code, whole.Body.Len(), whole.Header())
	}
	if got := whole.Header().Get("Cache-Control"); !strings.Contains(got, "immutable") {
		t.Errorf("Cache-Control: %s", got)
	}
	part := ask(p, http.MethodGet, path, "Range", "bytes=10-")
	if part.Code != http.StatusPartialContent || part.Body.String() != string(zip[10:]) {
		t.Errorf("the rest of a zip: %d, %d bytes", part.Code, part.Body.Len())
	}
	head := ask(p, http.MethodHead, path)
	if head.Code != http.StatusOK || head.Body.Len() > 0 || head.Header().Get("Content-Length") != fmt.Sprint(len(zip)) {
		t.Errorf("HEAD: %d %v", head.Code, head.Header())
	}
	for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodOptions, "FETCH"} {
		if got := ask(p, method, path); got.Code != http.StatusMethodNotAllowed || got.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("%s: %d", method, got.Code)
		}
	}
	list := ask(p, http.MethodGet, "/example.com/some/lib/@v/list")
	if got := list.Header().Get("Cache-Control"); strings.Contains(got, "immutable") {
		t.Errorf("a list that grows is kept: %s", got)
	}
}

func TestOnlyWhatIsCompleteIsServed(t *testing.T) {
	m := version("example.com/some/lib", "v1.9.0")
	for name, damage := range map[string]func(c goproxytest.Cache){
		"no hash":      func(c goproxytest.Cache) { _ = os.Remove(c.Path(t, m, ".ziphash")) },
		"empty hash":   func(c goproxytest.Cache) { goproxytest.Write(t, c.Path(t, m, ".ziphash"), "") },
		"strange hash": func(c goproxytest.Cache) { goproxytest.Write(t, c.Path(t, m, ".ziphash"), "h2:abc") },
		"no zip":       func(c goproxytest.Cache) { _ = os.Remove(c.Path(t, m, ".zip")) },
		"empty zip":    func(c goproxytest.Cache) { _ = os.Truncate(c.Path(t, m, ".zip"), 0) },
		"no go.mod":    func(c goproxytest.Cache) { _ = os.Remove(c.Path(t, m, ".mod")) },
		"no info":      func(c goproxytest.Cache) { _ = os.Remove(c.Path(t, m, ".info")) },
		"under way": func(c goproxytest.Cache) {
			_ = os.Rename(c.Path(t, m, ".zip"), c.Path(t, m, ".zip123.tmp"))
		},
	} {
		c := room(t)
		damage(c)
		p := serve(t, c, goproxy.Options{})
		for _, end := range []string{".zip", ".info"} {
			want := http.StatusNotFound
			if name == "no info" && end == ".zip" {
				want = http.StatusOK // whoever compiles it has chosen it already
			}
			if got := ask(p, http.MethodGet, "/example.com/some/lib/@v/v1.9.0"+end); got.Code != want {
				t.Errorf("%s: %s gives %d", name, end, got.Code)
			}
		}
		if got := ask(p, http.MethodGet, "/example.com/some/lib/@v/list").Body.String(); strings.Contains(got, "v1.9.0") {
			t.Errorf("%s: it is listed:\n%s", name, got)
		}
		if got := ask(p, http.MethodGet, "/example.com/some/lib/@v/v1.9.0.zip123.tmp"); got.Code != http.StatusNotFound {
			t.Errorf("%s: what is under way is served", name)
		}
	}
}

func TestNoPathLeadsOutOfTheCache(t *testing.T) {
	c := room(t)
	const secret = "a secret of the instructor"
	outside := t.TempDir()
	goproxytest.Write(t, filepath.Join(outside, "@v", "v1.0.0.mod"), secret)
	goproxytest.Write(t, filepath.Join(filepath.Dir(string(c)), "@v", "v1.0.0.mod"), secret)
	goproxytest.Write(t, filepath.Join(string(c), "lock"), secret)
	goproxytest.Write(t, filepath.Join(string(c), "@v", "v1.0.0.mod"), secret)
	if err := os.Symlink(outside, filepath.Join(string(c), "example.com", "linked")); err != nil {
		t.Fatal(err)
	}
	linked := c.Path(t, version("example.com/files", "v1.0.0"), ".mod")
	goproxytest.Write(t, filepath.Join(filepath.Dir(linked), "list"), "")
	if err := os.Symlink(filepath.Join(outside, "@v", "v1.0.0.mod"), linked); err != nil {
		t.Fatal(err)
	}
	told := 0
	p := serve(t, c, goproxy.Options{Log: func(string) { told++ }})
	for _, path := range []string{
		"/example.com/linked/@v/v1.0.0.mod", "/example.com/linked/@v/list", "/example.com/files/@v/v1.0.0.mod",
	} {
		got := ask(p, http.MethodGet, path)
		if got.Code != http.StatusNotFound || strings.Contains(got.Body.String(), secret) {
			t.Errorf("GET %q: %d %q", path, got.Code, got.Body)
		}
	}
	if told != 3 {
		t.Errorf("links that lead out are worth a line each, and there were %d", told)
	}
	for _, path := range []string{
		"/../@v/v1.0.0.mod", "/example.com/../../@v/v1.0.0.mod", "/example.com/some/../../../@v/v1.0.0.mod",
		"//@v/v1.0.0.mod", "/@v/v1.0.0.mod", "/./@v/v1.0.0.mod", "/lock", "/sumdb/../lock", "/C:/@v/v1.0.0.mod",
		"/" + outside + "/@v/v1.0.0.mod", outside + "/@v/v1.0.0.mod",
		"/example.com/some/lib/@v/../../../lock", "/example.com/some/lib/@v/../list",
		"/example.com/some/lib/@v/v1.9.0/../v1.9.0.mod", "/example.com/some/lib/@v/@v/v1.9.0.mod",
		"/example.com/some/lib/@v/v1.9.0.mod/", "/example.com/some/lib/@v/.mod", "/example.com/some//lib/@v/v1.9.0.mod",
		`/example.com\..\..\@v/v1.0.0.mod`, `/example.com/some/lib/@v/..\..\v1.0.0.mod`, `/..\@v/v1.0.0.mod`,
		"/example.com/some/lib\x00/@v/v1.9.0.mod", "/example.com/some/lib/@v/v1.9.0\x00.mod",
		"/example.com/some/lib/@v/v1.9.0.mod\x00",
		"/example.com/!../@v/v1.0.0.mod", "/example.com/!!a/@v/list", "/example.com/a!/@v/list",
		"/example.com/ＡＢ/@v/v1.0.0.mod",
	} {
		got := ask(p, http.MethodGet, path)
		if got.Code != http.StatusNotFound || strings.Contains(got.Body.String(), secret) {
			t.Errorf("GET %q: %d %q", path, got.Code, got.Body)
		}
	}
}

// slow is a client that takes nothing until it is let.
type slow struct {
	*httptest.ResponseRecorder
	busy *atomic.Int32
	let  chan struct{}
}

func (s slow) Write(p []byte) (int, error) {
	s.busy.Add(1)
	<-s.let
	s.busy.Add(-1)
	return s.ResponseRecorder.Write(p)
}

func TestTransfersWaitForTheirTurn(t *testing.T) {
	c := room(t)
	synctest.Test(t, func(t *testing.T) {
		p := serve(t, c, goproxy.Options{Transfers: 5, TransfersEach: 2})
		var busy, done atomic.Int32
		let := make(chan struct{})
		get := func(client, path string) {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil)
			r.RemoteAddr = client + ":1234"
			w := slow{httptest.NewRecorder(), &busy, let}
			p.ServeHTTP(w, r)
			if w.Code == http.StatusOK {
				done.Add(1)
			}
		}
		const zip = "/example.com/some/lib/@v/v1.9.0.zip"
		for range 10 {
			go get("192.0.2.1", zip)
		}
		synctest.Wait()
		if n := busy.Load(); n != 2 {
			t.Errorf("one learner has %d transfers, want 2", n)
		}
		for i := range 10 {
			go get(fmt.Sprintf("192.0.2.%d", i+2), zip)
		}
		synctest.Wait()
		if n := busy.Load(); n != 5 {
			t.Errorf("%d transfers at once, want 5", n)
		}
		go get("192.0.2.1", "/example.com/some/lib/@v/v1.9.0.mod")
		synctest.Wait()
		if n := busy.Load(); n != 6 {
			t.Error("a go.mod waits for zips")
		}
		close(let)
		synctest.Wait()
		if n := done.Load(); n != 21 {
			t.Errorf("%d of 21 got what they asked for", n)
		}
	})
}

func TestWhoHasGoneWaitsNoMore(t *testing.T) {
	c := room(t)
	const zip = "/example.com/some/lib/@v/v1.9.0.zip"
	synctest.Test(t, func(t *testing.T) {
		p := serve(t, c, goproxy.Options{Transfers: 1, TransfersEach: 1})
		var busy atomic.Int32
		let := make(chan struct{})
		first := make(chan struct{})
		go func() {
			defer close(first)
			p.ServeHTTP(slow{httptest.NewRecorder(), &busy, let}, httptest.NewRequest(http.MethodGet, zip, nil))
		}()
		synctest.Wait()
		for _, client := range []string{"192.0.2.1:1", "192.0.2.99:1"} { // the same learner, and another
			r := httptest.NewRequest(http.MethodGet, zip, nil)
			r.RemoteAddr = client
			ctx, cancel := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				p.ServeHTTP(httptest.NewRecorder(), r.WithContext(ctx))
			}()
			synctest.Wait()
			cancel()
			<-ended // a deadlock fails the test
		}
		// Two more of one learner: who gives up at the second gate opens the first one for the other.
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan int, 2)
		for _, ctx := range []context.Context{ctx, t.Context()} {
			go func() {
				r := httptest.NewRequestWithContext(ctx, http.MethodGet, zip, nil)
				r.RemoteAddr = "192.0.2.99:1"
				w := httptest.NewRecorder()
				p.ServeHTTP(w, r)
				ended <- w.Body.Len()
			}()
			synctest.Wait()
		}
		cancel()
		if n := <-ended; n != 0 {
			t.Error("who has gone got something")
		}
		close(let)
		if n := <-ended; n == 0 {
			t.Error("who has stayed got nothing")
		}
		<-first
		if got := ask(p, http.MethodGet, zip); got.Code != http.StatusOK {
			t.Error("a turn got lost")
		}
	})
}

// The server's limit for pages is not one for zips.
func TestAZipHasItsOwnTime(t *testing.T) {
	c := room(t)
	srv := httptest.NewUnstartedServer(serve(t, c, goproxy.Options{}))
	srv.Config.WriteTimeout = time.Nanosecond
	srv.Start()
	defer srv.Close()
	get := func(end string) error {
		resp, err := srv.Client().Get(srv.URL + "/example.com/some/lib/@v/v1.9.0" + end)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		_, err = io.ReadAll(resp.Body)
		return err
	}
	if err := get(".mod"); err == nil {
		t.Fatal("the server has no limit, and the test shows nothing")
	}
	if err := get(".zip"); err != nil {
		t.Error(err)
	}
}
