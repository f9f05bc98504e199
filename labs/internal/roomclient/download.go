package roomclient

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"runtime"
)

// ControlPlaneFile is the name of a download: the programs of the embedded control plane, at their paths below the cache of verdicts.
func ControlPlaneFile() string {
	return "control-plane-" + runtime.GOOS + "-" + runtime.GOARCH + ".tar.gz"
}

// Unpack downloads a gzipped tar file, checks its sum, and unpacks it into dir, which may exist.
func (d Download) Unpack(ctx context.Context, dir string) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("get %s: %w", d.URL, err)
		}
	}()
	file, err := os.CreateTemp("", "lab-download-")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(file.Name()) }()
	if err := errors.Join(d.fetch(ctx, file), file.Close(), os.MkdirAll(dir, 0o755)); err != nil {
		return err
	}
	if out, err := exec.CommandContext(ctx, "tar", "-C", dir, "-xzf", file.Name()).CombinedOutput(); err != nil {
		return fmt.Errorf("unpack: %w: %s", err, out)
	}
	return nil
}

// fetch downloads the file, and checks its sum.
func (d Download) fetch(ctx context.Context, to io.Writer) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, d.URL, http.NoBody)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	sum := sha256.New()
	_, err = io.Copy(io.MultiWriter(to, sum), io.LimitReader(resp.Body, d.Size))
	if err == nil && hex.EncodeToString(sum.Sum(nil)) != d.SHA256 {
		err = errors.New("it is another file than your classroom offers")
	}
	return err
}
