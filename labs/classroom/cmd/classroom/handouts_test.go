package main

import (
	"archive/zip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/example/operator-lab/labs/classroom/board/store"
	"github.com/example/operator-lab/labs/classroom/board/token"
	"github.com/example/operator-lab/labs/internal/cli/exit"
)

// handOut runs the command on a room of two.
func handOut(t *testing.T, s *school, args ...string) error {
	t.Helper()
	cmd := newHandoutsCommand(s.app)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(args)
	return cmd.ExecuteContext(t.Context())
}

func roomOfTwo(t *testing.T) *school {
	t.Helper()
	path := os.Getenv("PATH")
	s := newSchool(t)
	t.Setenv("PATH", path) // for git
	s.must(t, "up", "--learners", "2")
	root, err := filepath.Abs("../../../..")
	if err != nil {
		t.Fatal(err)
	}
	s.Root = root
	return s
}

// What a learner gets opens the board as that learner, and their own cluster.
func TestHandoutsOpenWhatIsTheLearners(t *testing.T) {
	s := roomOfTwo(t)
	if err := handOut(t, s, "--server", "https://127.0.0.1:7777/"); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(s.State, handoutsDir)
	var config struct{ URL, Key, Token, Learner string }
	data, err := os.ReadFile(filepath.Join(dir, "learner-2", ".lab", "board.json"))
	if err != nil || json.Unmarshal(data, &config) != nil {
		t.Fatalf("board.json: %s, %v", data, err)
	}
	given, err := token.Parse(config.Token)
	if err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), filepath.Join(s.State, boardDir))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	holder, err := db.Authenticate(t.Context(), given)
	if err != nil || holder.Instructor || holder.Learner.Name != "learner-2" || config.URL != "https://127.0.0.1:7777" || config.Key != keyOf(t, s.app) {
		t.Errorf("the token of learner-2 is one of %+v at %s, %v", holder, config.URL, err)
	}
	env, err := os.ReadFile(filepath.Join(dir, "learner-2", "env.sh"))
	if err != nil {
		t.Fatal(err)
	}
	contains(t, string(env), "http://127.0.0.1:7777/modules")
	contains(t, string(env), "GOSUMDB='off'")
	if strings.Contains(s.out.String()+s.progress.String(), config.Token) {
		t.Error("a token was printed")
	}
	for _, name := range []string{"learner-1", "learner-2"} {
		archive, err := zip.OpenReader(filepath.Join(dir, name+".zip"))
		if err != nil {
			t.Fatal(err)
		}
		defer archive.Close()
		i := slices.IndexFunc(archive.File, func(f *zip.File) bool { return strings.HasSuffix(f.Name, "/kubeconfig") })
		if i < 0 {
			t.Fatalf("%s.zip has no kubeconfig", name)
		}
		r, err := archive.File[i].Open()
		if err != nil {
			t.Fatal(err)
		}
		packed, err := io.ReadAll(r)
		own, readErr := os.ReadFile(filepath.Join(s.State, "classroom", name, "kubeconfig"))
		if err != nil || readErr != nil || string(packed) != string(own) {
			t.Errorf("%s has another kubeconfig than that of their cluster: %v, %v", name, err, readErr)
		}
	}
}

// The next class has the same names.
func TestTheEndOfARoomEndsItsTokens(t *testing.T) {
	for _, clusters := range []bool{true, false} {
		s := roomOfTwo(t)
		if !clusters {
			s.must(t, "down")
			s.must(t, "up", "--learners", "2", "--lend", "1", "--playground=false")
		}
		if err := handOut(t, s, "--server", "https://127.0.0.1:7777"); err != nil {
			t.Fatal(err)
		}
		contains(t, s.must(t, "down"), "Ended 2 tokens")
		db, err := store.Open(t.Context(), filepath.Join(s.State, boardDir))
		if err != nil {
			t.Fatal(err)
		}
		all, err := db.Tokens(t.Context())
		if err := errors.Join(err, db.Close()); err != nil || len(all) != 2 || !all[0].Revoked || !all[1].Revoked {
			t.Errorf("%+v, %v", all, err)
		}
	}
}

func TestTokensOfABoardWithoutARoomStay(t *testing.T) {
	s := newSchool(t)
	db, err := store.Open(t.Context(), filepath.Join(s.State, boardDir))
	if err != nil {
		t.Fatal(err)
	}
	given, err := db.AddLearnerToken(t.Context(), "Ada", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	s.must(t, "down")
	if _, err := db.Authenticate(t.Context(), given); err != nil {
		t.Error(err)
	}
}

// Keys to doors that nobody should reach are not handed out, and whoever does it is told so.
func TestHandoutsOfARoomThatNobodyElseReaches(t *testing.T) {
	s := roomOfTwo(t)
	for server, warned := range map[string]bool{"https://192.168.1.5:7777": true, "https://127.0.0.1:7777": false} {
		s.progress.Reset()
		if err := handOut(t, s, "--server", server); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(s.progress.String(), "ADDRESS=192.168.1.5") != warned {
			t.Errorf("%s: %s", server, s.progress)
		}
		if _, err := os.Stat(filepath.Join(s.State, handoutsDir, "learner-1", "kubeconfig")); (err == nil) == warned {
			t.Errorf("%s: the kubeconfig: %v", server, err)
		}
	}
}

func TestHandoutsOfARoomWithoutAServer(t *testing.T) {
	s := roomOfTwo(t)
	if err := handOut(t, s); err != nil {
		t.Fatal(err)
	}
	contains(t, s.out.String(), "2 handouts in")
	contains(t, s.out.String(), "SERVER=")
	if _, err := os.Stat(filepath.Join(s.State, handoutsDir, "learner-1", ".lab", "board.json")); err == nil {
		t.Error("a handout names a board that nobody serves")
	}
}

func TestHandoutsRefuseWhatTheyDoNotUnderstand(t *testing.T) {
	s := roomOfTwo(t)
	for _, server := range []string{
		"192.168.1.5:7777", "http://192.168.1.5:7777", "https://192.168.1.5", "https://192.168.1.5:7777/#token=x", "https://me@host:1", "https://a:1/b",
	} {
		if err := handOut(t, s, "--server", server); exit.Code(err) != exit.UsageError || strings.Contains(err.Error(), "\n") {
			t.Errorf("--server %s: %v", server, err)
		}
	}
	empty := newSchool(t)
	if err := handOut(t, empty); exit.Code(err) != exit.UsageError {
		t.Errorf("an empty room: %v", err)
	}
}
