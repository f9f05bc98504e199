package server

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/example/operator-lab/labs/classroom/board/export"
	"github.com/example/operator-lab/labs/classroom/board/store"
)

const (
	// streamLimit is how many browsers follow the board at once.
	streamLimit = 32
	// heartbeat is how often a silent stream says that it is there, so that a browser notices a Wi-Fi that is
	// gone, and that its token is still good.
	heartbeat = 10 * time.Second
	// retry is how long a browser waits before it comes back, in milliseconds.
	retry = 2000
)

// board sends the page as it is now: a browser without scripts sees nothing later.
func (s *Server) board(w http.ResponseWriter, r *http.Request) {
	var buffer bytes.Buffer
	err := s.live.refresh(r.Context())
	if err == nil {
		err = s.live.board().Render(&buffer)
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	html(w, buffer.Bytes())
}

func html(w http.ResponseWriter, data []byte) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(data) // who has gone does not get it
}

// events streams what changes. A browser that comes back says what it had last.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		http.Error(w, "Too many browsers follow this board.", http.StatusServiceUnavailable)
		return
	}
	if err := s.live.refresh(r.Context()); err != nil {
		s.fail(w, r, err)
		return
	}
	after := r.Header.Get("Last-Event-ID")
	if after == "" {
		after = r.URL.Query().Get("after")
	}
	w.Header().Set("Content-Type", "text/event-stream")
	stream := &stream{w: w, control: http.NewResponseController(w)}
	_ = stream.control.SetReadDeadline(time.Time{}) // there is nothing more to read, for hours
	if stream.write(fmt.Sprintf("retry: %d\n\n", retry)) == nil {
		s.follow(r, stream, after)
	}
}

// follow writes to the stream until one side has enough.
func (s *Server) follow(r *http.Request, stream *stream, after string) {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	for {
		update, number, changed := s.live.since(after)
		if update != nil {
			data, err := json.Marshal(update)
			if err != nil {
				s.Log(err.Error())
				return
			}
			if stream.write(fmt.Sprintf("id: %s\ndata: %s\n\n", number, data)) != nil {
				return
			}
			after = number
		}
		select {
		case <-r.Context().Done():
			return
		case <-changed:
		case <-beat.C:
			if !s.valid(r.Context(), r) || stream.write(": still here\n\n") != nil {
				return
			}
		}
	}
}

// stream writes to a browser that may have gone to sleep.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

func (s *stream) write(text string) error {
	if err := s.control.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return err
	}
	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.control.Flush()
}

// cell shows what a cell opens: as a page, or as JSON for the page's own dialog.
func (s *Server) cell(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Vary", "Accept")
	learner, err1 := strconv.ParseInt(r.PathValue("learner"), 10, 64)
	lab, err2 := strconv.Atoi(r.PathValue("lab"))
	var id int64
	var err3 error
	if text := r.URL.Query().Get("result"); text != "" {
		id, err3 = strconv.ParseInt(text, 10, 64)
	}
	if errors.Join(err1, err2, err3) != nil {
		http.NotFound(w, r)
		return
	}
	detail, err := s.live.cell(r.Context(), learner, lab, id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		http.NotFound(w, r)
	case err != nil:
		s.fail(w, r, err)
	case strings.Contains(r.Header.Get("Accept"), "application/json"):
		Answer(w, http.StatusOK, detail)
	default:
		var buffer bytes.Buffer
		if err := detail.Render(&buffer); err != nil {
			s.fail(w, r, err)
			return
		}
		html(w, buffer.Bytes())
	}
}

// export downloads the board in one of the formats of package export.
func (s *Server) export(w http.ResponseWriter, r *http.Request) {
	format, err := export.ByName(r.PathValue("format"))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	records, err := export.Read(r.Context(), s.Store, s.Course, s.Rules, s.Now())
	var buffer bytes.Buffer
	if err == nil {
		err = format.Write(&buffer, records)
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", format.ContentType)
	w.Header().Set("Content-Disposition", `attachment; filename="board-`+s.Now().Format("20060102-1504")+"."+format.Extension+`"`)
	_, _ = w.Write(buffer.Bytes()) // who has gone does not get it
}
