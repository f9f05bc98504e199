package cli

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/example/operator-lab/clusters/components"
	"github.com/example/operator-lab/clusters/doctor"
	"github.com/example/operator-lab/clusters/nodeimage"
	"github.com/example/operator-lab/labs/internal/fix"
	"github.com/example/operator-lab/labs/internal/memcached"
	"github.com/example/operator-lab/labs/internal/plain"
)

// DoctorOptions say what the doctor looks at on this machine.
func (a *App) DoctorOptions() doctor.Options {
	o := doctor.Options{
		Engine: a.Engine(), Dir: a.Root, GoVersion: strings.TrimPrefix(runtime.Version(), "go"), Commands: fix.Commands(),
		NoEngine: a.Cluster == Embedded,
		NodeImage: func(ctx context.Context, engine string) (ref string, stale bool, err error) {
			image, _, err := a.LocalNodeImage(ctx, engine)
			return image.Ref, image.Stale, err
		},
	}
	if a.Cluster != Kind {
		o.Instead = a.embeddedFinding
	}
	return o
}

// embeddedFinding tells the doctor what the embedded control plane lacks.
func (a *App) embeddedFinding(context.Context) doctor.Finding {
	f := doctor.Finding{Name: "control plane", Detail: "embedded, and built"}
	owned, err := a.Owned(Embedded)
	if err != nil {
		f.Severity, f.Detail = doctor.Error, "the embedded one cannot be built: "+plain.Line(err.Error())
	} else if missing := Missing(owned); len(missing) > 0 {
		f.Detail = "embedded; the first lab builds it, which takes some minutes (" + strings.Join(missing, ", ") + ")"
	}
	return f
}

// LocalNodeImage is the node image that the labs would use, if it is on this machine.
func (a *App) LocalNodeImage(ctx context.Context, engine string) (image nodeimage.Image, here bool, err error) {
	if here, err = nodeimage.Available(ctx, engine, a.NodeImage); err != nil || !here {
		return nodeimage.Image{}, false, err
	}
	image, err = memcached.NodeImage(engine, a.Cache, nil).Resolve(ctx, a.NodeImage)
	return image, err == nil, err
}

// KubectlPath is a PATH with kubectl, which is downloaded or compiled if the machine has none.
func (a *App) KubectlPath(ctx context.Context) (string, error) {
	path := os.Getenv("PATH")
	if _, err := exec.LookPath("kubectl"); err == nil {
		return path, nil
	}
	a.Progress("this machine has no kubectl; getting it, which takes some minutes where it has to be compiled")
	builder := components.Builder{CacheDir: a.Cache, OS: runtime.GOOS, Download: true, Log: a.Progress}
	built, err := builder.Build(ctx, "kubectl")
	return path + string(filepath.ListSeparator) + filepath.Dir(built["kubectl"]), err
}
