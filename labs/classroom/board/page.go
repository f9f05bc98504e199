package board

import (
	"bytes"
	"embed"
	"errors"
	"html/template"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/example/operator-lab/labs/classroom/progress"
	"github.com/example/operator-lab/labs/internal/verdict"
)

//go:embed assets templates
var files embed.FS

var pages = template.Must(template.New("").ParseFS(files, "templates/*.html"))

// policy lets a page load nothing but ours.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Page answers an instructor's browser, and is to be served on this machine alone.
func (b *Board) Page() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /assets/", http.FileServerFS(files))
	mux.HandleFunc("GET /{$}", b.show(func(w io.Writer, _ *http.Request, all []*progress.Learner) error {
		return pages.ExecuteTemplate(w, "board.html", b.view(all, time.Now()))
	}))
	mux.HandleFunc("GET /cell/{learner}/{lab}", b.show(b.cell))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isLocal(r.Host) { // a page elsewhere could have its own name lead here
			http.Error(w, "The board is at http://127.0.0.1, on this machine.", http.StatusForbidden)
			return
		}
		w.Header().Set("Content-Security-Policy", policy)
		w.Header().Set("Cache-Control", "no-cache")
		mux.ServeHTTP(w, r)
	})
}

func isLocal(hostPort string) bool {
	host, _, err := net.SplitHostPort(hostPort)
	if err != nil {
		host = hostPort
	}
	ip, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// show writes what is made of the learners.
func (b *Board) show(write func(io.Writer, *http.Request, []*progress.Learner) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var text bytes.Buffer
		err := b.Store.View(func(all []*progress.Learner) error { return write(&text, r, all) })
		switch {
		case errors.Is(err, fs.ErrNotExist):
			http.NotFound(w, r)
		case err != nil:
			b.fail(w, err)
		default:
			_, _ = w.Write(text.Bytes()) // who has gone does not get it
		}
	}
}

// cell shows the report of a learner's last attempt on a lab, or that there is none.
func (b *Board) cell(w io.Writer, r *http.Request, all []*progress.Learner) error {
	number, err := strconv.Atoi(r.PathValue("lab"))
	if err != nil {
		return fs.ErrNotExist
	}
	lab, err := b.Course.Lab(number)
	if err != nil {
		return fs.ErrNotExist
	}
	for _, l := range all {
		if l.Name != r.PathValue("learner") {
			continue
		}
		d := detailView{cell: newCell(l, number)}
		if last := l.Last(number); last != nil {
			result, err := b.Store.result(last.ID)
			if err != nil {
				return err
			}
			var report bytes.Buffer
			verdict.Print(&report, result, lab, b.Course.Of(lab).Hint)
			d.Report = report.String()
		}
		return pages.ExecuteTemplate(w, "detail.html", d)
	}
	return fs.ErrNotExist
}
