package handout

import (
	"bytes"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path"
	"strings"
	"text/template"

	"github.com/example/operator-lab/clusters"
	"github.com/example/operator-lab/labs/classroom/board/store"
	"github.com/example/operator-lab/labs/classroom/board/token"
	"github.com/example/operator-lab/labs/classroom/roster"
	"github.com/example/operator-lab/labs/internal/cli/exit"
	"github.com/example/operator-lab/labs/internal/roomclient"
)

// What a handout holds.
const (
	startFile      = "START.md"
	kubeconfigFile = "kubeconfig"
	shellFile      = "env.sh"
	powerShellFile = "env.ps1"
	workspaceDir   = "workspace"
	// boardFile is where a checkout looks for it, so that the folder .lab can be copied into one as it is.
	boardFile = ".lab/" + roomclient.ConfigFile
)

//go:embed templates
var templates embed.FS

var texts = template.Must(template.New("").Funcs(template.FuncMap{
	"shell": shellQuote, "powershell": powerShellQuote, "markdown": markdownEscape,
}).ParseFS(templates, "templates/"+startFile, "templates/"+shellFile, "templates/"+powerShellFile))

// files makes all that the handout holds. Its errors are usage errors that say what to give instead, and never
// quote what may be a secret.
func (h *Handout) files() (content, error) {
	if err := h.check(); err != nil {
		return nil, err
	}
	files := content{}
	if err := h.addWorkspace(files); err != nil {
		return nil, err
	}
	if h.Kubeconfig != "" {
		data, err := readKubeconfig(h.Kubeconfig)
		if err != nil {
			return nil, err
		}
		files[kubeconfigFile] = file{data: data}
	}
	if h.Board != nil {
		config := roomclient.Config{URL: h.Board.URL, Key: h.Key, Token: h.Board.Token.Reveal(), Learner: h.Learner.name()}
		if err := files.addJSON(boardFile, config); err != nil {
			return nil, err
		}
	}
	if err := files.addJSON(markFile, mark{Schema: markSchema, Learner: h.Learner.ID}); err != nil {
		return nil, err
	}
	return files, h.addTexts(files)
}

func (c content) addJSON(name string, value any) error {
	data, err := json.MarshalIndent(value, "", " ")
	if err != nil {
		return fmt.Errorf("make %s: %w", name, err)
	}
	c[name] = file{data: append(data, '\n')}
	return nil
}

// page is what the templates of the texts know.
type page struct {
	ID, Name                   string
	Kubeconfig, Board, Modules bool
	Course                     []string // commands
	Image                      []string // commands
	Megabytes                  int64    // of the image
	Lends                      bool
	Set                        []variable
}

func (h *Handout) addTexts(files content) error {
	p := page{
		ID: h.Learner.ID, Name: h.Learner.name(),
		Kubeconfig: h.Kubeconfig != "", Board: h.Board != nil, Modules: h.Modules != "", Lends: h.Lends, Set: h.variables(),
	}
	if h.Course != nil {
		p.Course = CourseCommands(h.Key, h.Course)
	}
	if h.Image != nil {
		p.Image, p.Megabytes = ImageCommands(h.Key, h.Image), h.Image.Megabytes()
	}
	for _, name := range []string{startFile, shellFile, powerShellFile} {
		var b bytes.Buffer
		if err := texts.ExecuteTemplate(&b, name, p); err != nil {
			return fmt.Errorf("make %s: %w", name, err)
		}
		files[name] = file{data: b.Bytes()}
	}
	// The older PowerShell takes a script for something else than UTF-8, unless it begins like this.
	files[powerShellFile] = file{data: append([]byte("\ufeff"), files[powerShellFile].data...)}
	return nil
}

func (l Learner) name() string {
	if l.Name == "" {
		return l.ID
	}
	return l.Name
}

func (h *Handout) check() error {
	if err := roster.CheckID(h.Learner.ID); err != nil {
		return exit.Usage("%w", err)
	}
	if err := store.CheckName(h.Learner.name()); err != nil {
		return exit.Usage("%w", err)
	}
	if b := h.Board; b != nil {
		if u, err := address(b.URL); err != nil || u.Scheme != "https" || strings.Trim(u.Path, "/") != "" {
			return exit.Usage("the board's address for %s must be like https://192.168.1.5:7777, with nothing behind the port",
				h.Learner.ID)
		}
		if b.Token == (token.Token{}) {
			return exit.Usage("%s has no token for the board: classroom board token add makes one", h.Learner.ID)
		}
	}
	if h.Lends && h.Board == nil {
		return exit.Usage("%s cannot borrow clusters without the room's address and a token", h.Learner.ID)
	}
	if (h.Board != nil || h.Course != nil || h.Image != nil) && !strings.HasPrefix(h.Key, "sha256//") {
		return exit.Usage("the handout of %s has no key of the room's server", h.Learner.ID)
	}
	if err := h.Course.check("course", "https://192.168.1.5:7777/course.tar.gz", h.Learner.ID); err != nil {
		return err
	}
	if h.Modules != "" {
		if _, err := address(h.Modules); err != nil {
			return exit.Usage("the address of the Go modules for %s must be like http://192.168.1.5:7777/modules", h.Learner.ID)
		}
	}
	if err := h.Image.check("node image", "https://192.168.1.5:7777/images/node.tar.gz", h.Learner.ID); err != nil {
		return err
	}
	return h.checkEnv()
}

var errNoAddress = errors.New("no plain address")

// address reads an address that may stand in a handout: one without a user, a query and what follows a #, where
// passwords and other people's tokens are. Its error does not quote the address.
func address(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return nil, errNoAddress
	}
	if u.User != nil || strings.ContainsAny(text, "?#") {
		return nil, errNoAddress
	}
	return u, nil
}

// addWorkspace adds the workspace, of which nothing may lie outside of its folder.
func (h *Handout) addWorkspace(files content) error {
	if len(h.Workspace) == 0 {
		return exit.Usage("the handout of %s has no workspace", h.Learner.ID)
	}
	for name, f := range h.Workspace {
		switch {
		case !fs.ValidPath(name) || name == "." || strings.ContainsAny(name, "\\:\x00"):
			return exit.Usage("the workspace of %s has a file %q, and that is no path inside of it", h.Learner.ID, name)
		case f.Mode&fs.ModeSymlink != 0:
			return exit.Usage("the workspace of %s has a link %q: archives and Windows want files", h.Learner.ID, name)
		}
		files[path.Join(workspaceDir, name)] = file{data: f.Data, program: f.Mode&0o111 != 0}
	}
	return nil
}

// kubeconfigLimit is far more than a kubeconfig for one cluster has.
const kubeconfigLimit = 1 << 20

// readKubeconfig reads a kubeconfig that may be handed out: one that opens one cluster, and needs no other file and
// no program. What the parser says about a file that is none is not repeated: it may quote keys.
func readKubeconfig(name string) ([]byte, error) {
	info, err := os.Stat(name)
	if err != nil {
		return nil, exit.Usage("read the kubeconfig: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() > kubeconfigLimit {
		return nil, exit.Usage("%s is no kubeconfig", name)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, exit.Usage("read the kubeconfig: %w", err)
	}
	switch err := clusters.CheckKubeconfig(data); {
	case errors.Is(err, clusters.ErrNoKubeconfig):
		return nil, exit.Usage("%s is no kubeconfig", name)
	case errors.Is(err, clusters.ErrNeedsMore):
		return nil, needsMore(name)
	case err != nil:
		return nil, exit.Usage("%s is no key to hand out: %w", name, err)
	}
	return data, nil
}

func needsMore(name string) error {
	return exit.Usage("%s is no key to hand out: it needs other files or programs of this machine; "+
		"kubectl config view --flatten --minify makes one that needs no files", name)
}
