package hosted

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/example/operator-lab/clusters"
)

// SettingsName is that of the ConfigMap by which `classroom hosted install` says what a namespace was prepared with.
const SettingsName = "operator-lab"

// Settings are what verdicts in a namespace begin with. Those of one that was not prepared have an image alone.
type Settings struct {
	// Image is that of `make judge-image`, as nodes of the cluster find it.
	Image string
	// Queue is the LocalQueue of Kueue that admits the Jobs.
	Queue string
	// Pool is the SandboxWarmPool of agent-sandbox whose Pods run the learner's code. "" has it in the judge's own Pod.
	Pool string
	// CPU and Memory are what a judge asks of its node, as quantities of Kubernetes.
	CPU, Memory string
}

// settings reads what the namespace was prepared with, unless an image was given.
func (j *Judges) settings(ctx context.Context) (Settings, error) {
	if j.Image != "" {
		return Settings{Image: j.Image, CPU: "1", Memory: "1536Mi"}, nil
	}
	m, err := j.Client.CoreV1().ConfigMaps(j.Namespace).Get(ctx, SettingsName, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return Settings{}, &clusters.Problem{
			What: fmt.Sprintf("the namespace %s was not prepared for verdicts", j.Namespace),
			Fix:  "bin/classroom hosted install, or JUDGE_IMAGE=image for your own code (docs/hosted.md)",
		}
	case err != nil:
		return Settings{}, problem(ctx, "cannot read how the namespace was prepared", err)
	}
	s := Settings{Image: m.Data["image"], Queue: m.Data["queue"], Pool: m.Data["pool"], CPU: m.Data["cpu"], Memory: m.Data["memory"]}
	if s.Image == "" || s.Queue == "" || s.Pool == "" {
		return Settings{}, &clusters.Problem{What: "the ConfigMap " + SettingsName + " lacks image, queue or pool", Fix: "bin/classroom hosted install"}
	}
	return s, nil
}
