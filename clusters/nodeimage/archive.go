package nodeimage

import (
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/clusters/internal/lock"
)

// Archive is a node image in one file, as container engines load it: for machines that can neither pull one nor have the
// time to build one.
type Archive struct {
	// Path is where the file is. Its name has architecture and id of the image, as in node-amd64-0123456789ab.tar.gz.
	Path string
	// SHA256 is the digest of the file, in hexadecimal.
	SHA256 string
	// Size is in bytes.
	Size int64
}

// Name is that of the file.
func (a Archive) Name() string { return filepath.Base(a.Path) }

// archiveName is the form of an archive's name.
var archiveName = regexp.MustCompile(`^node-([a-z0-9]+)-([0-9a-f]{12})\.tar\.gz$`)

// digestEnd is what the name of the file with an archive's digest ends in. It is written before the archive gets its
// name, so that every archive has one.
const digestEnd = ".sha256"

// archiveDir is where archives are kept.
func archiveDir(cacheDir string) string { return filepath.Join(cacheDir, "images") }

// CheckArchiveName says what is wrong with an archive of that name on this machine.
func CheckArchiveName(name string) error {
	parts := archiveName.FindStringSubmatch(name)
	if parts == nil {
		return fmt.Errorf("%q is no archive of a node image: its name is like node-%s-0123456789ab.tar.gz", name, arch)
	}
	if parts[1] != arch {
		return fmt.Errorf("%s is for %s, and this machine is %s", name, parts[1], arch)
	}
	return nil
}

// Pack packs the node image that [Build] made, for the eyes of its owner alone, unless that was done before. It takes
// about a minute and half a gigabyte. Archives of other images are removed. Without an image of ours the error is a
// [*clusters.Problem]: an archive does not keep the digest by which kind's own image is known.
func Pack(ctx context.Context, engineName, cacheDir string, log func(line string)) (Archive, error) {
	ref, found, err := built(ctx, engineName)
	if err != nil {
		return Archive{}, err
	}
	if found == nil {
		return Archive{}, &clusters.Problem{What: "no node image was built here that could be packed", Fix: fixImage}
	}
	path := filepath.Join(archiveDir(cacheDir), found.archiveName())
	unlock, err := lock.Wait(ctx, filepath.Join(archiveDir(cacheDir), "node.lock"))
	if err != nil {
		return Archive{}, err
	}
	defer unlock()
	if a, ok := openArchive(path); ok {
		return a, nil
	}
	log("packing " + ref + ", about a minute; once for each image")
	err = replaceFile(path, func(tmp string) error { return pack(ctx, engine(engineName), ref, tmp, path+digestEnd) })
	if err != nil {
		return Archive{}, fmt.Errorf("pack node image: %w", err)
	}
	removeArchives(archiveDir(cacheDir), found.archiveName())
	a, ok := openArchive(path)
	if !ok {
		return Archive{}, fmt.Errorf("pack node image: %s is not there", path)
	}
	return a, nil
}

// built is the image that [Build] made, nil when there is none.
func built(ctx context.Context, engineName string) (ref string, found *inspection, err error) {
	for _, withOperand := range []bool{true, false} {
		ref = localRef(withOperand)
		if found, err = engine(engineName).inspect(ctx, ref); err != nil || found != nil {
			return ref, found, err
		}
	}
	return "", nil, nil
}

// archiveName is that of the image's archive.
func (i *inspection) archiveName() string {
	const short = 12
	id := strings.TrimPrefix(i.ID, "sha256:")
	return fmt.Sprintf("node-%s-%s.tar.gz", arch, id[:min(short, len(id))])
}

// pack writes the compressed image to file, and then its digest.
func pack(ctx context.Context, e engine, ref, file, digestFile string) error {
	out, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	digest := sha256.New()
	// Programs shrink to less than half; what more effort would save takes minutes.
	zipped, err := gzip.NewWriterLevel(io.MultiWriter(out, digest), gzip.BestSpeed)
	if err == nil {
		err = e.save(ctx, ref, zipped)
	}
	if err == nil {
		err = zipped.Close()
	}
	if err := errors.Join(err, out.Close()); err != nil {
		return err
	}
	return os.WriteFile(digestFile, []byte(hex.EncodeToString(digest.Sum(nil))+"\n"), 0o600)
}

// Packed finds what [Pack] has made, for whatever image that was. It asks no engine.
func Packed(cacheDir string) (Archive, bool) {
	names, _ := filepath.Glob(filepath.Join(archiveDir(cacheDir), "node-"+arch+"-*.tar.gz")) // the pattern is right
	for _, name := range names {
		if a, ok := openArchive(name); ok && archiveName.MatchString(a.Name()) {
			return a, true
		}
	}
	return Archive{}, false
}

// IsPacked says whether the image that [Build] made is the one that is packed. Without one of ours there is nothing to pack.
func IsPacked(ctx context.Context, engineName, cacheDir string) (bool, error) {
	_, found, err := built(ctx, engineName)
	if err != nil || found == nil {
		return found == nil, err
	}
	a, ok := Packed(cacheDir)
	return ok && a.Name() == found.archiveName(), nil
}

// openArchive describes a whole archive.
func openArchive(path string) (Archive, bool) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return Archive{}, false
	}
	digest, err := os.ReadFile(path + digestEnd)
	if err != nil {
		return Archive{}, false
	}
	return Archive{Path: path, SHA256: strings.TrimSpace(string(digest)), Size: info.Size()}, true
}

// removeArchives removes those of other images: half a gigabyte each.
func removeArchives(dir, keep string) {
	names, _ := filepath.Glob(filepath.Join(dir, "node-*.tar.gz"))
	for _, name := range names {
		if filepath.Base(name) != keep {
			_ = os.Remove(name)
			_ = os.Remove(name + digestEnd)
		}
	}
}

// Load gives the image of an archive to the engine. Whether it may be trusted was asked before.
func Load(ctx context.Context, engineName, path string) (Image, error) {
	if err := engine(engineName).load(ctx, path); err != nil {
		return Image{}, fmt.Errorf("load node image: %w", err)
	}
	ref, found, err := built(ctx, engineName)
	if err != nil {
		return Image{}, err
	}
	if found == nil || !found.isNode() {
		return Image{}, fmt.Errorf("load node image: there is none in %s", filepath.Base(path))
	}
	return found.image(ref, checkout()), nil
}
