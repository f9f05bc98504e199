// Package buildcache is a build cache for the Go command, as GOCACHEPROG wants it (go doc cmd/go/internal/cacheprog),
// that reads one folder and writes another. So a build that nobody trusts can use what was compiled before, and
// nothing that it makes reaches those who build after it.
//
// Both folders are laid out as GOCACHE is.
package buildcache

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Cache answers the Go command.
type Cache struct {
	// Base is only read. What is missing or damaged in it is not there.
	Base string
	// Own gets what is built.
	Own string
	// Keep puts what is found in Base into Own, too, so that Own alone will do the next time.
	Keep bool
}

// request and response are the messages of the protocol.
type (
	request struct {
		ID                 int64
		Command            string
		ActionID, OutputID []byte
		BodySize           int64
	}
	response struct {
		ID            int64
		Err           string     `json:",omitempty"`
		KnownCommands []string   `json:",omitempty"`
		Miss          bool       `json:",omitempty"`
		OutputID      []byte     `json:",omitempty"`
		Size          int64      `json:",omitempty"`
		Time          *time.Time `json:",omitempty"`
		DiskPath      string     `json:",omitempty"`
	}
)

// Serve answers requests until the Go command says that it is done, or is gone.
func (c Cache) Serve(in io.Reader, out io.Writer) error {
	answers := json.NewEncoder(out)
	if err := answers.Encode(response{KnownCommands: []string{"get", "put", "close"}}); err != nil {
		return fmt.Errorf("greet the Go command: %w", err)
	}
	requests := json.NewDecoder(bufio.NewReader(in))
	for {
		var r request
		if err := requests.Decode(&r); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read a request of the Go command: %w", err)
		}
		var body []byte
		if r.BodySize > 0 {
			if err := requests.Decode(&body); err != nil {
				return fmt.Errorf("read an object of the Go command: %w", err)
			}
		}
		answer := c.answer(r, body)
		answer.ID = r.ID
		if err := answers.Encode(answer); err != nil {
			return fmt.Errorf("answer the Go command: %w", err)
		}
		if r.Command == "close" {
			return nil
		}
	}
}

func (c Cache) answer(r request, body []byte) response {
	switch r.Command {
	case "get":
		return c.get(r.ActionID)
	case "put":
		path, err := c.put(r.ActionID, r.OutputID, body, time.Now())
		if err != nil {
			return response{Err: err.Error()}
		}
		return response{DiskPath: path}
	}
	return response{}
}

func (c Cache) get(action []byte) response {
	if e, ok := lookup(c.Own, action); ok {
		return e.response()
	}
	e, ok := lookup(c.Base, action)
	if !ok {
		return response{Miss: true}
	}
	if c.Keep {
		if err := c.keep(action, e); err != nil {
			return response{Err: err.Error()}
		}
	}
	return e.response()
}

// entry is an object in a cache.
type entry struct {
	output []byte
	size   int64
	time   time.Time
	path   string
}

func (e entry) response() response {
	return response{OutputID: e.output, Size: e.size, Time: &e.time, DiskPath: e.path}
}

// name is the path of a file in a cache: "a" says what an action made, "d" is what it made.
func name(dir string, id []byte, kind string) string {
	text := hex.EncodeToString(id)
	return filepath.Join(dir, text[:2], text+"-"+kind)
}

// lookup finds what an action made. A file that is not as long as it should be is not there.
func lookup(dir string, action []byte) (e entry, ok bool) {
	if len(action) == 0 {
		return e, false
	}
	line, err := os.ReadFile(name(dir, action, "a"))
	if err != nil {
		return e, false
	}
	fields := strings.Fields(string(line)) // v1, action, output, size, time in nanoseconds
	if len(fields) != 5 || fields[0] != "v1" || fields[1] != hex.EncodeToString(action) {
		return e, false
	}
	output, err1 := hex.DecodeString(fields[2])
	size, err2 := strconv.ParseInt(fields[3], 10, 64)
	made, err3 := strconv.ParseInt(fields[4], 10, 64)
	if errors.Join(err1, err2, err3) != nil || len(output) == 0 {
		return e, false
	}
	e = entry{output: output, size: size, time: time.Unix(0, made), path: name(dir, output, "d")}
	info, err := os.Stat(e.path)
	return e, err == nil && info.Mode().IsRegular() && info.Size() == size
}

// keep puts an object of another cache into this one, without a copy where the file systems allow that, and where
// others may read it.
func (c Cache) keep(action []byte, e entry) error {
	to := name(c.Own, e.output, "d")
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	info, err := os.Stat(e.path)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o004 != 0 {
		if err := os.Link(e.path, to); err == nil || errors.Is(err, fs.ErrExist) {
			return c.note(action, e)
		}
	}
	body, err := os.ReadFile(e.path)
	if err != nil {
		return err
	}
	_, err = c.put(action, e.output, body, e.time)
	return err
}

// put writes an object and what made it.
func (c Cache) put(action, output, body []byte, made time.Time) (path string, err error) {
	if len(action) == 0 || len(output) == 0 {
		return "", errors.New("an object without a name")
	}
	path = name(c.Own, output, "d")
	if err := write(path, body); err != nil {
		return "", err
	}
	return path, c.note(action, entry{output: output, size: int64(len(body)), time: made})
}

// note writes which object an action made.
func (c Cache) note(action []byte, e entry) error {
	return write(name(c.Own, action, "a"), fmt.Appendf(nil, "v1 %x %x %20d %20d\n", action, e.output, e.size, e.time.UnixNano()))
}

// write replaces a file in one step: several Go commands may use one cache.
func write(path string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	tmp, err := os.CreateTemp(filepath.Dir(path), "new-")
	if err != nil {
		return err
	}
	_, err = tmp.Write(data)
	if err := errors.Join(err, tmp.Chmod(0o644), tmp.Close()); err != nil {
		return errors.Join(err, os.Remove(tmp.Name()))
	}
	return os.Rename(tmp.Name(), path)
}
