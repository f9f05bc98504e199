package modules_test

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/mod/module"

	"github.com/example/operator-lab/labs/classroom/modules"
	"github.com/example/operator-lab/labs/classroom/modules/modulestest"
	"github.com/example/operator-lab/labs/internal/course"
)

var (
	used      = module.Version{Path: "example.com/used", Version: "v1.2.0"}
	onlyTests = module.Version{Path: "example.com/only/tests", Version: "v0.1.0"}
	onWindows = module.Version{Path: "example.com/windows", Version: "v0.0.0-20260101000000-abcdefabcdef"}
	tidyOnly  = module.Version{Path: "example.com/tidy/only", Version: "v1.0.0"}
	tool      = module.Version{Path: "example.com/Tool", Version: "v2.0.0+incompatible"}
	unneeded  = module.Version{Path: "example.com/unneeded", Version: "v1.0.0"}
)

// publish puts what a made-up course needs onto a made-up internet.
func publish(t *testing.T) modulestest.Internet {
	t.Helper()
	i := modulestest.New(t)
	i.Add(t, used, map[string]string{
		"go.mod":  "module " + used.Path + "\n\ngo 1.26\n\nrequire " + tidyOnly.Path + " " + tidyOnly.Version + "\n",
		"used.go": "package used\n", "used_test.go": "package used_test\n\nimport _ \"example.com/tidy/only\"\n",
	})
	i.Add(t, tidyOnly, map[string]string{"only.go": "package only\n"})
	i.Add(t, onlyTests, map[string]string{"tests.go": "package tests\n"})
	i.Add(t, onWindows, map[string]string{"windows.go": "package windows\n"})
	i.Add(t, tool, map[string]string{"main.go": "package main\n\nfunc main() {}\n"})
	i.Add(t, unneeded, map[string]string{"unneeded.go": "package unneeded\n"})
	return i
}

// need is a module that uses all of that, each in its own way.
func need(t *testing.T, i modulestest.Internet) modules.Need {
	t.Helper()
	dir := t.TempDir()
	write := func(name, text string) { modulestest.Write(t, filepath.Join(dir, name), text) }
	mod, sum := "module example.com/mine\n\ngo 1.26.0\n\ntool "+tool.Path+"\n", ""
	for _, m := range []module.Version{used, onlyTests, onWindows, tool} {
		mod += "\nrequire " + m.Path + " " + m.Version + "\n"
		sum += i.Sum(t, m)
	}
	write("go.mod", mod)
	write("go.sum", sum+i.Sum(t, tidyOnly))
	write("main.go", "package main\n\nimport _ \"example.com/used\"\n\nfunc main() {}\n")
	write("main_windows.go", "package main\n\nimport _ \"example.com/windows\"\n")
	write("main_test.go", "package main\n\nimport _ \"example.com/only/tests\"\n")
	return modules.Need{
		Name: "a module", Dir: dir, Packages: []string{"./..."}, Programs: []string{"tool"}, Tidied: true,
		Systems: []string{"linux", "windows"},
	}
}

// machine makes this process one with an empty module cache, and gives it a folder for modules.
func machine(t *testing.T, internet modulestest.Internet) modules.Folder {
	t.Helper()
	internet.Use(t, t.TempDir())
	return modules.Folder(filepath.Join(t.TempDir(), "modules"))
}

func quiet(string) {}

func TestFill(t *testing.T) {
	internet := publish(t)
	n := need(t, internet)
	folder := machine(t, internet)
	missing, err := folder.Missing([]modules.Need{n})
	if want := []string{used.String(), onlyTests.String(), onWindows.String(), tool.String()}; err != nil || !slices.Equal(missing, want) {
		t.Errorf("missing from an empty folder: %q, %v", missing, err)
	}
	var told []string
	stock, err := folder.Fill(t.Context(), []modules.Need{n}, func(line string) { told = append(told, line) })
	if err != nil {
		t.Fatal(err)
	}
	if missing, err := folder.Missing([]modules.Need{n}); err != nil || len(missing) > 0 {
		t.Errorf("missing after that: %q, %v", missing, err)
	}
	if stock.Modules != 5 || stock.Bytes == 0 || !strings.HasPrefix(told[len(told)-1], "modules up to here: 5 modules, ") {
		t.Errorf("%v, %q", stock, told)
	}
	want := map[string]string{} // of each module: its files, and what its list says
	for _, m := range []module.Version{used, onlyTests, tool} {
		want[m.Path] = "list " + m.Version + ".info " + m.Version + ".mod " + m.Version + ".zip: " + m.Version + "\n"
	}
	want[onWindows.Path] = "list " + onWindows.Version + ".info " + onWindows.Version + ".mod " + onWindows.Version + ".zip: "
	want[tidyOnly.Path] = "list " + tidyOnly.Version + ".mod " + tidyOnly.Version + ".zip: " + tidyOnly.Version + "\n"
	if diff := cmp.Diff(want, content(t, folder)); diff != "" {
		t.Errorf("the folder (-want +got)\n%s", diff)
	}

	if err := os.Rename(string(internet), string(internet)+".away"); err != nil {
		t.Fatal(err)
	}
	again, err := folder.Fill(t.Context(), []modules.Need{n}, quiet)
	if err != nil || again != stock {
		t.Errorf("a second time needs the internet: %v, %v", again, err)
	}
	if left, err := os.ReadDir(filepath.Dir(string(folder))); err != nil || len(left) != 1 {
		t.Errorf("left beside the folder: %v, %v", left, err)
	}
}

func TestACacheHasWhatLinuxCompiles(t *testing.T) {
	internet := publish(t)
	n := need(t, internet)
	machine(t, internet)
	dir := t.TempDir()
	if err := modules.FillCache(t.Context(), dir, n); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]bool{
		"used@v1.2.0/used.go": true, "only/tests@v0.1.0/tests.go": true, "!tool@v2.0.0+incompatible/main.go": true,
		"windows@" + onWindows.Version + "/windows.go": false, "tidy/only@v1.0.0/only.go": false,
	} {
		if _, err := os.Stat(filepath.Join(dir, "example.com", filepath.FromSlash(path))); (err == nil) != want {
			t.Errorf("%s is in the cache: %v, want %v", path, err == nil, want)
		}
	}
}

// content says of each module in a folder which files are there, and what its list says.
func content(t *testing.T, folder modules.Folder) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(string(folder), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && d.Name() != "@v" {
			return err
		}
		rel, err := filepath.Rel(string(folder), filepath.Dir(path))
		if err != nil || !d.IsDir() {
			t.Errorf("%s is no module: %v", path, err)
			return err
		}
		files, err := os.ReadDir(path)
		if err != nil {
			return err
		}
		var names []string
		for _, file := range files {
			names = append(names, file.Name())
		}
		list, err := os.ReadFile(filepath.Join(path, "list"))
		name, unescapeErr := module.UnescapePath(filepath.ToSlash(rel))
		found[name] = strings.Join(names, " ") + ": " + string(list)
		if err := errors.Join(err, unescapeErr); err != nil {
			return err
		}
		return fs.SkipDir
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func TestCheck(t *testing.T) {
	internet := publish(t)
	n := need(t, internet)
	folder, disk := machine(t, internet), t.TempDir()
	if _, err := folder.Fill(t.Context(), []modules.Need{n}, quiet); err != nil {
		t.Fatal(err)
	}
	if err := modules.Check(t.Context(), folder.URL(), disk, []modules.Need{n}, quiet); err != nil {
		t.Error(err)
	}
	for _, m := range []module.Version{used, onlyTests, onWindows, tool, tidyOnly} {
		zip := modulestest.Path(t, string(folder), m, ".zip")
		if err := os.Rename(zip, zip+".away"); err != nil {
			t.Fatal(err)
		}
		err := modules.Check(t.Context(), folder.URL(), disk, []modules.Need{n}, quiet)
		if err == nil || !strings.Contains(err.Error(), m.Path) {
			t.Errorf("without %s: %v", m, err)
		}
		if err := os.Rename(zip+".away", zip); err != nil {
			t.Fatal(err)
		}
	}
	if err := modules.Check(t.Context(), folder.URL(), disk, []modules.Need{n}, quiet); err != nil {
		t.Errorf("with all of them again: %v", err)
	}
	if left, err := os.ReadDir(disk); err != nil || len(left) > 0 {
		t.Errorf("a check leaves %v, %v", left, err)
	}
}

// go.sum vouches for what comes from the room: without a checksum database, nothing else does.
func TestCheckRefusesWhatGoSumDoesNotKnow(t *testing.T) {
	internet := publish(t)
	n := need(t, internet)
	folder := machine(t, internet)
	if _, err := folder.Fill(t.Context(), []modules.Need{n}, quiet); err != nil {
		t.Fatal(err)
	}
	other := modulestest.New(t)
	other.Add(t, used, map[string]string{"used.go": "package used // and something else\n"})
	data, err := os.ReadFile(modulestest.Path(t, string(other), used, ".zip"))
	if err != nil {
		t.Fatal(err)
	}
	modulestest.Write(t, modulestest.Path(t, string(folder), used, ".zip"), string(data))
	err = modules.Check(t.Context(), folder.URL(), t.TempDir(), []modules.Need{n}, quiet)
	if err == nil || !strings.Contains(err.Error(), "checksum mismatch") {
		t.Errorf("another zip than that of go.sum: %v", err)
	}
}

func TestFillKeepsWhatArrivedBeforeAnError(t *testing.T) {
	internet := publish(t)
	n := need(t, internet)
	if err := os.Remove(modulestest.Path(t, string(internet), onWindows, ".zip")); err != nil {
		t.Fatal(err)
	}
	folder := machine(t, internet)
	_, err := folder.Fill(t.Context(), []modules.Need{n}, quiet)
	if err == nil || !strings.Contains(err.Error(), onWindows.Path) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v", err)
	}
	if missing, err := folder.Missing([]modules.Need{n}); err != nil || !slices.Equal(missing, []string{onWindows.String()}) {
		t.Errorf("missing: %q, %v", missing, err)
	}
}

func TestAnInterruptIsNoFailure(t *testing.T) {
	internet := publish(t)
	n := need(t, internet)
	folder := machine(t, internet)
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := folder.Fill(ctx, []modules.Need{n}, quiet); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if err := modules.Check(ctx, folder.URL(), t.TempDir(), []modules.Need{n}, quiet); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func TestHandler(t *testing.T) {
	folder := modules.Folder(filepath.Join(t.TempDir(), "modules"))
	modulestest.Write(t, modulestest.Path(t, string(folder), used, ".mod"), "module "+used.Path+"\n")
	modulestest.Write(t, modulestest.Path(t, string(folder), tool, ".info"), "{}")
	modulestest.Write(t, filepath.Join(filepath.Dir(string(folder)), "secret"), "a secret of the instructor")
	for path, want := range map[string]string{
		"/example.com/used/@v/v1.2.0.mod":                "module example.com/used\n",
		"/example.com/!tool/@v/v2.0.0+incompatible.info": "{}",
		"/example.com/used/@v/v1.2.0.zip":                "",
		"/example.com/used/@v/":                          "",
		"/example.com/used/@v":                           "",
		"/":                                              "",
		"":                                               "",
		"/../secret":                                     "",
		"/example.com/../../secret":                      "",
		`/..\secret`:                                     "",
		"/example.com/used/@v/v1.2.0.mod\x00":            "",
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.URL.Path = path // exactly as it is written, which no client would
		w := httptest.NewRecorder()
		folder.Handler().ServeHTTP(w, r)
		body, err := io.ReadAll(w.Result().Body)
		if err != nil {
			t.Fatal(err)
		}
		if ok := want != ""; ok != (w.Code == http.StatusOK) || ok && string(body) != want {
			t.Errorf("GET %q: %d %q", path, w.Code, body)
		}
		if strings.Contains(string(body), "secret") || strings.Contains(string(body), "@v") {
			t.Errorf("GET %q shows %q", path, body)
		}
	}
}

// The real course: what is there to be downloaded is what make lab-N compiles.
func TestTheCourseNeedsItsWorkspaceTheLabAndAControlPlane(t *testing.T) {
	_, file, _, _ := runtime.Caller(0)
	c, err := course.Load(filepath.Join(filepath.Dir(file), "..", "..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	scratch := t.TempDir()
	needs, err := modules.Needs(c, scratch, true)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, n := range needs {
		names = append(names, n.Name)
		if _, err := os.Stat(filepath.Join(n.Dir, "go.sum")); err != nil {
			t.Errorf("%s: %v", n.Name, err)
		}
	}
	if want := []string{"the workspace", "the lab", "kubernetes", "etcd", "kwok"}; !slices.Equal(names, want) {
		t.Errorf("%q, want %q", names, want)
	}
	if without, err := modules.Needs(c, t.TempDir(), false); err != nil || len(without) != 2 {
		t.Errorf("without a control plane: %v, %v", without, err)
	}
}
