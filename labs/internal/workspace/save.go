package workspace

import (
	"archive/tar"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"

	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course"
	"github.com/example/operator-lab/labs/internal/plain"
)

const (
	savesDir = labDir + "/saves" // below gitDir
	saveType = ".tar"
	// saveTime sorts as text as it does in time.
	saveTime = "20060102T150405.000000000Z"
)

// Save is a state of a workspace that was saved before it was replaced.
type Save struct {
	// Name is made of the time and unique in its workspace.
	Name string
	// Time is when it was saved.
	Time time.Time
	// Reason says what replaced it: "before solve 4".
	Reason string
}

// saves returns all saves, the latest last. next is the time for the name of another: names rise even when the clock
// does not, and also after what only has the name of a save.
func (r *repo) saves() (saves []Save, next time.Time, err error) {
	next = time.Now().UTC()
	root, err := os.OpenRoot(r.path())
	if err != nil {
		return nil, next, fmt.Errorf("look for saves: %w", err)
	}
	defer root.Close()
	entries, err := fs.ReadDir(root.FS(), savesDir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, next, fmt.Errorf("look for saves: %w", err)
	}
	for _, entry := range entries {
		name, isSave := strings.CutSuffix(entry.Name(), saveType)
		at, err := time.Parse(saveTime, name)
		if err != nil || !isSave || at.Year() == 9999 {
			continue // not made here; and no name could be after one of 9999
		}
		if !next.After(at) {
			next = at.Add(1)
		}
		if !entry.Type().IsRegular() {
			continue // not made here
		}
		if file, _, reason, err := openSave(root, name); err == nil {
			file.Close()
			saves = append(saves, Save{Name: name, Time: at, Reason: plain.Line(reason)})
		}
	}
	return saves, next, nil
}

// openSave opens a save, to be closed by the caller, and reads its reason. A file that does not begin as one that was
// made here is an error.
func openSave(root *os.Root, name string) (file *os.File, in *tar.Reader, reason string, err error) {
	file, err = root.Open(savesDir + "/" + name + saveType)
	if err != nil {
		return nil, nil, "", err
	}
	in = tar.NewReader(file)
	header, err := in.Next()
	if err == nil && header.Typeflag == tar.TypeXGlobalHeader {
		return file, in, header.PAXRecords["comment"], nil
	}
	file.Close()
	return nil, nil, "", cmp.Or(err, errors.New("it was not made here"))
}

// save returns the save of the given name; "" means the latest.
func (r *repo) save(name string) (Save, error) {
	saves, _, err := r.saves()
	if err != nil {
		return Save{}, err
	}
	if len(saves) == 0 {
		return Save{}, exit.Usage("there is nothing to bring back: no command has changed %s yet", r.dir)
	}
	if name == "" {
		return saves[len(saves)-1], nil
	}
	for _, s := range saves {
		if s.Name == name {
			return s, nil
		}
	}
	return Save{}, exit.Usage("there is no save %q: `make undo LIST=1` lists them", name)
}

// write saves a tree and returns the save's name. The save appears whole or not at all.
func (r *repo) write(tree course.Tree, reason string) (name string, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("save your work: %w", err)
		}
	}()
	_, next, err := r.saves()
	if err != nil {
		return "", err
	}
	if err := mayBeSaved(tree); err != nil {
		return "", err
	}
	root, err := os.OpenRoot(r.path())
	if err != nil {
		return "", err
	}
	defer root.Close()
	if err := root.MkdirAll(savesDir, 0o755); err != nil {
		return "", err
	}
	name = next.Format(saveTime)
	final := savesDir + "/" + name + saveType
	file, err := root.OpenFile(final+".tmp", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return "", err
	}
	err = cmp.Or(pack(file, tree, reason, next), r.small(file), file.Sync())
	if err = cmp.Or(err, file.Close()); err == nil {
		err = root.Rename(final+".tmp", final)
	}
	if err != nil {
		_ = root.Remove(final + ".tmp")
		return "", err
	}
	return name, nil
}

// pack writes a tree as a tar file that begins with the reason. PAX takes names of any length and bytes.
func pack(to io.Writer, tree course.Tree, reason string, at time.Time) error {
	out := tar.NewWriter(to)
	err := out.WriteHeader(&tar.Header{
		Typeflag: tar.TypeXGlobalHeader, Format: tar.FormatPAX, PAXRecords: map[string]string{"comment": reason},
	})
	if err != nil {
		return err
	}
	for _, name := range tree.Paths() {
		file := tree[name]
		header := &tar.Header{Name: name, Format: tar.FormatPAX, ModTime: at.Truncate(time.Second)}
		if file.Mode&fs.ModeSymlink != 0 {
			header.Typeflag, header.Linkname, file.Data = tar.TypeSymlink, string(file.Data), nil
		} else {
			header.Typeflag, header.Mode, header.Size = tar.TypeReg, int64(file.Mode.Perm()), int64(len(file.Data))
		}
		if err := out.WriteHeader(header); err != nil {
			return err
		}
		if _, err := out.Write(file.Data); err != nil {
			return err
		}
	}
	return out.Close()
}

// small refuses a file that is too large for a save.
func (r *repo) small(file *os.File) error {
	info, err := file.Stat()
	if err == nil && info.Size() > r.mostOfASave {
		err = r.tooMuch()
	}
	return err
}

func (r *repo) tooMuch() error { return fmt.Errorf("it is more than %d bytes", r.mostOfASave) }

// read reads the files of a save. One that was not made here may hold anything: what a save never holds is an error.
func (r *repo) read(name string) (tree course.Tree, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("read the save %s: %w", name, err)
		}
	}()
	root, err := os.OpenRoot(r.path())
	if err != nil {
		return nil, err
	}
	defer root.Close()
	file, in, _, err := openSave(root, name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if err := r.small(file); err != nil {
		return nil, err
	}
	tree = course.Tree{}
	left := r.mostOfASave // a tar file can say in a few bytes that it holds many zeros
	for {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return tree, mayBeSaved(tree)
		} else if err != nil {
			return nil, err
		}
		var file course.File
		switch header.Typeflag {
		case tar.TypeSymlink:
			file = course.File{Data: []byte(header.Linkname), Mode: fs.ModeSymlink}
		case tar.TypeReg:
			if left -= header.Size; left < 0 {
				return nil, r.tooMuch()
			}
			file.Mode = 0o644
			if header.Mode&0o111 != 0 {
				file.Mode = 0o755
			}
			if file.Data, err = io.ReadAll(in); err != nil {
				return nil, err
			}
		default:
			return nil, fmt.Errorf("%q in it is neither a file nor a symbolic link", header.Name)
		}
		tree[header.Name] = file
	}
}

// longestName is how long a name in a workspace may be, in bytes: what Linux takes.
const longestName = 4096

// mayBeSaved refuses names that no save holds: those that lead out of the workspace, by themselves or through a link of
// the same save, and those of what is left alone.
func mayBeSaved(tree course.Tree) error {
	for name := range tree {
		if len(name) > longestName {
			return fmt.Errorf("%q… is longer than a name can be", name[:longestName/100])
		}
		if name == "." || !fs.ValidPath(strings.ToValidUTF8(name, "?")) {
			return fmt.Errorf("%q is no place in a workspace", name)
		}
		for dir := name; dir != "."; dir = path.Dir(dir) {
			_, isFile := tree[dir]
			if strings.EqualFold(path.Base(dir), gitDir) || dir != name && (isFile || leftAlone[dir]) {
				return fmt.Errorf("%q is no place for a file that is saved", name)
			}
		}
	}
	return nil
}
