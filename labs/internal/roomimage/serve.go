// Package roomimage brings the node image from the instructor's machine to the container engines of learners, so that
// nobody pulls half a gigabyte through the room's line to the internet: an archive that is served, and fetched again.
package roomimage

import (
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/labs/internal/transfers"
)

const (
	// atOnce is how many archives are sent at once, and each how many of them to one address. One fills a Wi-Fi.
	atOnce, each = 4, 1
)

// Server sends one archive to everybody who asks.
type Server struct {
	archive nodeimage.Archive
	turns   *transfers.Transfers
}

// NewServer serves the archive.
func NewServer(a nodeimage.Archive) *Server {
	return &Server{archive: a, turns: transfers.New(atOnce, each)}
}

// ServeHTTP answers /<name of the archive>, and a range of it too. [http.StripPrefix] puts it below another path.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", "GET, HEAD")
		http.Error(w, "Images are read only.", http.StatusMethodNotAllowed)
		return
	}
	switch strings.TrimPrefix(r.URL.Path, "/") {
	case s.archive.Name():
		s.send(w, r)
	default:
		http.Error(w, "There is no such image in this room; "+s.archive.Name()+" is here.", http.StatusNotFound)
	}
}

// send sends the archive when it is its turn.
func (s *Server) send(w http.ResponseWriter, r *http.Request) {
	done, err := s.turns.Begin(w, r)
	if err != nil {
		return // who asked has gone
	}
	defer done()
	f, err := os.Open(s.archive.Path)
	if err != nil {
		http.Error(w, "The image is gone from the instructor's machine; make classroom-image packs it again.", http.StatusNotFound)
		return
	}
	defer f.Close()
	transfers.Allow(w, s.archive.Size)
	h := w.Header()
	h.Set("Content-Type", "application/gzip")
	h.Set("Cache-Control", "public, max-age=31536000, immutable") // its name has the image's id
	h.Set("ETag", `"`+s.archive.SHA256+`"`)
	http.ServeContent(w, r, "", time.Time{}, f)
}
