package share

import (
	"compress/gzip"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/google/renameio/v2/maybe"

	"github.com/example/operator-lab/labs/internal/roomclient"
)

// Folder is what a classroom offers.
type Folder struct {
	// Dir has the files, and Modules is a module cache.
	Dir, Modules string
}

const (
	// CourseFile has the course as it is committed.
	CourseFile = "course.tar.gz"
	// ImageFile has the node image, as a container engine loads it.
	ImageFile = "node-image.tar.gz"

	indexFile = "index.json"
)

var (
	platform = runtime.GOOS + "-" + runtime.GOARCH
	goFile   = "go-" + platform + ".tar.gz"
)

// PackCourse packs the files that are committed in the checkout at root.
func (f Folder) PackCourse(ctx context.Context, root string) error {
	return f.write(CourseFile, func(w io.Writer) error {
		return pipe(exec.CommandContext(ctx, "git", "-C", root, "archive", "--format=tar.gz", "--prefix=operator-lab/", "HEAD"), w)
	})
}

// PackGo packs the Go of the checkout at root.
func (f Folder) PackGo(ctx context.Context, root string) error {
	goRoot, err := goCommand(ctx, root, nil, "env", "GOROOT")
	if err != nil {
		return err
	}
	return f.PackFiles(ctx, goFile, strings.TrimSpace(string(goRoot)), ".")
}

// PackImage packs an image of the container engine.
func (f Folder) PackImage(ctx context.Context, engine, image string) error {
	return f.write(ImageFile, func(w io.Writer) error {
		z := gzip.NewWriter(w)
		return errors.Join(pipe(exec.CommandContext(ctx, engine, "save", image), z), z.Close())
	})
}

// PackFiles packs files and folders below root.
func (f Folder) PackFiles(ctx context.Context, name, root string, paths ...string) error {
	return f.write(name, func(w io.Writer) error {
		return pipe(exec.CommandContext(ctx, "tar", append([]string{"-C", root, "-czf", "-"}, paths...)...), w)
	})
}

func pipe(cmd *exec.Cmd, w io.Writer) error {
	var stderr strings.Builder
	cmd.Stdout, cmd.Stderr = w, &stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return nil
}

// write writes a file in one step, and its sum into the index.
func (f Folder) write(name string, content func(io.Writer) error) error {
	if err := os.MkdirAll(f.Dir, 0o755); err != nil {
		return err
	}
	file, err := os.CreateTemp(f.Dir, ".part-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }()
	sum := sha256.New()
	err = content(io.MultiWriter(file, sum))
	size, _ := file.Seek(0, io.SeekCurrent)
	if err := errors.Join(err, file.Chmod(0o644), file.Close()); err != nil {
		return fmt.Errorf("pack %s: %w", name, err)
	}
	if err := os.Rename(file.Name(), filepath.Join(f.Dir, name)); err != nil {
		return err
	}
	index, err := f.Files()
	if err != nil {
		return err
	}
	index[name] = roomclient.Download{Name: name, SHA256: hex.EncodeToString(sum.Sum(nil)), Size: size}
	data, err := json.MarshalIndent(index, "", " ")
	if err != nil {
		return err
	}
	return maybe.WriteFile(filepath.Join(f.Dir, indexFile), data, 0o644)
}

// Files are those of the folder, by their names.
func (f Folder) Files() (map[string]roomclient.Download, error) {
	index := map[string]roomclient.Download{}
	data, err := os.ReadFile(filepath.Join(f.Dir, indexFile))
	if err == nil {
		err = json.Unmarshal(data, &index)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return index, nil
}

// Site is where a folder is served.
type Site struct {
	Folder Folder
	// URL is its address, such as http://192.168.1.5:7778.
	URL string
	// Room and Key are what learners type to join.
	Room, Key string
}

// Offer is what a learner's machine takes from the site.
func (s Site) Offer() (answer roomclient.JoinAnswer, err error) {
	files, err := s.Folder.Files()
	for _, d := range files {
		d.URL = s.URL + "/files/" + d.Name
		answer.Downloads = append(answer.Downloads, d)
	}
	if _, err := os.Stat(s.Folder.proxy()); err == nil {
		answer.Modules = s.URL + "/modules"
	}
	return answer, err
}

// proxy is the part of a module cache that is a GOPROXY (https://go.dev/ref/mod#module-cache).
func (f Folder) proxy() string { return filepath.Join(f.Modules, "cache", "download") }

//go:embed join.html
var joinPage embed.FS

var page = template.Must(template.ParseFS(joinPage, "join.html"))

// Handler serves the folder and a page that says how to join. None of it is a secret, and learners check the sums of what they take.
func (s Site) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /modules/", http.StripPrefix("/modules/", http.FileServer(http.Dir(s.Folder.proxy()))))
	mux.Handle("GET /files/", http.StripPrefix("/files/", http.FileServer(http.Dir(s.Folder.Dir))))
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		files, err := s.Folder.Files()
		if err == nil {
			err = page.Execute(w, map[string]any{
				"URL": s.URL, "Room": s.Room, "Key": s.Key, "Course": files[CourseFile], "Go": files[goFile],
				"Image": files[ImageFile], "ControlPlane": files[roomclient.ControlPlaneFile()], "Platform": platform,
			})
		}
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
	})
	return mux
}
