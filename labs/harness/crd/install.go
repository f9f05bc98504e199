package crd

import (
	"context"
	"fmt"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

const (
	// installLimit is how long a definition may take to be Established, or to be found lacking. A good
	// one takes less than a second.
	installLimit = 10 * time.Second
	// installPoll is how often to ask: the wait is too short for a watch to be worth its start.
	installPoll = 50 * time.Millisecond
)

// Connect makes a client for definitions.
func Connect(config *rest.Config) (client.Client, error) {
	scheme := runtime.NewScheme()
	if err := apiextensionsv1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	return client.New(config, client.Options{Scheme: scheme})
}

// Install creates the definition, or brings the spec of the one that is there up to date, and waits
// until it is Established. The error tells what the API server objects to.
func Install(ctx context.Context, c client.Client, definition *apiextensionsv1.CustomResourceDefinition) error {
	current := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: definition.Name}}
	if _, err := controllerutil.CreateOrUpdate(ctx, c, current, func() error {
		current.Labels, current.Annotations = definition.Labels, definition.Annotations
		current.Spec = *definition.Spec.DeepCopy()
		// Nobody here serves conversions. The API server would ask whatever address stands there.
		current.Spec.Conversion = nil
		return nil
	}); err != nil {
		return fmt.Errorf("install definition %s: %w", definition.Name, err)
	}
	var lacking error
	err := wait.PollUntilContextTimeout(ctx, installPoll, installLimit, true, func(ctx context.Context) (bool, error) {
		if err := c.Get(ctx, client.ObjectKeyFromObject(current), current); err != nil {
			return false, fmt.Errorf("get definition %s: %w", definition.Name, err)
		}
		lacking = established(current)
		return lacking == nil, nil
	})
	if lacking != nil && ctx.Err() == nil {
		return lacking
	}
	if err != nil {
		return err
	}
	return settle(ctx, c, client.ObjectKeyFromObject(current))
}

// establishedAge is how old a definition has to be for the API server to take objects of the new kind at once. It holds each
// of them for 2 s as long as the condition Established is younger than that, lest another API server of the same
// cluster should not know the kind yet (serveResource in apiextensions-apiserver/pkg/apiserver/
// customresource_handler.go). Our clusters have one.
const establishedAge = 10 * time.Second

// settle dates the condition Established back, so that the first object does not wait.
func settle(ctx context.Context, c client.Client, key client.ObjectKey) error {
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		current := &apiextensionsv1.CustomResourceDefinition{}
		if err := c.Get(ctx, key, current); err != nil {
			return err
		}
		for i := range current.Status.Conditions {
			if cond := &current.Status.Conditions[i]; cond.Type == apiextensionsv1.Established {
				cond.LastTransitionTime = metav1.NewTime(time.Now().Add(-establishedAge))
			}
		}
		return c.Status().Update(ctx, current)
	})
	if err != nil {
		return fmt.Errorf("settle definition %s: %w", key.Name, err)
	}
	return nil
}

func established(crd *apiextensionsv1.CustomResourceDefinition) error {
	var why []string
	for _, c := range crd.Status.Conditions {
		if c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue {
			return nil
		}
		if c.Status != apiextensionsv1.ConditionTrue {
			why = append(why, fmt.Sprintf("%s: %s", c.Type, c.Message))
		}
	}
	return fmt.Errorf("definition %s is not Established: %s", crd.Name, strings.Join(why, "; "))
}
