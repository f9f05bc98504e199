package judge

import (
	"archive/zip"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/example/operator-lab/labs/internal/course/coursetest"
)

func TestTheModuleIsFoundInWhatWasHandedIn(t *testing.T) {
	for name, tc := range map[string]struct{ file, want string }{
		"the module itself":    {"go.mod", ""},
		"a whole checkout":     {"workspace/go.mod", "workspace"},
		"a folder around it":   {"ada/go.mod", "ada"},
		"both":                 {"ada/workspace/go.mod", "ada/workspace"},
		"nothing":              {"notes/thoughts.txt", "notes"},
		"Korean names":         {"김철수/go.mod", "김철수"},
		"Korean, from Windows": {"\xb1\xe8\xc3\xb6\xbc\xf6/go.mod", "_ö_"},
		"backslashes":          {`ada\go.mod`, "ada"},
	} {
		t.Run(name, func(t *testing.T) {
			folder, dir := t.TempDir(), t.TempDir()
			coursetest.Write(t, folder, tc.file, "module x\n")
			got, err := open(zipped(t, tc.file, "__MACOSX/x"), filepath.Join(dir, "unpacked"))
			if err != nil || got != filepath.Join(dir, "unpacked", tc.want) {
				t.Errorf("of a zip: %s, %v", got, err)
			}
			if tc.want == "_ö_" || name == "backslashes" {
				return // names of a zip alone
			}
			if got, err := open(folder, ""); err != nil || got != filepath.Join(folder, tc.want) {
				t.Errorf("of a folder: %s, %v", got, err)
			}
		})
	}
}

func TestAZipThatCannotBeUnpackedIsTheLearners(t *testing.T) {
	broken := filepath.Join(t.TempDir(), "broken.zip")
	coursetest.Write(t, filepath.Dir(broken), "broken.zip", "PK, or so")
	for _, file := range []string{broken, zipped(t, "../out"), zipped(t, "a", "a/b")} {
		dir := t.TempDir()
		var theirs *refusal
		if _, err := open(file, filepath.Join(dir, "unpacked")); !errors.As(err, &theirs) {
			t.Errorf("%s: %v", file, err)
		}
		if _, err := os.Stat(filepath.Join(dir, "out")); err == nil {
			t.Errorf("%s was written outside", file)
		}
	}
}

// zipped is a zip with files of these names.
func zipped(t *testing.T, names ...string) string {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "hand-in.zip"))
	if err != nil {
		t.Fatal(err)
	}
	w := zip.NewWriter(file)
	for _, name := range names {
		if _, err := w.Create(name); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), file.Close()); err != nil {
		t.Fatal(err)
	}
	return file.Name()
}

// The labs before the one about rights are judged with all rights, as `lab check` judges each of them.
func TestLabsUnderTheRoleAreJudgedApart(t *testing.T) {
	c := coursetest.Load(t, "../../..")
	got := groups(c, []int{1, 4, 7, 8})
	want := [][]int{{1, 4}, {7, 8}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
