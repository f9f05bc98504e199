// Package goproxy serves the module cache of this machine to other machines, by the protocol of Go's module
// proxies. It reads and never writes the cache, asks nobody else, and answers 404 for what the cache lacks.
//
// What it serves is what the Go command has finished and verified: a version counts only when its zip, the zip's hash and
// its go.mod are all there. See `go help goproxy` and https://go.dev/ref/mod#goproxy-protocol.
package goproxy

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"strings"
	"time"

	"golang.org/x/mod/module"

	"github.com/example/operator-lab/labs/internal/transfers"
)

const (
	// forever is for what never changes: a version of a module.
	forever = "public, max-age=31536000, immutable"
	// shortly is for what changes when the instructor downloads more.
	shortly = "public, max-age=60"
)

// Options are how a [Proxy] serves.
type Options struct {
	// Private are patterns of module paths that nobody is given, separated by commas, as in GOPRIVATE: the cache of
	// a person has modules of their work in it. "" hides none.
	Private string
	// Sums is the checksum database that is offered beside the modules; nil offers none, and the Go command then
	// asks the database itself.
	Sums *Sums
	// Transfers is how many zips are sent at once, and TransfersEach how many of them to one address; 0 is
	// [transfers.DefaultAll] and [transfers.DefaultEach]. Whoever comes then waits.
	Transfers, TransfersEach int
	// Log is told in one line each what is in the cache and cannot be read; nil drops it.
	Log func(line string)
}

// Proxy answers the requests of Go commands.
type Proxy struct {
	options Options
	cache   *cache
	zips    *transfers.Transfers
}

// New serves dir, the folder cache/download below GOMODCACHE. Close it after use.
func New(dir string, o Options) (*Proxy, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("serve modules: %w", err)
	}
	if o.Log == nil {
		o.Log = func(string) {}
	}
	p := &Proxy{options: o, cache: &cache{root}, zips: transfers.New(o.Transfers, o.TransfersEach)}
	if o.Sums != nil {
		o.Sums.serve(func(m module.Version) ([]byte, error) {
			if p.private(m.Path) {
				return nil, fs.ErrNotExist
			}
			return p.cache.record(m)
		})
	}
	return p, nil
}

// Close ends the use of the cache.
func (p *Proxy) Close() error { return p.cache.root.Close() }

// private says whether nobody is given the module.
func (p *Proxy) private(path string) bool {
	return module.MatchPrefixPatterns(p.options.Private, path)
}

// ServeHTTP answers paths such as /golang.org/x/mod/@v/v0.41.0.zip. [http.StripPrefix] puts it below another path.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "Modules are read only.", http.StatusMethodNotAllowed)
		return
	}
	if path, ok := strings.CutPrefix(r.URL.Path, "/sumdb/"); ok {
		p.serveSums(w, r, path)
		return
	}
	q, ok := parse(r.URL.Path)
	if !ok || p.private(q.module.Path) {
		notFound(w)
		return
	}
	if err := p.answer(w, r, q); err != nil {
		// Whatever is wrong with a file, another proxy of the learner's list may have it.
		if !errors.Is(err, fs.ErrNotExist) {
			p.options.Log(fmt.Sprintf("serve module %s: %v", q.module, err))
		}
		notFound(w)
	}
}

// notFound makes the Go command go on to the next proxy of its list; it shows the text when there is none.
func notFound(w http.ResponseWriter) {
	w.Header().Set("Cache-Control", "no-store")
	http.Error(w, "not in this room; its instructor may have another proxy", http.StatusNotFound)
}

// The ends of a request's path, which say what is asked for.
const (
	endList, endLatest              = "list", "@latest"
	extInfo, extMod, extZip, extSum = ".info", ".mod", ".zip", ".ziphash"
)

// query is what somebody asks for.
type query struct {
	module module.Version // without a version: about all of them
	what   string         // one of the ends
}

// parse reads a path. What it takes is written in exactly one way: no dots that lead elsewhere, no foreign separators,
// capitals as !x.
func parse(path string) (query, bool) {
	path, ok := strings.CutPrefix(path, "/")
	if !ok {
		return query{}, false
	}
	if escaped, ok := strings.CutSuffix(path, "/"+endLatest); ok {
		name, err := module.UnescapePath(escaped)
		return query{module.Version{Path: name}, endLatest}, err == nil
	}
	escaped, file, ok := strings.Cut(path, "/@v/")
	if !ok {
		return query{}, false
	}
	name, err := module.UnescapePath(escaped)
	if err != nil {
		return query{}, false
	}
	if file == endList {
		return query{module.Version{Path: name}, endList}, true
	}
	for _, ext := range []string{extInfo, extMod, extZip} {
		if escaped, ok := strings.CutSuffix(file, ext); ok {
			version, err := module.UnescapeVersion(escaped)
			return query{module.Version{Path: name, Version: version}, ext}, err == nil && canonical(version)
		}
	}
	return query{}, false
}

// canonical says whether the version names one state of a module for good, unlike a branch.
func canonical(version string) bool {
	return version != "" && module.CanonicalVersion(version) == version
}

// answer writes the answer. An error means that nothing was written.
func (p *Proxy) answer(w http.ResponseWriter, r *http.Request, q query) error {
	switch q.what {
	case endList:
		list, err := p.cache.list(q.module.Path)
		if err != nil {
			return err
		}
		head(w, "text/plain; charset=utf-8", shortly)
		http.ServeContent(w, r, "", time.Time{}, strings.NewReader(list))
	case endLatest:
		info, err := p.cache.latest(q.module.Path)
		if err != nil {
			return err
		}
		head(w, "application/json", shortly)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(info))
	case extZip:
		return p.sendZip(w, r, q.module)
	default:
		return p.send(w, r, q)
	}
	return nil
}

// send sends a small file.
func (p *Proxy) send(w http.ResponseWriter, r *http.Request, q query) error {
	if q.what == extInfo && !p.cache.complete(q.module) {
		return fs.ErrNotExist // else `go get` would choose a version whose zip is not here
	}
	f, info, err := p.cache.open(q.module, q.what)
	if err != nil {
		return err
	}
	defer f.Close()
	mime := "text/plain; charset=utf-8"
	if q.what == extInfo {
		mime = "application/json"
	}
	head(w, mime, forever)
	http.ServeContent(w, r, "", info.ModTime(), f)
	return nil
}

// sendZip sends a zip, or a range of it, when it is its turn.
func (p *Proxy) sendZip(w http.ResponseWriter, r *http.Request, m module.Version) error {
	if !p.cache.complete(m) {
		return fs.ErrNotExist
	}
	done, err := p.zips.Begin(w, r)
	if err != nil {
		return nil // who asked has gone
	}
	defer done()
	f, info, err := p.cache.open(m, extZip)
	if err != nil {
		return err
	}
	defer f.Close()
	transfers.Allow(w, info.Size())
	head(w, "application/zip", forever)
	http.ServeContent(w, r, "", info.ModTime(), f)
	return nil
}

func head(w http.ResponseWriter, mime, caching string) {
	w.Header().Set("Content-Type", mime)
	w.Header().Set("Cache-Control", caching)
}
