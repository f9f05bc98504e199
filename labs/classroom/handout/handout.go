// Package handout makes what a learner is given in a room: a folder and the same as an archive, with the key to
// their cluster, a workspace at the start of lab 1, the board's address with their token, the settings for the
// room's Go modules, and a page that says what to do first.
//
// Handouts hold secrets: everything is written for its owner alone, and neither errors nor a printed [Handout]
// show a token or a key.
package handout

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/example/operator-lab/labs/classroom/board/token"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/course"
)

// Learner is somebody in the room.
type Learner struct {
	// ID names their handout, in lower-case letters, digits and hyphens: learner-7. It is unique in the room.
	ID string
	// Name is for people: a name or pseudonym in any script; "" means the ID. The board knows them by it.
	Name string
}

// Board is where a learner's results go.
type Board struct {
	// URL is the board's address, such as https://192.168.1.5:7777, and nothing behind it.
	URL string
	// Token is the learner's. An instructor's would show everybody the room.
	Token token.Token
}

// String names the board and the token, without its secret: in a print-out of a handout, too.
func (b Board) String() string { return b.URL + " " + b.Token.String() }

// Handout is all that one learner is given.
type Handout struct {
	Learner Learner
	// Kubeconfig is the path of a file that opens one cluster, as one user, with nothing else from this machine;
	// "" is a room without playgrounds.
	Kubeconfig string
	// Key is the public key of the server that Board, Course and Image are on, as [outbox.KeyOf] has it.
	Key string
	// Board is nil in a room without a board.
	Board *Board
	// Course is an archive of the course, such as https://192.168.1.5:7777/course.tar.gz, in a folder operator-lab; nil
	// where learners have it from elsewhere.
	Course *Download
	// Modules is the GOPROXY of the room, such as http://192.168.1.5:7777/modules, and nothing else is asked; "" where
	// everybody has the internet.
	Modules string
	// Image is nil where the room has no node image for engines of learners.
	Image *Download
	// Lends says that the room lends a cluster for each verdict, to whoever has the Board's token: CLUSTER=room is set.
	Lends bool
	// Workspace is a starter with its repository, from workspace.Starter.
	Workspace course.Tree
}

// Written is where a handout was written to.
type Written struct {
	// Dir and Archive are below the folder that was given to Write.
	Dir, Archive string
}

const archiveExtension = ".zip"

// Write makes the folder dir/<id> and the archive dir/<id>.zip, each whole or not at all, in the place of an
// earlier handout of the same learner. Others in dir stay as they are. What has the name of the handout and is
// none is left alone, and that, as all that is wrong with h, is a usage error. Two calls for one learner must not
// run at once; for different learners they may.
func Write(ctx context.Context, dir string, h Handout) (Written, error) {
	files, err := h.files()
	if err != nil {
		return Written{}, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return Written{}, exit.Usage("write handouts: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return Written{}, exit.Usage("write handouts: %w", err)
	}
	defer root.Close()
	p := place{root: root, id: h.Learner.ID}
	if err := p.write(ctx, files); err != nil {
		return Written{}, fmt.Errorf("write the handout of %s: %w", p.id, err)
	}
	return Written{Dir: filepath.Join(dir, p.id), Archive: filepath.Join(dir, p.id+archiveExtension)}, nil
}

// place is where one learner's handout stands.
type place struct {
	root *os.Root
	id   string
}

// The names beside a handout. No id begins with a dot. The new folder is in fresh alone, as it is in the archive.
func (p place) fresh() string        { return "." + p.id + ".new" }
func (p place) freshFolder() string  { return filepath.Join(p.fresh(), p.id) }
func (p place) old() string          { return "." + p.id + ".old" }
func (p place) archive() string      { return p.id + archiveExtension }
func (p place) freshArchive() string { return "." + p.id + archiveExtension + ".new" }

func (p place) write(ctx context.Context, files content) (err error) {
	if err := p.tidy(); err != nil {
		return err
	}
	if err := p.ours(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.root.RemoveAll(p.fresh()), p.root.RemoveAll(p.freshArchive())) }()
	if err := files.writeTo(ctx, p.root, p.freshFolder()); err != nil {
		return err
	}
	if err := p.pack(); err != nil {
		return err
	}
	return p.swap()
}

// tidy brings back what a killed process left in the middle of swap, and removes the rest of what it left.
func (p place) tidy() error {
	if _, err := p.root.Lstat(p.id); errors.Is(err, fs.ErrNotExist) {
		if err := p.root.Rename(p.old(), p.id); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return errors.Join(p.root.RemoveAll(p.old()), p.root.RemoveAll(p.fresh()), p.root.RemoveAll(p.freshArchive()))
}

// ours refuses what stands in the handout's place and was not made here for this learner.
func (p place) ours() error {
	for name, made := range map[string]func() bool{p.id: p.marked, p.archive(): p.commented} {
		_, err := p.root.Lstat(name)
		if err == nil && !made() {
			return exit.Usage("%s is there and is no handout of %s: move it away", filepath.Join(p.root.Name(), name), p.id)
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// swap puts the new handout in the place of the old one, archive and folder.
func (p place) swap() error {
	if err := p.root.Rename(p.freshArchive(), p.archive()); err != nil {
		return err
	}
	err := p.root.Rename(p.id, p.old())
	if errors.Is(err, fs.ErrNotExist) {
		return p.root.Rename(p.freshFolder(), p.id)
	} else if err != nil {
		return err
	}
	if err := p.root.Rename(p.freshFolder(), p.id); err != nil {
		return errors.Join(err, p.root.Rename(p.old(), p.id))
	}
	return p.root.RemoveAll(p.old())
}

// content is what a handout holds: slash path to file, nothing outside of it.
type content map[string]file

type file struct {
	data []byte
	// program: the owner may run it.
	program bool
}

func (f file) mode() fs.FileMode {
	if f.program {
		return 0o700
	}
	return 0o600
}

// writeTo writes the files into a new folder of root.
func (c content) writeTo(ctx context.Context, root *os.Root, name string) error {
	for p, f := range c {
		if err := ctx.Err(); err != nil {
			return err
		}
		full := filepath.Join(name, filepath.FromSlash(p))
		if err := root.MkdirAll(filepath.Dir(full), 0o700); err != nil {
			return err
		}
		if err := root.WriteFile(full, f.data, f.mode()); err != nil {
			return err
		}
	}
	return nil
}
