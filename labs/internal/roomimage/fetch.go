package roomimage

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"
)

const (
	// stall is how long nothing may arrive of an archive that has begun to. Its turn it waits for as long as it takes.
	stall = 2 * time.Minute
	// tellEvery is how often it is told how much has arrived.
	tellEvery = 10 * time.Second
)

// ErrDigest says that what was fetched is not what the handout speaks of.
var ErrDigest = errors.New("it is not what the digest says")

// Fetch downloads an archive to file, unless it is there, and compares it with its SHA-256 digest in hexadecimal. What
// has arrived before an error stays in file.part, and the next call goes on from there. log is told how it goes.
func Fetch(ctx context.Context, url, digest, file string, log func(line string)) error {
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("fetch %s: %w", url, err)
	}
	if err := fetch(ctx, url, digest, file, log); err != nil {
		return errors.Join(ctx.Err(), fmt.Errorf("fetch %s: %w", url, err))
	}
	return nil
}

func fetch(ctx context.Context, url, digest, file string, log func(line string)) error {
	if same, err := matches(file, digest); err == nil && same {
		return nil
	}
	part := file + ".part"
	if err := download(ctx, url, part, log); err != nil {
		return err
	}
	same, err := matches(part, digest)
	if err != nil {
		return err
	}
	if !same {
		return errors.Join(ErrDigest, os.Remove(part)) // going on from there would never help
	}
	return os.Rename(part, file)
}

// matches says whether a file has that digest.
func matches(file, digest string) (bool, error) {
	f, err := os.Open(file)
	if err != nil {
		return false, err
	}
	defer f.Close()
	hash := sha256.New()
	if _, err := io.Copy(hash, f); err != nil {
		return false, err
	}
	return hex.EncodeToString(hash.Sum(nil)) == digest, nil
}

// download adds to part what is missing of it.
func download(ctx context.Context, url, part string, log func(line string)) (err error) {
	f, err := os.OpenFile(part, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	var t transfer
	t.have.Store(info.Size())
	defer t.follow(ctx, log)()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	response, err := ask(ctx, url, info.Size())
	if err != nil {
		return err
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusPartialContent:
	case http.StatusOK:
		if err := f.Truncate(0); err != nil {
			return err
		}
		t.have.Store(0)
	case http.StatusRequestedRangeNotSatisfiable:
		return nil // it is all there, or it is something else, which its digest will say
	default:
		return errors.New(response.Status)
	}
	t.all.Store(t.have.Load() + response.ContentLength)
	watchdog := time.AfterFunc(stall, func() { cancel(fmt.Errorf("nothing has arrived for %s", stall)) })
	defer watchdog.Stop()
	_, err = io.Copy(f, &reader{response.Body, func(n int) {
		watchdog.Reset(stall)
		t.have.Add(int64(n))
	}})
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// ask asks for what comes after the first bytes.
func ask(ctx context.Context, url string, have int64) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, err
	}
	if have > 0 {
		request.Header.Set("Range", fmt.Sprintf("bytes=%d-", have))
	}
	// The room is not behind anybody's proxy.
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DisableCompression: true}}
	return client.Do(request)
}

// reader tells of what it reads.
type reader struct {
	io.Reader
	tell func(n int)
}

func (r *reader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.tell(n)
	return n, err
}

// transfer is how far a download is, in bytes.
type transfer struct {
	have, all atomic.Int64 // all is 0 until the first byte comes
}

// follow tells how far it is, until stop is called.
func (t *transfer) follow(ctx context.Context, log func(line string)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ticker := time.NewTicker(tellEvery); ; {
			select {
			case <-ctx.Done():
				ticker.Stop()
				return
			case <-ticker.C:
				log(t.String())
			}
		}
	}()
	return func() {
		cancel()
		<-ended
	}
}

func (t *transfer) String() string {
	have, all := t.have.Load(), t.all.Load()
	if all == 0 {
		return "waiting for a turn: others in the room are being served"
	}
	return fmt.Sprintf("%d of %d MB have arrived", have/1_000_000, all/1_000_000)
}
