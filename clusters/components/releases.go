package components

import (
	"archive/tar"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// Releases are the servers from which programs are taken as their makers have built them. Each file is compared with the
// SHA-256 sum that stands beside it there. Only programs for Linux are taken.
type Releases struct {
	// Kubernetes has the layout of https://dl.k8s.io/release, and Etcd that of the project's releases on GitHub.
	Kubernetes, Etcd string
}

// Upstream are the servers of the two projects.
func Upstream() *Releases {
	return &Releases{Kubernetes: "https://dl.k8s.io/release", Etcd: "https://github.com/etcd-io/etcd/releases/download"}
}

const (
	// connectTimeout is how long a server may take to be there: without one, the programs are compiled.
	connectTimeout = 3 * time.Second
	// answerTimeout is how long it may take to answer a request.
	answerTimeout = 15 * time.Second
	// stallTimeout is how long nothing may come of a file that has begun.
	stallTimeout = 30 * time.Second
	// sumLimit is how much is read of a file with sums, and programLimit of one with a program.
	sumLimit, programLimit = 64 << 10, 1 << 30
)

// file is what a program is published as.
type file struct {
	url, sums string // of the file, and of its sum or a list of sums
	// member is the name of the program in a .tar.gz, "" where the file is the program.
	member string
}

// published says whether the makers of a module publish its programs.
func (m module) published() bool { return m.dir == "kubernetes" || m.dir == "etcd" }

// file is what a program of a [module.published] module is published as.
func (r *Releases) file(m module, name, version string) file {
	if m.dir == "kubernetes" {
		url := fmt.Sprintf("%s/%s/bin/%s/%s/%s", r.Kubernetes, version, nodeOS, arch, name)
		return file{url: url, sums: url + ".sha256"}
	}
	folder := fmt.Sprintf("etcd-%s-%s-%s", version, nodeOS, arch)
	return file{url: fmt.Sprintf("%s/%s/%s.tar.gz", r.Etcd, version, folder), sums: fmt.Sprintf("%s/%s/SHA256SUMS", r.Etcd, version), member: folder + "/" + name}
}

// download takes the named programs of a module from the releases, all of them or none.
func (b *Builder) download(ctx context.Context, m module, names []string, dir string) error {
	tmp, err := temporary(dir)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	for _, name := range names {
		version, err := m.version(b.Root, m.packages[name])
		if err != nil {
			return err
		}
		f := b.Releases.file(m, name, version)
		b.log(fmt.Sprintf("downloading %s %s from %s", name, version, f.url))
		if err := b.fetch(ctx, f, filepath.Join(tmp, name)); err != nil {
			return fmt.Errorf("download %s: %w", f.url, err)
		}
	}
	return keep(tmp, dir, names, func(name string) string { return name })
}

// fetch writes the program of a file to a path, once the file has its published sum.
func (b *Builder) fetch(ctx context.Context, f file, to string) error {
	sums, err := get(ctx, f.sums, nil)
	if err != nil {
		return err
	}
	defer sums.Close()
	text, err := io.ReadAll(io.LimitReader(sums, sumLimit))
	if err != nil {
		return fmt.Errorf("read %s: %w", f.sums, err)
	}
	want, err := sumOf(string(text), path.Base(f.url))
	if err != nil {
		return fmt.Errorf("read %s: %w", f.sums, err)
	}
	archive := to + ".download"
	got, err := b.save(ctx, f.url, archive)
	if err != nil {
		return err
	}
	if got != want {
		return fmt.Errorf("it has the SHA-256 sum %s, and %s says %s", got, f.sums, want)
	}
	if f.member != "" {
		return unpack(archive, f.member, to)
	}
	if err := os.Rename(archive, to); err != nil {
		return err
	}
	return os.Chmod(to, 0o755)
}

// sumOf finds the sum of a file in a list of sums, or in a text that is nothing but one.
func sumOf(text, name string) (string, error) {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) == 2 && path.Base(strings.TrimPrefix(fields[1], "*")) == name || len(fields) == 1 {
			if sum, err := hex.DecodeString(fields[0]); err == nil && len(sum) == sha256.Size {
				return strings.ToLower(fields[0]), nil
			}
		}
	}
	return "", fmt.Errorf("there is no SHA-256 sum of %s", name)
}

// save writes what is at a URL to a file, and returns its sum.
func (b *Builder) save(ctx context.Context, url, to string) (sum string, err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var size int64
	body, err := get(ctx, url, &size)
	if err != nil {
		return "", err
	}
	defer body.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	hash := sha256.New()
	p := &pace{size: size, log: b.log, name: path.Base(url), begun: time.Now(), stalled: time.AfterFunc(stallTimeout, cancel)}
	defer p.stalled.Stop()
	if _, err := io.Copy(io.MultiWriter(out, hash, p), io.LimitReader(body, programLimit)); err != nil {
		return "", fmt.Errorf("download %s: %w", url, err)
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}

// pace says now and then how far a download is, and ends one from which nothing comes.
type pace struct {
	name        string
	size, done  int64 // in bytes; a size of -1 is not known
	begun, told time.Time
	log         func(string)
	stalled     *time.Timer
}

func (p *pace) Write(data []byte) (int, error) {
	p.done += int64(len(data))
	p.stalled.Reset(stallTimeout)
	now := time.Now()
	if p.told.IsZero() {
		p.told = p.begun
	}
	if now.Sub(p.told) >= reportPeriod && p.size > 0 {
		p.told = now
		left := time.Duration(float64(now.Sub(p.begun)) * float64(p.size-p.done) / float64(p.done))
		p.log(fmt.Sprintf("downloading %s: %d of %d MB, about %s to go", p.name, p.done>>20, p.size>>20, left.Round(time.Second)))
	}
	return len(data), nil
}

// client follows redirections, but never from https to anything else.
var client = &http.Client{
	Transport: &http.Transport{
		Proxy:                 http.ProxyFromEnvironment,
		DialContext:           (&net.Dialer{Timeout: connectTimeout}).DialContext,
		TLSHandshakeTimeout:   connectTimeout,
		ResponseHeaderTimeout: answerTimeout,
	},
	CheckRedirect: func(req *http.Request, via []*http.Request) error {
		if len(via) > 5 || via[0].URL.Scheme == "https" && req.URL.Scheme != "https" {
			return fmt.Errorf("it is redirected to %s", req.URL)
		}
		return nil
	},
}

// get opens what is at a URL; size, if it is wanted, is -1 where the server does not say it.
func get(ctx context.Context, url string, size *int64) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		return nil, fmt.Errorf("%s answers %s", url, resp.Status)
	}
	if size != nil {
		*size = resp.ContentLength
	}
	return resp.Body, nil
}

// unpack writes one program of a .tar.gz to a path.
func unpack(archive, member, to string) error {
	in, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer in.Close()
	unzipped, err := gzip.NewReader(in)
	if err != nil {
		return fmt.Errorf("unpack %s: %w", member, err)
	}
	for files := tar.NewReader(unzipped); ; {
		header, err := files.Next()
		if err != nil {
			return fmt.Errorf("unpack %s: %w", member, err)
		}
		if path.Clean(header.Name) != member || header.Typeflag != tar.TypeReg {
			continue
		}
		out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
		if err != nil {
			return err
		}
		_, err = io.Copy(out, io.LimitReader(files, programLimit))
		return errors.Join(err, out.Close(), os.Remove(archive))
	}
}
